// Assigns process numbers to the lanes of a Chrome trace: hosts, devices, and their hardware queues. Writes nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure/timeline.h"

namespace weir {

// The numbers that Chrome traces call pid, all distinct.
struct ChromeLanes {
  struct Host {
    std::int64_t pid = 0;
    std::int64_t order = 0;   // among processes, in viewers
    std::optional<int> rank;  // set where events must name their rank
    bool is_written = false;
    std::string label;
  };
  struct Device {
    std::int64_t pid = 0, queue_pid = 0;
    std::int64_t order = 0;
    std::string label, queue_label;
  };
  std::vector<Host> hosts;      // by process; at least one
  std::vector<Device> devices;  // by device; at least one

  // A single process keeps its own number and those of its devices, as in Kineto; for all processes (`process` is
  // empty) numbers are made up, because ranks on several hosts may have equal ones.
  ChromeLanes(const Timeline& timeline, std::optional<std::uint16_t> process, std::int64_t process_id);

  const Host& host_of(std::size_t process) const { return hosts[std::min(process, hosts.size() - 1)]; }
  // Where the span's stream is unknown: the first one.
  const Device& device_of(const Timeline& timeline, const Span& span) const {
    const bool is_known = span.stream < timeline.streams.size();
    return devices[is_known ? std::min<std::size_t>(timeline.streams[span.stream].device, devices.size() - 1) : 0];
  }
};

}  // namespace weir
