// How full each GPU is, and whether there is more work than fits at once. Gives a verdict only if the files support it.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "amd/kfd/document.h"

namespace weir::kfd {
namespace {

// KFD uses VMIDs 8 to 15 on most chips, 3 to 15 on gfx9.4.x; that many processes fit at once, unless hws_max_conc_proc
// sets fewer.
constexpr int kMinVmids = 8;

std::string count_words(int count, const char* word, const char* plural) {
  return fmt::format("{} {}", count, count == 1 ? word : plural);
}

void add_slots(GpuOccupancy& gpu, const HqdNode& node) {
  gpu.node = node.node;
  gpu.is_stopped = node.is_stopped;
  gpu.generation = node.generation;
  gpu.generation_from = node.generation_from;
  if (node.is_stopped) return;
  gpu.xccs = static_cast<int>(node.xccs.size());
  gpu.slots_per_xcc = static_cast<int>(node.slots_per_xcc());
  gpu.slots_from = "slots that hqds prints";
  gpu.active_slots = gpu.stale_slots = gpu.unused_slots = 0;
  std::map<int, int> active;
  for (const HqdSlot& slot : node.slots) {
    if (slot.state == SlotState::active) ++active[slot.xcc];
    ++*(slot.state == SlotState::active  ? gpu.active_slots
        : slot.state == SlotState::stale ? gpu.stale_slots
                                         : gpu.unused_slots);
  }
  gpu.most_active_of_xcc = 0;
  for (const auto& [xcc, count] : active) gpu.most_active_of_xcc = std::max(*gpu.most_active_of_xcc, count);
  gpu.sdma_slots = static_cast<int>(node.sdma.size());
  const auto count = [&](SlotState state) {
    return static_cast<int>(
        std::count_if(node.sdma.begin(), node.sdma.end(), [&](const SdmaSlot& slot) { return slot.state == state; }));
  };
  gpu.sdma_active = count(SlotState::active);
  gpu.sdma_stale = count(SlotState::stale);
}

void add_topology(GpuOccupancy& gpu, const SysfsNode& node) {
  gpu.node = node.node;
  if (node.gfx_target_version && generation_of(*node.gfx_target_version) != Generation::unknown) {
    gpu.generation = generation_of(*node.gfx_target_version);
    gpu.generation_from = fmt::format("gfx_target_version {} of the topology", *node.gfx_target_version);
  }
  if (!gpu.xccs && node.xccs) gpu.xccs = node.xccs;
  if (!gpu.slots_per_xcc && node.cp_queues && *node.cp_queues > 0) {
    gpu.slots_per_xcc = *node.cp_queues / std::max(1, node.xccs.value_or(1));
    gpu.slots_from = "num_cp_queues / num_xcc of the topology";
  }
}

// `all_processes`: the number of processes in mqds. KFD counts a process on each GPU that it opened, even without
// queues there, so this is an upper bound.
void judge(GpuOccupancy& gpu, std::optional<int> process_limit, std::size_t all_processes, bool has_rls) {
  const char* const evidence = gpu.is_runlist_broken ? "its run list would show, which was not understood to its end"
                               : has_rls             ? "a run list would show, and there is none"
                                                     : "only rls shows";
  if (gpu.is_runlist_chained) {
    gpu.is_oversubscribed = gpu.is_runlist_chained;
    gpu.why = *gpu.is_runlist_chained ? "its run list is chained to itself: KFD has more than fits at once"
                                      : "its run list is not chained";
    return;
  }
  if (!gpu.queues || !gpu.processes) {
    gpu.why =
        gpu.active_slots ? "how many queues wait is in mqds or rls, which were not read" : "nothing was read of it";
    return;
  }
  if (!gpu.slots_per_xcc || *gpu.slots_per_xcc == 0) {
    gpu.why = "how many slots it has is in hqds or in the topology, which were not read";
    return;
  }
  const std::string queues = count_words(*gpu.queues, "queue", "queues");
  if (*gpu.queues > *gpu.slots_per_xcc) {
    gpu.why = fmt::format("{} for {} slots: oversubscribed unless {} or more are disabled, which {}", queues,
                          *gpu.slots_per_xcc, *gpu.queues - *gpu.slots_per_xcc, evidence);
    return;
  }
  // With 0, no two processes run at once.
  const int limit = process_limit ? std::clamp(*process_limit, 1, kMinVmids) : kMinVmids;
  if (*gpu.processes > limit) {
    gpu.why =
        fmt::format("{} processes, and at least {} fit at once; whether these do {}", *gpu.processes, limit, evidence);
    return;
  }
  if (all_processes > static_cast<std::size_t>(limit)) {
    gpu.why = fmt::format("{} processes are known to KFD, and at least {} fit at once; whether they use this GPU {}",
                          all_processes, limit, evidence);
    return;
  }
  if (*gpu.processes > 1) {
    gpu.why = fmt::format(
        "{} of {} processes fit into {} slots; whether cooperative launches or mixed XNACK keep processes apart {}",
        queues, *gpu.processes, *gpu.slots_per_xcc, evidence);
    return;
  }
  gpu.is_oversubscribed = false;
  gpu.why = fmt::format("{} for {} slots, {}", queues, *gpu.slots_per_xcc,
                        count_words(*gpu.processes, "process", "processes"));
}

}  // namespace

std::vector<GpuOccupancy> occupancy_of(const Snapshot& snapshot, const std::vector<Queue>& queues) {
  std::map<std::uint32_t, GpuOccupancy> gpus;
  const auto gpu = [&](std::uint32_t id) -> GpuOccupancy& {
    GpuOccupancy& found = gpus[id];
    found.gpu_id = id;
    return found;
  };
  if (snapshot.hqds) {
    for (const HqdNode& node : snapshot.hqds->nodes) add_slots(gpu(node.gpu_id), node);
  }
  if (snapshot.sysfs) {
    for (const SysfsNode& node : snapshot.sysfs->nodes) {
      if (node.gpu_id != 0) add_topology(gpu(node.gpu_id), node);
    }
  }
  std::map<std::uint32_t, std::set<int>> processes;
  std::map<std::uint32_t, int> computes;  // from mqds: other files do not name the process
  for (const Queue& queue : queues) {
    GpuOccupancy& of = gpu(queue.gpu_id);
    if (of.node < 0) of.node = queue.node;
    if (!queue.pid) continue;
    processes[queue.gpu_id].insert(*queue.pid);
    if (queue.kind == QueueKind::compute) ++computes[queue.gpu_id];
  }
  for (auto& [id, each] : gpus) {
    if (!snapshot.mqds) continue;
    each.queues = computes[id];
    each.processes = static_cast<int>(processes[id].size());
    each.queues_from = "compute queues in mqds";
  }
  if (snapshot.runlists) {
    for (const Runlist& list : snapshot.runlists->lists) {
      GpuOccupancy& of = gpu(list.gpu_id);
      if (of.node < 0) of.node = list.node;
      if (!list.is_there) continue;
      of.is_runlist_broken = !list.is_whole && !list.is_chained;
      if (!of.is_runlist_broken) of.is_runlist_chained = list.is_chained;
    }
  }
  std::optional<int> limit;
  if (snapshot.sysfs) {
    if (const auto text = snapshot.sysfs->parameter("hws_max_conc_proc")) {
      // "-1": no limit of its own.
      Cursor cursor(*text);
      int value = 0;
      if (cursor.take(value) && cursor.is_done()) limit = value;
    }
  }
  std::vector<GpuOccupancy> result;
  for (auto& [id, each] : gpus) {
    judge(each, limit, snapshot.mqds ? snapshot.mqds->processes.size() : 0, snapshot.runlists.has_value());
    result.push_back(std::move(each));
  }
  std::sort(result.begin(), result.end(), [](const GpuOccupancy& a, const GpuOccupancy& b) {
    return std::pair(a.node, a.gpu_id) < std::pair(b.node, b.gpu_id);
  });
  return result;
}

}  // namespace weir::kfd
