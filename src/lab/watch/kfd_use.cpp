#include "lab/watch/kfd_use.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"

namespace weir::watch {
namespace {

SampleValue from(const kfd::UseValue& value) { return value.value ? known(*value.value) : unknown(value.reason); }

std::string gpu_label(std::uint32_t gpu_id) { return fmt::format("gpu {:x}", gpu_id); }

std::optional<std::uint64_t> of_gpu(const std::vector<std::pair<std::uint32_t, std::uint64_t>>& values,
                                    std::uint32_t gpu_id) {
  for (const auto& [id, value] : values)
    if (id == gpu_id) return value;
  return std::nullopt;
}

}  // namespace

void KfdUse::listen(const kfd::SysfsState& state) {
  if (events_ == nullptr) {
    std::vector<std::uint32_t> ids;
    for (const kfd::SysfsNode& node : state.nodes)
      if (node.gpu_id != 0) ids.push_back(node.gpu_id);
    events_ = std::make_unique<kfd::SmiListener>(ids, roots_.smi);
  }
  for (const kfd::QueueEvent& event : events_->take())
    if (!event.is_restore) ++evictions_[{event.pid, event.gpu_id}];
}

void KfdUse::add_process(Sample& sample, const kfd::SysfsProcess& process, const kfd::SysfsState& state) {
  const auto drm = kfd::read_drm_use(roots_.proc, process.pid);
  std::string name = read_kernel_file((roots_.proc / std::to_string(process.pid) / "comm").string(), 64);
  if (!name.empty() && name.back() == '\n') name.pop_back();
  for (const kfd::SysfsNode& node : state.nodes) {
    const auto memory = of_gpu(process.vram_bytes, node.gpu_id);
    const auto units = of_gpu(process.cu_occupancy, node.gpu_id), evicted = of_gpu(process.evicted_ms, node.gpu_id);
    const bool has_queue = std::any_of(process.queues.begin(), process.queues.end(),
                                       [&](const kfd::SysfsQueue& queue) { return queue.gpu_id == node.gpu_id; });
    // KFD lists every GPU for every process.
    if (node.gpu_id == 0 || (!has_queue && memory.value_or(0) == 0)) continue;
    ProcessUse use;
    use.pid = process.pid;
    use.name = name;
    use.device = gpu_label(node.gpu_id);
    const auto of_files = drm ? drm->find(kfd::pci_name(node)) : kfd::DrmUses::const_iterator();
    const bool has_files = drm && of_files != drm->end();
    use.memory_bytes = memory      ? known(static_cast<double>(*memory))
                       : has_files ? known(static_cast<double>(of_files->second.memory_bytes))
                                   : unknown("KFD does not show it for this process");
    use.compute_units = units ? known(static_cast<double>(*units))
                              : unknown("this driver does not show which compute units have waves of it");
    use.evicted_ns = evicted ? known(static_cast<double>(*evicted) * 1e6) : unknown("this driver does not count it");
    const auto counted = evictions_.find({process.pid, node.gpu_id});
    use.evictions = events_->is_open() ? known(counted == evictions_.end() ? 0 : static_cast<double>(counted->second))
                                       : unknown(events_->reason());
    use.busy = unknown(!drm         ? "its open files may not be read (/proc/PID/fdinfo)"
                       : !has_files ? "it has no open file of this GPU"
                                    : "seen for the first time: a share needs two samples");
    if (has_files) {
      auto& before = engine_ns_[{process.pid, node.gpu_id}];
      if (!before.empty() && sample.window_ns) {
        std::uint64_t most = 0;
        for (const auto& [engine, ns] : of_files->second.engine_ns)
          most = std::max(most, ns - std::min(ns, before[engine]));
        use.busy = known(std::min(1.0, static_cast<double>(most) / static_cast<double>(*sample.window_ns)));
      }
      before = of_files->second.engine_ns;
    }
    sample.processes.push_back(std::move(use));
  }
}

void KfdUse::add_to(Sample& sample, const kfd::Snapshot& snapshot) {
  if (!snapshot.sysfs) return;
  listen(*snapshot.sysfs);
  for (const kfd::SysfsNode& node : snapshot.sysfs->nodes) {
    if (node.gpu_id == 0) continue;
    const kfd::GpuUse use = kfd::read_gpu_use(roots_.sysfs, node);
    const std::string device = gpu_label(node.gpu_id);
    sample.facts.push_back({"utilisation", "ratio", "Of the time lately in which the GPU did something, whoever's.",
                            from(use.busy), device});
    sample.facts.push_back({"memory_taken", "bytes", "Of video memory, by all.", from(use.memory_used_bytes), device});
    sample.facts.push_back({"memory", "bytes", "Of the device.", from(use.memory_bytes), device});
    sample.facts.push_back({"power", "watts", "Of the whole device.", from(use.power_w), device});
  }
  for (const kfd::SysfsProcess& process : snapshot.sysfs->processes) add_process(sample, process, *snapshot.sysfs);
}

}  // namespace weir::watch
