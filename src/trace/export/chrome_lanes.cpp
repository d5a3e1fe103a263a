#include "trace/export/chrome_lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace weir {
namespace {

// Lanes of hardware queues form a separate process beside the device's streams.
constexpr std::int64_t kQueueProcesses = 1'000'000;
constexpr std::int64_t kHostProcesses = 100'000;

std::string label_of(const TraceDevice& device) {
  return device.label.starts_with("GPU") ? device.label : fmt::format("GPU {}: {}", device.id, device.label);
}

void number_one(ChromeLanes& lanes, const Timeline& timeline, std::uint16_t process, std::int64_t process_id) {
  const auto is_taken = [&](std::int64_t pid) {
    return std::any_of(timeline.devices.begin(), timeline.devices.end(), [&](const TraceDevice& device) {
      return device.id == pid || device.id + kQueueProcesses == pid;
    });
  };
  while (process_id <= 0 || is_taken(process_id))
    process_id = process_id <= 0 ? kHostProcesses : process_id + 10'000'000;
  ChromeLanes::Host& host = lanes.hosts[std::min<std::size_t>(process, lanes.hosts.size() - 1)];
  host.pid = process_id;
  host.order = -1;
  host.is_written = true;
  for (std::size_t i = 0; i < timeline.devices.size(); ++i) {
    const TraceDevice& device = timeline.devices[i];
    lanes.devices[i] = {device.id, kQueueProcesses + device.id, device.id, label_of(device),
                        fmt::format("GPU {} hardware queues", device.id)};
  }
}

// Uses the ranks of the processes where these are distinct, and numbers the processes otherwise.
void number_all(ChromeLanes& lanes, const Timeline& timeline) {
  std::set<int> ranks;
  for (const TraceProcess& process : timeline.processes)
    if (process.rank >= 0) ranks.insert(process.rank);
  const bool has_ranks = ranks.size() == timeline.processes.size();
  std::vector<std::size_t> by_rank(lanes.hosts.size());
  std::iota(by_rank.begin(), by_rank.end(), 0U);
  for (std::size_t i = 0; i < lanes.hosts.size(); ++i) {
    ChromeLanes::Host& host = lanes.hosts[i];
    host.rank = has_ranks && i < timeline.processes.size() ? timeline.processes[i].rank : static_cast<int>(i);
    host.label = fmt::format("rank {}: {}", *host.rank, host.label);
    host.is_written = true;
  }
  std::stable_sort(by_rank.begin(), by_rank.end(),
                   [&](std::size_t a, std::size_t b) { return *lanes.hosts[a].rank < *lanes.hosts[b].rank; });
  // Each host is followed by its devices, each device by its queues; then comes the next rank.
  std::int64_t order = 0, host_pid = kHostProcesses, device_pid = 0;
  for (const std::size_t process : by_rank) {
    lanes.hosts[process].pid = host_pid++;
    lanes.hosts[process].order = order++;
    for (std::size_t i = 0; i < timeline.devices.size(); ++i) {
      const TraceDevice& device = timeline.devices[i];
      if (device.process != process) continue;
      const int rank = *lanes.hosts[process].rank;
      lanes.devices[i] = {device_pid, kQueueProcesses + device_pid, order,
                          fmt::format("rank {}: {}", rank, label_of(device)),
                          fmt::format("rank {}: GPU {} hardware queues", rank, device.id)};
      ++device_pid;
      order += 2;
    }
  }
}

}  // namespace

ChromeLanes::ChromeLanes(const Timeline& timeline, std::optional<std::uint16_t> process, std::int64_t process_id)
    : hosts(std::max<std::size_t>(timeline.processes.size(), 1)),
      devices(std::max<std::size_t>(timeline.devices.size(), 1), {0, kQueueProcesses, 0, "GPU 0", "hardware queues"}) {
  for (std::size_t i = 0; i < hosts.size(); ++i)
    hosts[i].label = i < timeline.processes.size() ? timeline.processes[i].label : "host";
  if (process)
    number_one(*this, timeline, *process, process_id);
  else
    number_all(*this, timeline);
}

}  // namespace weir
