// Texts about traces between the processes that hold them and rank 0, which knows all traces by number. Knows nothing
// of what they say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "device/rank/communicator.h"

namespace weir {

class TraceExchange {
 public:
  // `numbers`: this process's traces, among `total` of all processes.
  TraceExchange(Communicator& ranks, std::vector<std::size_t> numbers, std::size_t total);

  bool is_first() const { return ranks_.ranks().rank == 0; }
  std::size_t total() const noexcept { return total_; }
  // `own` is by position in `numbers`; on rank 0 the answer is by number, elsewhere empty. Throws if a trace is with
  // no process, or with two.
  std::vector<std::string> gather(const std::vector<std::string>& own);
  // The way back, after a gather(): rank 0 passes a text for each trace, the others nothing.
  std::vector<std::string> scatter(const std::vector<std::string>& all);

 private:
  Communicator& ranks_;
  std::vector<std::size_t> numbers_;
  std::size_t total_;
  std::vector<std::vector<std::size_t>> held_;  // on rank 0, by rank: its traces
};

// Which captures a rank reads, ascending, so that all read about as much. Depends on the sizes only.
std::vector<std::size_t> captures_of_rank(std::span<const std::uint64_t> sizes, const Ranks& ranks);

}  // namespace weir
