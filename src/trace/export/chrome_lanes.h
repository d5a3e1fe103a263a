// Which process numbers the lanes of a Chrome trace have: hosts, devices, and their hardware queues. Writes nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure/timeline.h"

namespace weir {

// Numbers that Chrome traces call pid, all different.
struct ChromeLanes {
  struct Host {
    std::int64_t pid = 0;
    std::int64_t order = 0;   // among processes, for viewers
    std::optional<int> rank;  // where events must say whose they are
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

  // One process has its own number and its devices theirs, as Kineto has them; of all processes (`process` is nothing)
  // numbers are made up, because ranks of several hosts may have the same.
  ChromeLanes(const Timeline& timeline, std::optional<std::uint16_t> process, std::int64_t process_id);
};

}  // namespace weir
