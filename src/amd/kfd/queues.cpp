// Queues of a snapshot: merges images of one queue across XCCs and files, by addresses that are unique to it.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "amd/kfd/snapshot.h"

namespace weir::kfd {
namespace {

using GpuAddress = std::pair<std::uint32_t, std::uint64_t>;
using GpuDoorbell = std::tuple<std::uint32_t, QueueKind, std::uint64_t, std::uint32_t>;  // GPU, kind, ring, doorbell

constexpr const char* kNoOneSize = "its commands (PM4) have no one size";

template <class T>
void raise_to(std::optional<T>& most, const std::optional<T>& value) {
  if (value && (!most || *most < *value)) most = value;
}

// Values that are the same on all XCCs.
void describe(Queue& queue, const QueueImage& image) {
  queue.ring_base = image.ring_base;
  queue.ring_bytes = image.ring_bytes();
  queue.doorbell = image.doorbell;
  queue.is_aql = image.is_aql;
  queue.pipe_priority = image.pipe_priority;
  queue.queue_priority = image.queue_priority;
  queue.quantum = image.quantum;
  queue.has_cwsr = image.has_cwsr;
  queue.save_base = image.save_base;
  queue.save_bytes = image.save_bytes;
}

void merge_preemption(Queue& queue, const QueueImage& image) {
  // Waves saved on any XCC mean that the queue was preempted.
  if (const std::optional<bool> was = image.was_preempted())
    queue.was_preempted = queue.was_preempted.value_or(false) || *was;
}

// Adds the backlog and other values of one XCC.
void add_slot(Queue& queue, const HqdSlot& slot) {
  const QueueImage& image = slot.image;
  queue.slots.push_back({slot.xcc, slot.pipe, slot.queue, image.vmid, image.read_dword, image.write_dword});
  queue.mqd_bases.push_back(image.mqd_base);
  if (const auto dwords = image.backlog_dwords(); dwords && !image.is_aql) {
    raise_to(queue.backlog_bytes, std::optional(*dwords * 4));
    queue.backlog_reason = kNoOneSize;
  } else if (dwords) {
    if (queue.backlog_reason.empty()) raise_to(queue.backlog_packets, std::optional(*dwords / kPacketDwords));
  } else {
    // If one XCC's backlog is unknown, so is the maximum.
    queue.backlog_packets.reset();
    queue.backlog_reason = image.ring_dwords == 0
                               ? "the size of its ring is not one"
                               : "its pointers say empty or full, and the hardware does not say which";
  }
  merge_preemption(queue, image);
  queue.is_doorbell_enabled = queue.is_doorbell_enabled.value_or(false) || image.is_doorbell_enabled;
  queue.is_doorbell_hit = queue.is_doorbell_hit.value_or(false) || image.is_doorbell_hit;
  queue.dequeue_request = std::max(queue.dequeue_request, image.dequeue_request);
  queue.errors |= image.errors;
}

class QueueFinder {
 public:
  explicit QueueFinder(const Snapshot& snapshot) : snapshot_(snapshot) {
    if (snapshot.hqds) {
      for (const HqdNode& node : snapshot.hqds->nodes) add_gpu(node);
    }
    if (!snapshot.sysfs) return;
    for (const SysfsNode& node : snapshot.sysfs->nodes) {
      if (node.gpu_id == 0) continue;
      Gpu& gpu = gpus_.try_emplace(node.gpu_id, Gpu{node.node}).first->second;
      const Generation generation = generation_of(node.gfx_target_version.value_or(0));
      if (generation != Generation::unknown) gpu.layout = generation;
    }
  }

  std::vector<Queue> find() {
    if (snapshot_.hqds) {
      for (const HqdNode& node : snapshot_.hqds->nodes) add_node(node);
    }
    index();
    if (snapshot_.mqds) {
      for (const MqdProcess& process : snapshot_.mqds->processes) {
        for (const MqdQueue& queue : process.queues) add_mqd(process, queue);
      }
      if (snapshot_.sysfs) {
        for (std::size_t i = 0; i < queues_.size(); ++i) {
          const Queue& queue = queues_[i];
          if (queue.pid && (queue.kind == QueueKind::compute || queue.kind == QueueKind::sdma))
            by_pid_.emplace(*queue.pid, i);
        }
        for (const SysfsProcess& process : snapshot_.sysfs->processes) pair_ids(process);
      }
    }
    for (Queue& queue : queues_) finish(queue);
    std::stable_sort(queues_.begin(), queues_.end(), [](const Queue& a, const Queue& b) {
      const auto key = [](const Queue& queue) {
        return std::tuple(queue.node, queue.gpu_id, queue.pid.value_or(INT32_MAX), queue.kind, queue.ring_base);
      };
      return key(a) < key(b);
    });
    return std::move(queues_);
  }

 private:
  struct Gpu {
    int node = -1;
    Generation layout = Generation::unknown;       // of the SDMA registers
    bool shows_slots = false, shows_sdma = false;  // hqds shows all of them
  };

  void add_gpu(const HqdNode& node) {
    Gpu gpu{node.node, node.generation, !node.is_stopped && node.left_out == 0 && !node.slots.empty(),
            !node.is_stopped && node.left_out_sdma == 0 && !node.sdma.empty()};
    // Unknown addresses leave the generation open, but SDMA's layout is known anyway.
    if (gpu.layout == Generation::unknown && !node.sdma.empty()) gpu.layout = sdma_layout(node.sdma.front().registers);
    gpus_.try_emplace(node.gpu_id, gpu);
  }

  void add_node(const HqdNode& node) {
    // A queue that moved while the file was written may appear in two slots of an XCC, but it is one queue. Rings of
    // two processes may have the same address; their doorbells differ. VMIDs do not help: each XCC's scheduler assigns
    // its own, and a new one each time.
    std::map<std::pair<std::uint64_t, std::uint32_t>, std::size_t> seen, seen_sdma;
    for (const HqdSlot& slot : node.slots) {
      if (slot.state != SlotState::active) continue;
      const auto [at, is_new] = seen.try_emplace({slot.image.ring_base, slot.image.doorbell}, queues_.size());
      if (is_new) {
        Queue& queue = start(QueueKind::compute, node);
        queue.vmid = slot.image.vmid;
        describe(queue, slot.image);
      }
      add_slot(queues_[at->second], slot);
      if (queues_[at->second].vmid != slot.image.vmid) queues_[at->second].vmid.reset();
    }
    std::optional<std::size_t> hiq;
    for (const HqdSlot& slot : node.hiqs) {
      if (slot.state != SlotState::active) continue;
      if (!hiq) {
        hiq = queues_.size();
        describe(start(QueueKind::hiq, node), slot.image);
      }
      add_slot(queues_[*hiq], slot);
    }
    for (const SdmaSlot& slot : node.sdma) {
      if (slot.state != SlotState::active) continue;
      const auto [at, is_new] =
          seen_sdma.try_emplace({slot.image.ring_base, slot.image.doorbell.value_or(0)}, queues_.size());
      if (is_new) {
        Queue& queue = start(QueueKind::sdma, node);
        queue.ring_base = slot.image.ring_base;
        queue.ring_bytes = slot.image.ring_bytes;
        queue.vmid = slot.image.vmid;
        queue.doorbell = slot.image.doorbell;
        queue.is_doorbell_enabled = slot.image.is_doorbell_enabled;
      }
      Queue& queue = queues_[at->second];
      queue.slots.push_back({0, slot.engine, slot.rlc, slot.image.vmid, slot.image.read_byte, slot.image.write_byte});
      raise_to(queue.backlog_bytes, slot.image.backlog_bytes());
    }
  }

  Queue& start(QueueKind kind, const HqdNode& node) {
    Queue& queue = queues_.emplace_back();
    queue.kind = kind;
    queue.node = node.node;
    queue.gpu_id = node.gpu_id;
    queue.is_active = queue.is_mapping_known = queue.is_in_hqds = true;
    return queue;
  }

  void index() {
    for (std::size_t i = 0; i < queues_.size(); ++i) {
      const Queue& queue = queues_[i];
      if (queue.kind == QueueKind::hiq) continue;
      for (const std::uint64_t base : queue.mqd_bases) by_mqd_.try_emplace({queue.gpu_id, base}, i);
      if (queue.doorbell) by_doorbell_.try_emplace({queue.gpu_id, queue.kind, queue.ring_base, *queue.doorbell}, i);
    }
  }

  // The hardware queue that this memory image belongs to. The image's address is unique to the queue; a ring's address
  // is unique only within a process, and the doorbell distinguishes two processes.
  Queue* hardware_queue(QueueKind kind, std::uint32_t gpu_id, const std::vector<std::uint64_t>& mqd_bases,
                        std::uint64_t ring_base, std::optional<std::uint32_t> doorbell) {
    for (const std::uint64_t base : mqd_bases) {
      const auto found = by_mqd_.find({gpu_id, base});
      if (found != by_mqd_.end() && queues_[found->second].ring_base == ring_base && !queues_[found->second].is_in_mqds)
        return &queues_[found->second];
    }
    if (!doorbell) return nullptr;
    const auto found = by_doorbell_.find({gpu_id, kind, ring_base, *doorbell});
    if (found != by_doorbell_.end() && !queues_[found->second].is_in_mqds) return &queues_[found->second];
    return nullptr;
  }

  void add_mqd(const MqdProcess& process, const MqdQueue& mqd) {
    const QueueKind kind = mqd.kind == MqdKind::compute ? QueueKind::compute
                           : mqd.kind == MqdKind::sdma  ? QueueKind::sdma
                           : mqd.kind == MqdKind::diq   ? QueueKind::diq
                                                        : QueueKind::unknown;
    std::vector<std::uint64_t> bases;
    for (const MqdImage& image : mqd.images) bases.push_back(image.queue.mqd_base);
    const auto found = gpus_.find(mqd.gpu_id);
    const Gpu gpu = found == gpus_.end() ? Gpu{} : found->second;
    std::optional<SdmaImage> sdma = mqd.sdma;
    if (sdma) decode_sdma_doorbell(*sdma, gpu.layout);
    const bool is_readable = !mqd.images.empty() || sdma;
    Queue* queue = nullptr;
    if (!mqd.images.empty()) {
      const QueueImage& image = mqd.images.front().queue;
      queue = hardware_queue(kind, mqd.gpu_id, bases, image.ring_base, image.doorbell);
    } else if (sdma) {
      queue = hardware_queue(kind, mqd.gpu_id, {}, sdma->ring_base, sdma->doorbell);
    }
    if (!queue) {
      queue = &queues_.emplace_back();
      queue->kind = kind;
      queue->gpu_id = mqd.gpu_id;
      queue->node = gpu.node;
      queue->is_mapping_known = kind == QueueKind::sdma ? gpu.shows_sdma : gpu.shows_slots;
      if (!mqd.images.empty()) describe(*queue, mqd.images.front().queue);
      if (sdma) {
        queue->ring_base = sdma->ring_base;
        queue->ring_bytes = sdma->ring_bytes;
        queue->doorbell = sdma->doorbell;
      }
      if (!is_readable) queue->backlog_reason = "its image could not be read";
    }
    queue->pid = process.pid;
    queue->is_in_mqds = true;
    queue->mqd_bases = std::move(bases);
    for (const MqdImage& image : mqd.images) {
      queue->mqd_pointers.emplace_back(image.queue.read_dword, image.queue.write_dword);
      raise_to(queue->save_ticks, image.save_ticks);
      raise_to(queue->restore_ticks, image.restore_ticks);
      merge_preemption(*queue, image.queue);
      if (!queue->is_in_hqds) queue->errors |= image.queue.errors;
      if (!queue->is_in_hqds) add_image_backlog(*queue, image.queue);
    }
    if (!queue->is_in_hqds && sdma && queue->is_mapping_known) {
      queue->backlog_bytes = sdma->backlog_bytes();
      queue->is_backlog_least = true;
    }
  }

  // A memory image has the pointers of the last unmapping. For a queue that is not mapped, the read pointer still
  // holds, but more may have been written since.
  void add_image_backlog(Queue& queue, const QueueImage& image) {
    if (!queue.is_mapping_known) {
      queue.backlog_reason =
          fmt::format("{}: pointers in mqds are those of its last unmapping",
                      snapshot_.hqds ? "hqds does not show all slots of its GPU" : "hqds was not read");
      return;
    }
    queue.is_backlog_least = true;
    const auto dwords = image.backlog_dwords();
    if (!image.is_aql) {
      raise_to(queue.backlog_bytes, std::optional(dwords.value_or(0) * 4));
      queue.backlog_reason = kNoOneSize;
      return;
    }
    if (dwords)
      raise_to(queue.backlog_packets, std::optional(*dwords / kPacketDwords));
    else if (!queue.backlog_packets)
      queue.backlog_packets = 0;  // empty or full: the lower bound is zero
  }

  // mqds has no ids. KFD lists the newest queue first, but reuses ids, so the order proves nothing; only a ring size
  // that exactly one queue of the process has identifies it.
  void pair_ids(const SysfsProcess& process) {
    using Key = std::tuple<std::uint32_t, bool, std::uint64_t>;  // GPU, SDMA or not, size of the ring
    std::map<Key, std::vector<std::uint32_t>> ids;
    for (const SysfsQueue& queue : process.queues) {
      const bool is_sdma = queue.type == SysfsQueueType::sdma || queue.type == SysfsQueueType::sdma_xgmi ||
                           queue.type == SysfsQueueType::sdma_by_engine;
      if (!is_sdma && queue.type != SysfsQueueType::compute) continue;
      ids[{queue.gpu_id, is_sdma, queue.ring_bytes}].push_back(queue.id);
    }
    std::map<Key, std::vector<Queue*>> owners;
    const auto [begin, end] = by_pid_.equal_range(process.pid);
    for (auto at = begin; at != end; ++at) {
      Queue& queue = queues_[at->second];
      owners[{queue.gpu_id, queue.kind == QueueKind::sdma, queue.ring_bytes}].push_back(&queue);
    }
    for (auto& [key, queues] : owners) {
      const auto found = ids.find(key);
      for (Queue* const queue : queues) {
        if (found == ids.end()) {
          queue->queue_id_reason = "sysfs shows no queue of this size for the process";
        } else if (queues.size() == 1 && found->second.size() == 1) {
          queue->queue_id = found->second.front();
        } else {
          queue->queue_id_candidates = found->second;
          queue->queue_id_reason = "several queues of the process have this size, and mqds has no ids";
        }
      }
    }
  }

  void finish(Queue& queue) {
    if (queue.kind == QueueKind::hiq) {
      queue.queue_id_reason = "KFD's own";
    } else if (!queue.queue_id && queue.queue_id_reason.empty()) {
      queue.queue_id_reason = !queue.pid         ? "mqds does not show whose it is"
                              : !snapshot_.sysfs ? "sysfs was not read"
                                                 : "sysfs does not show the process";
    }
    if (queue.kind == QueueKind::sdma && !queue.backlog_bytes)
      queue.backlog_reason = !snapshot_.hqds           ? "hqds was not read"
                             : !queue.is_mapping_known ? "hqds does not show all slots of its GPU"
                                                       : "the size of its ring is not one";
    if (queue.kind == QueueKind::sdma && queue.backlog_bytes)
      queue.backlog_reason = "commands of SDMA have no one size";
    if (!queue.backlog_packets && queue.backlog_reason.empty()) queue.backlog_reason = "not shown";
  }

  const Snapshot& snapshot_;
  std::vector<Queue> queues_;
  std::map<std::uint32_t, Gpu> gpus_;  // by id
  std::map<GpuAddress, std::size_t> by_mqd_;
  std::map<GpuDoorbell, std::size_t> by_doorbell_;
  std::multimap<int, std::size_t> by_pid_;
};

}  // namespace

std::vector<Queue> queues_of(const Snapshot& snapshot) { return QueueFinder(snapshot).find(); }

}  // namespace weir::kfd
