// Pairs of cores by how far they are from each other. Knows the machine through hwloc, where that was compiled in.
#pragma once

#include <string>
#include <vector>

namespace weir::channel_bench {

struct CorePair {
  std::string name;         // neighbours
  std::string where;        // "two cores below one last-level cache"
  int first = 0;            // as the system numbers them
  int second = 0;           // the same as `first`: both threads on one
  std::string unavailable;  // why this machine, or this build, has no such pair
};

// One pair of each kind, from the same core to another socket; among the cores that this process may use.
std::vector<CorePair> core_pairs();

}  // namespace weir::channel_bench
