// A job of several processes that probes several nodes: which processes work, and how their documents come together.
// Knows the communicator; measures only links.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "device/rank/communicator.h"
#include "lab/fleet/node.h"

namespace weir::cli {

// How srun or mpirun started this process.
struct JobPlace {
  bool has_ranks = false;  // there are other processes, and MPI connects them
  bool is_idle = false;    // without MPI: another process of this node does the work
};
// `is_alone`: without MPI in any case. `each_rank`: every process is a node.
JobPlace job_place(bool is_alone, bool each_rank);

// As Slurm calls it, else the host's.
std::string node_name();
// Where the node stands, from Slurm's topology plugin: "switch", "block".
std::map<std::string, std::string> node_place();

// Whether this rank works for its node: one does, the others wait.
bool is_working_rank(Communicator& communicator, bool each_rank);
// Measures the links between the nodes and gathers their documents. All ranks call it; `node` is empty on those that do
// not work. On rank 0: the nodes by rank.
std::vector<fleet::NodeReport> gather_nodes(Communicator& communicator, std::optional<fleet::NodeReport> node);

}  // namespace weir::cli
