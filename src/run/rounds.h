// Rounds of processes, the one way in which Weir compares: every round runs each side once, each time in a new process
// and in random order, so that drift, neighbours and warm caches affect all sides alike. Stops when the answer is clear
// enough or the budget is spent. Knows neither what a side is nor how it is measured.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace weir {

struct RoundsPlan {
  std::size_t sides = 1;
  std::size_t min_rounds = 1;  // is_enough is not asked before
  std::size_t max_rounds = 1;
  std::int64_t budget_ns = 0;  // no round begins that would exceed it if it took as long as the last; 0: no budget
  std::uint64_t seed = 1;      // of the order of sides
};

enum class RoundsEnd : std::uint8_t {
  rounds,       // all of max_rounds
  enough,       // is_enough said so
  budget,       // another round would exceed the budget
  interrupted,  // `stop` was set, or run() returned false
};
const char* name_of(RoundsEnd end);

struct RoundsControl {
  // Runs one process of a side and keeps what it measured. Returns false where it was interrupted.
  std::function<bool(std::size_t side, std::size_t round)> run;
  // False skips a side in this round: it was eliminated, failed for good, or a resumed file has this process already.
  // Empty: every side wants every round.
  std::function<bool(std::size_t side, std::size_t round)> wants;
  // Asked after each round from min_rounds on. Empty: never enough.
  std::function<bool(std::size_t rounds)> is_enough;
};

// The order of sides in a round: a permutation that follows from the seed and the round alone, so that a resumed
// experiment goes on with the same order.
std::vector<std::size_t> order_of_round(std::size_t sides, std::uint64_t seed, std::size_t round);

struct RoundsOutcome {
  RoundsEnd end = RoundsEnd::rounds;
  std::size_t rounds = 0;  // complete ones
};

// Call from a thread that outlives the processes that run() starts.
RoundsOutcome run_rounds(const RoundsPlan& plan, const RoundsControl& control, const std::atomic<bool>& stop);

}  // namespace weir
