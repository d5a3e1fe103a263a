// What the scheduler's gate costs: ns per launch for a client that is alone, for one that shares the device with an
// idle client, and how long a hand-over takes from one process to another.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <vector>

#include "base/clock.h"
#include "measure/statistics.h"
#include "submit/sched/gate.h"

namespace {

using namespace weir;
using namespace weir::scheduler;

constexpr int kRounds = 101, kCalls = 10'000, kHandOvers = 2001;

struct Common {
  Board board;
  std::atomic<int> asked{0};   // hand-over that the urgent one is to make next
  std::atomic<int> passed{0};  // and the one that came through
  std::atomic<std::int64_t> passed_ns{0};
};

template <class Body>
void report(const char* what, Body&& body) {
  std::vector<double> samples;
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t begun = now_ns();
    for (int i = 0; i < kCalls; ++i) body();
    samples.push_back(static_cast<double>(now_ns() - begun) / kCalls);
  }
  const auto [least, most] = std::minmax_element(samples.begin(), samples.end());
  fmt::print("{:<44}{:>8.1f}   [{:.1f} .. {:.1f}]\n", what, median(samples), *least, *most);
}

// A child waits at its gate behind us; how long after our bit falls does it come through? Least, median, 99 %.
void hand_over(Common& common, const char* what, const GateLimits& limits, bool is_asleep) {
  common.asked = common.passed = 0;
  const pid_t child = ::fork();
  if (child == 0) {
    Gate gate(common.board, 1, nullptr, nullptr, limits);
    gate.set_linger(0);
    for (int i = 1; i <= kHandOvers; ++i) {
      while (common.asked.load() != i) ::usleep(1);
      gate.enter();
      common.passed_ns = now_ns();
      common.passed = i;
      gate.leave();
      gate.settle(now_ns());
    }
    ::_exit(0);
  }
  Gate gate(common.board, 0);
  gate.set_linger(0);
  std::vector<double> samples;
  for (int i = 1; i <= kHandOvers; ++i) {
    gate.enter();
    common.board.waiting = 0;
    common.asked = i;
    while ((common.board.active.load() & 2) == 0) ::usleep(1);
    if (is_asleep)
      while (common.board.waiting.load() == 0) ::usleep(50);
    const std::int64_t begun = now_ns();
    gate.leave();
    gate.settle(begun + 1'000'000);
    while (common.passed.load() != i) ::usleep(1);
    samples.push_back(static_cast<double>(common.passed_ns.load() - begun));
  }
  ::waitpid(child, nullptr, 0);
  std::sort(samples.begin(), samples.end());
  fmt::print("{:<44}{:>8.1f}   {:.1f} / {:.1f}\n", what, samples[samples.size() / 2] / 1e3, samples.front() / 1e3,
             samples[samples.size() * 99 / 100] / 1e3);
}

}  // namespace

int main() {
  void* const memory = ::mmap(nullptr, sizeof(Common), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  auto& common = *new (memory) Common;
  common.board.beat_ns = kNever;
  Gate gate(common.board, 0);

  fmt::print("{:<44}{:>8}   [least .. most of {} rounds]\n", "the gate", "ns", kRounds);
  std::uint64_t shared = 0;
  report("alone: is_shared()", [&] {
    if (gate.is_shared()) ++shared;
    std::atomic_signal_fence(std::memory_order_seq_cst);  // once per call, not once per loop
  });
  common.board.seats[0].in_flight = common.board.seats[1].in_flight = 2;
  report("shared, others idle: enter() and leave()", [&] {
    if (gate.is_shared()) gate.enter();
    gate.leave();
  });
  gate.settle(now_ns() + 1'000'000'000);
  gate.set_linger(0);
  report("each a request of its own: and settle()", [&] {
    gate.enter();
    gate.leave();
    gate.settle(now_ns());
  });

  common.board.seats[1].yields_to = 1;
  fmt::print("\n{:<44}{:>8}   least / 99 %\n", "hand-over to another process", "us");
  hand_over(common, "that spins", {.spin_ns = 1'000'000'000}, false);
  hand_over(common, "that sleeps", {.spin_ns = 0}, true);
  ::munmap(memory, sizeof(Common));
  return shared == 0 ? 0 : 1;
}
