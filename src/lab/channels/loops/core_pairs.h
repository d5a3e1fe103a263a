// Pairs of cores by their distance. Knows the machine through hwloc, if that was compiled in.
#pragma once

#include <string>
#include <vector>

namespace weir::channel_bench {

struct CorePair {
  std::string name;         // neighbours
  std::string where;        // "two cores below one last-level cache"
  int first = 0;            // the system's number
  int second = 0;           // equal to `first`: both threads on one core
  std::string unavailable;  // why this machine, or this build, has no such pair
};

// One pair of each kind, from the same core to another socket, among the cores that this process may use.
std::vector<CorePair> core_pairs();

}  // namespace weir::channel_bench
