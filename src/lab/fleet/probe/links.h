// Links between nodes: pairs of nodes exchange data between their host memories, which tells bad links and bad
// nodes apart. One rank of each node takes part. Knows the communicator; no device.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "device/rank/communicator.h"
#include "lab/fleet/node.h"

namespace weir::fleet {

// Two nodes, by their place in the list of nodes.
struct NodePair {
  std::size_t one = 0, other = 0;
};

// All disjoint pairs that exchange at the same time: those whose places differ by `stride`, in one of two alignments.
struct LinkRound {
  std::size_t stride = 1;
  bool is_shifted = false;
  std::vector<NodePair> pairs;
};

// Every pair of up to `most_complete` nodes; of more nodes those whose places differ by a power of two, so that each is
// measured with some 2 log2(nodes) others on both sides of every bisection.
std::vector<LinkRound> link_rounds(std::size_t nodes, std::size_t most_complete = 16);

struct LinkOptions {
  std::uint64_t bytes = std::uint64_t{16} << 20;  // each way
  std::size_t samples = 5;
  std::size_t most_alone = 8;  // among so many nodes each pair exchanges while the others wait
};

// All ranks call it at the same time. `ranks_of_nodes` are the ranks that take part, with their nodes' names, in order;
// they have to be equally far apart. Returns the links of this rank's node; empty where it takes no part.
std::vector<NodeLink> measure_links(Communicator& communicator, const std::vector<int>& ranks_of_nodes,
                                    const std::vector<std::string>& names, const LinkOptions& options = {});

}  // namespace weir::fleet
