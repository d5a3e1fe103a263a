#include "amd/kfd/document.h"

#include <fmt/format.h>

#include "base/named_values.h"
#include "base/schemas.h"

namespace weir::kfd {
namespace {

// Limits lists of slots, because longer ones help nobody.
constexpr std::size_t kMaxStale = 1000;

Json hex(std::uint64_t value) { return fmt::format("0x{:x}", value); }
Json gpu_name(std::uint32_t id) { return fmt::format("{:x}", id); }

Json node_or_null(int node) { return node < 0 ? Json() : Json(node); }

Json unread_json(const std::vector<UnreadLines>& unread) {
  return json_list(unread,
                   [](const UnreadLines& each) { return WEIR_NAMED(each.reason, each.count, each.first_line); });
}

template <class File>
Json file_json(const File& file, const char* kind) {
  return WEIR_NAMED(file.name, kind, file.bytes, file.lines, unread_json(file.unread), file.problems);
}

Json quantum_json(const std::optional<Quantum>& quantum) {
  if (!quantum) return nullptr;
  return WEIR_NAMED(quantum->is_enabled, quantum->scale, named("count", quantum->duration));
}

Json slots_json(const Queue& queue) {
  Json list = Json::array();
  for (const Slot& slot : queue.slots) {
    if (queue.kind == QueueKind::sdma)
      list.push_back({{"engine", slot.pipe},
                      {"rlc", slot.queue},
                      {"vmid", slot.vmid},
                      {"read_byte", slot.read},
                      {"write_byte", slot.write}});
    else
      list.push_back(WEIR_NAMED(slot.xcc, slot.pipe, slot.queue, slot.vmid, named("read_dword", slot.read),
                                named("write_dword", slot.write)));
  }
  return list;
}

Json queue_json(const Queue& queue) {
  Json json = WEIR_NAMED(queue.kind, node_or_null(queue.node), gpu_name(queue.gpu_id), queue.pid, queue.queue_id);
  json["queue_id_reason"] = queue.queue_id ? Json() : text_or_null(queue.queue_id_reason);
  json.update(WEIR_NAMED(queue.queue_id_candidates, hex(queue.ring_base), positive_or_null(queue.ring_bytes)));
  json["is_aql"] = queue.kind == QueueKind::sdma ? Json() : Json(queue.is_aql);
  json["is_active"] = queue.is_mapping_known ? Json(queue.is_active) : Json();
  json["slots"] = slots_json(queue);
  json.update(WEIR_NAMED(queue.vmid, queue.pipe_priority, queue.queue_priority, quantum_json(queue.quantum)));
  json["doorbell"] = {{"index", or_null(queue.doorbell)},
                      {"is_enabled", or_null(queue.is_doorbell_enabled)},
                      {"is_hit", or_null(queue.is_doorbell_hit)}};
  json["backlog"] = {{"packets", or_null(queue.backlog_packets)},
                     {"bytes", or_null(queue.backlog_bytes)},
                     {"is_least", queue.is_backlog_least},
                     {"reason", queue.backlog_packets ? Json() : text_or_null(queue.backlog_reason)}};
  json["mqd_bases"] = json_list(queue.mqd_bases, hex);
  json["mqd_pointers"] = Json::array();
  for (const auto& [read_dword, write_dword] : queue.mqd_pointers)
    json["mqd_pointers"].push_back(WEIR_NAMED(read_dword, write_dword));
  json["cwsr"] = WEIR_NAMED(named("is_on", queue.has_cwsr), queue.was_preempted,
                            named("save_base", queue.save_base == 0 ? Json() : hex(queue.save_base)),
                            named("save_bytes_per_xcc", positive_or_null(queue.save_bytes)), queue.save_ticks,
                            queue.restore_ticks);
  json["dequeue_request"] = queue.dequeue_request;
  json["errors"] = {{"word", hex(queue.errors)}, {"names", text_or_null(error_names(queue.errors))}};
  json["seen_in"] = Json::array();
  if (queue.is_in_hqds) json["seen_in"].push_back("hqds");
  if (queue.is_in_mqds) json["seen_in"].push_back("mqds");
  return json;
}

Json gpu_json(const GpuOccupancy& gpu) {
  Json json = WEIR_NAMED(node_or_null(gpu.node), gpu_name(gpu.gpu_id), gpu.generation,
                         text_or_null(gpu.generation_from), gpu.is_stopped, gpu.xccs);
  json["slots"] = {{"per_xcc", or_null(gpu.slots_per_xcc)}, {"from", text_or_null(gpu.slots_from)},
                   {"active", or_null(gpu.active_slots)},   {"stale", or_null(gpu.stale_slots)},
                   {"unused", or_null(gpu.unused_slots)},   {"most_active_of_an_xcc", or_null(gpu.most_active_of_xcc)}};
  json["sdma"] = {
      {"slots", or_null(gpu.sdma_slots)}, {"active", or_null(gpu.sdma_active)}, {"stale", or_null(gpu.sdma_stale)}};
  json.update(WEIR_NAMED(gpu.queues, gpu.processes, gpu.is_runlist_chained, gpu.is_oversubscribed, gpu.why));
  return json;
}

Json stale_json(const HqdFile& file, std::size_t& count) {
  Json list = Json::array();
  for (const HqdNode& node : file.nodes) {
    for (const HqdSlot& slot : node.slots) {
      if (slot.state != SlotState::stale || ++count > kMaxStale) continue;
      list.push_back(WEIR_NAMED(gpu_name(node.gpu_id), slot.xcc, slot.pipe, slot.queue, slot.line,
                                hex(slot.image.ring_base), hex(slot.image.mqd_base)));
    }
  }
  return list;
}

Json runlists_json(const RunlistFile& file) {
  const auto process_json = [](const RunlistProcess& process) {
    Json queues = json_list(process.queues, [](const RunlistQueue& queue) {
      return WEIR_NAMED(queue.engine, named("type", queue.queue_type), queue.doorbell, hex(queue.mqd_base));
    });
    return WEIR_NAMED(process.pasid, process.quantum, process.promised_queues, std::move(queues));
  };
  return json_list(file.lists, [&](const Runlist& each) {
    Json processes = json_list(each.processes, process_json);
    const Json is_chained = each.is_there && (each.is_whole || each.is_chained) ? Json(each.is_chained) : Json();
    return WEIR_NAMED(each.node, gpu_name(each.gpu_id), each.is_there, is_chained, std::move(processes),
                      each.other_packets, each.broken_promises);
  });
}

Json sysfs_json(const SysfsState& sysfs) {
  Json processes = Json::array();
  for (const SysfsProcess& process : sysfs.processes) {
    Json vram = Json::array(), evicted = Json::array();
    for (const auto& [gpu_id, bytes] : process.vram_bytes) vram.push_back(WEIR_NAMED(gpu_name(gpu_id), bytes));
    for (const auto& [gpu_id, ms] : process.evicted_ms)
      evicted.push_back(WEIR_NAMED(gpu_name(gpu_id), named("duration_ns", static_cast<double>(ms) * 1e6)));
    processes.push_back(
        WEIR_NAMED(process.pid, named("queues", process.queues.size()), std::move(vram), std::move(evicted)));
  }
  return WEIR_NAMED(std::move(processes), sysfs.parameters, sysfs.problems);
}

}  // namespace

Json hqd_document(const Snapshot& snapshot) {
  const std::vector<Queue> queues = queues_of(snapshot);
  const std::vector<GpuOccupancy> gpus = occupancy_of(snapshot, queues);
  Json json = WEIR_NAMED(named("schema", schemas::amd_hqd), time_or_null(snapshot.taken_ns));
  json["verdict"] = verdict_of(snapshot, queues, gpus);
  json["files"] = Json::array();
  if (snapshot.hqds) json["files"].push_back(file_json(*snapshot.hqds, "hqds"));
  if (snapshot.mqds) json["files"].push_back(file_json(*snapshot.mqds, "mqds"));
  if (snapshot.runlists) json["files"].push_back(file_json(*snapshot.runlists, "rls"));
  json["missing"] = json_list(snapshot.missing, [](const MissingPart& part) {
    return WEIR_NAMED(part.part, part.path, part.reason, text_or_null(part.hint));
  });
  json["gpus"] = json_list(gpus, gpu_json);
  json["queues"] = Json::array();
  json["hiqs"] = Json::array();
  for (const Queue& queue : queues) json[queue.kind == QueueKind::hiq ? "hiqs" : "queues"].push_back(queue_json(queue));
  std::size_t stale = 0;
  json["stale_slots"] = snapshot.hqds ? stale_json(*snapshot.hqds, stale) : Json();
  json["stale_slots_left_out"] = stale > kMaxStale ? stale - kMaxStale : 0;
  json["runlists"] = snapshot.runlists ? runlists_json(*snapshot.runlists) : Json();
  json["sysfs"] = snapshot.sysfs ? sysfs_json(*snapshot.sysfs) : Json();
  return json;
}

}  // namespace weir::kfd
