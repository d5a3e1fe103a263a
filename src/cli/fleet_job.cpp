#include "cli/fleet_job.h"

#include <unistd.h>

#include <array>

#include "base/json.h"
#include "base/options.h"
#include "cli/process.h"
#include "cli/ranks.h"
#include "lab/fleet/probe/links.h"

namespace weir::cli {
namespace {

std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('.', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

JobPlace job_place(bool is_alone, bool each_rank) {
  if (job_ranks().count == 1) return {};
  if (!is_alone && has_mpi_launcher()) return {.has_ranks = true};
  // srun numbers the tasks of a node.
  const auto local = environment_variable("SLURM_LOCALID");
  return {.is_idle = !each_rank && local && *local != "0"};
}

std::string node_name() {
  if (auto name = environment_variable("SLURMD_NODENAME"); name && !name->empty()) return *name;
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const std::string name = host.data();
  return name.empty() ? "localhost" : name.substr(0, name.find('.'));
}

// SLURM_TOPOLOGY_ADDR=s0.s5.node17 with SLURM_TOPOLOGY_ADDR_PATTERN=switch.switch.node: the last switch is the nearest.
std::map<std::string, std::string> node_place() {
  std::map<std::string, std::string> place;
  const auto address = environment_variable("SLURM_TOPOLOGY_ADDR");
  const auto pattern = environment_variable("SLURM_TOPOLOGY_ADDR_PATTERN");
  if (!address || !pattern) return place;
  const std::vector<std::string> names = parts_of(*address), kinds = parts_of(*pattern);
  for (std::size_t i = 0; i < names.size() && i < kinds.size(); ++i)
    if (kinds[i] != "node" && !kinds[i].empty() && !names[i].empty()) place[kinds[i]] = names[i];
  return place;
}

bool is_working_rank(Communicator& communicator, bool each_rank) {
  return each_rank || communicator.local_ranks().rank == 0;
}

std::vector<fleet::NodeReport> gather_nodes(Communicator& communicator, std::optional<fleet::NodeReport> node) {
  communicator.barrier();  // politely: others still measure
  Json names = Json::array();
  for (const std::string& name : communicator.gather(node ? node->name : "")) names.push_back(name);
  names = parse_json(broadcast_text(communicator, names.dump()), "the names of the nodes");
  std::vector<int> ranks;
  std::vector<std::string> known;
  for (std::size_t rank = 0; rank < names.size(); ++rank) {
    if (names[rank].string().empty()) continue;
    ranks.push_back(static_cast<int>(rank));
    known.push_back(names[rank].string());
  }
  std::vector<fleet::NodeLink> links = fleet::measure_links(communicator, ranks, known);
  if (node) node->links = std::move(links);
  std::vector<fleet::NodeReport> nodes;
  for (const std::string& text : communicator.gather(node ? to_line(fleet::to_json(*node)) : ""))
    if (!text.empty()) nodes.push_back(fleet::read_node(parse_json(text, "a node's document"), "a node's document"));
  return nodes;
}

}  // namespace weir::cli
