#include "lab/fleet/probe/links.h"

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/relax.h"

namespace weir::fleet {
namespace {

constexpr int kSpins = 1000;

// The word of a node's data: another one for each node and sample.
std::uint32_t word_of(std::size_t node, std::size_t sample) {
  return static_cast<std::uint32_t>((node + 1) * 0x9e3779b9u + sample * 0x85ebca6bu);
}

struct Exchange {
  std::vector<std::uint32_t> own, both;
};

// The time of one exchange, or nothing where the data arrived changed.
std::optional<double> exchange_ns(Communicator& communicator, const RankGroup& group, const NodePair& pair,
                                  std::size_t self, std::size_t sample, Exchange& data) {
  std::fill(data.own.begin(), data.own.end(), word_of(self, sample));
  const std::int64_t begun_ns = now_ns();
  const Communicator::Request request = communicator.start(0, {CollectiveOp::all_gather, group}, ElementType::i32,
                                                           data.own.data(), data.both.data(), data.own.size());
  for (int spins = 0; !communicator.test(request); ++spins) weir::relax(std::min(spins, kSpins));
  const auto ns = static_cast<double>(now_ns() - begun_ns);
  const auto middle = data.both.begin() + static_cast<std::ptrdiff_t>(data.own.size());
  const auto all_are = [](auto begin, auto end, std::uint32_t word) {
    return std::all_of(begin, end, [&](std::uint32_t each) { return each == word; });
  };
  if (!all_are(data.both.begin(), middle, word_of(pair.one, sample)) ||
      !all_are(middle, data.both.end(), word_of(pair.other, sample)))
    return std::nullopt;
  return ns;
}

NodeLink measure_pair(Communicator& communicator, const RankGroup& group, const NodePair& pair, std::size_t self,
                      const std::vector<std::string>& names, const LinkOptions& options, Exchange& data) {
  NodeLink link;
  link.to = names[self == pair.one ? pair.other : pair.one];
  for (std::size_t sample = 0; sample <= options.samples; ++sample) {
    const auto ns = exchange_ns(communicator, group, pair, self, sample, data);
    if (!ns) {
      link.reason = "the data arrived changed";
    } else if (sample > 0 && *ns > 0) {  // the first one connects
      link.bytes_per_s.push_back(static_cast<double>(options.bytes) * 1e9 / *ns);
    }
  }
  if (!link.reason.empty()) link.bytes_per_s.clear();
  return link;
}

}  // namespace

std::vector<LinkRound> link_rounds(std::size_t nodes, std::size_t most_complete) {
  std::vector<LinkRound> rounds;
  for (std::size_t stride = 1; stride < nodes; stride = nodes <= most_complete ? stride + 1 : stride * 2)
    for (const bool is_shifted : {false, true}) {
      LinkRound round{.stride = stride, .is_shifted = is_shifted, .pairs = {}};
      for (std::size_t one = 0; one + stride < nodes; ++one)
        if ((one / stride % 2 == 1) == is_shifted) round.pairs.push_back({one, one + stride});
      if (!round.pairs.empty()) rounds.push_back(std::move(round));
    }
  return rounds;
}

std::vector<NodeLink> measure_links(Communicator& communicator, const std::vector<int>& ranks_of_nodes,
                                    const std::vector<std::string>& names, const LinkOptions& options) {
  std::vector<NodeLink> links;
  const std::size_t nodes = ranks_of_nodes.size();
  if (nodes < 2) return links;
  const int own_rank = communicator.ranks().rank;
  const auto found = std::find(ranks_of_nodes.begin(), ranks_of_nodes.end(), own_rank);
  const bool takes_part = found != ranks_of_nodes.end();
  const auto self = static_cast<std::size_t>(found - ranks_of_nodes.begin());
  const int apart = ranks_of_nodes[1] - ranks_of_nodes[0];
  bool is_even = ranks_of_nodes[0] == 0;
  for (std::size_t i = 1; i < nodes; ++i) is_even = is_even && ranks_of_nodes[i] - ranks_of_nodes[i - 1] == apart;
  if (!is_even) {
    for (std::size_t i = 0; i < nodes && takes_part; ++i)
      if (i != self) links.push_back({names[i], {}, "the nodes of the job have different numbers of processes"});
    return links;
  }
  Exchange data;
  if (takes_part) {
    data.own.resize(options.bytes / sizeof(std::uint32_t));
    data.both.resize(2 * data.own.size());
  }
  for (const LinkRound& round : link_rounds(nodes)) {
    const RankGroup group{apart * static_cast<int>(round.stride), 2, round.is_shifted ? 1 : 0};
    const bool is_alone = nodes <= options.most_alone;
    communicator.barrier();
    for (const NodePair& pair : round.pairs) {
      if (takes_part && (pair.one == self || pair.other == self)) {
        communicator.open_group(group, 1);
        links.push_back(measure_pair(communicator, group, pair, self, names, options, data));
      }
      if (is_alone) communicator.barrier();
    }
  }
  return links;
}

}  // namespace weir::fleet
