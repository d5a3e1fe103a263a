// What the explorer leaves out makes no difference: random small programs end in the same ways when every order of all
// their steps is tried.
#include <array>
#include <random>
#include <set>
#include <sstream>
#include <vector>

#include "channel/explored.h"
#include "channel/exploring_test.h"

namespace weir::explored {
namespace {

enum class Op { load, store, add, exchange, acquire_fence, release_fence, full_fence, light_fence, heavy_fence, sleep };
struct Line {
  Op op;
  int x;
  std::memory_order order;
};
using Program = std::vector<std::vector<Line>>;
using Outcomes = std::set<std::vector<std::uint32_t>>;

Program make_program(std::mt19937& random, int threads, int lines, bool sleeps) {
  const auto pick = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
  Program program(static_cast<std::size_t>(threads));
  for (auto& thread : program) {
    for (int i = 0; i < lines; ++i) {
      // Half of them loads and stores.
      constexpr Op kOps[] = {Op::load,       Op::load,        Op::load,        Op::store,         Op::store,
                             Op::store,      Op::add,         Op::exchange,    Op::acquire_fence, Op::release_fence,
                             Op::full_fence, Op::light_fence, Op::heavy_fence, Op::sleep};
      Line line{kOps[pick(sleeps ? 14 : 13)], pick(2), std::memory_order_relaxed};
      if (line.op == Op::load && pick(2) == 0) line.order = std::memory_order_acquire;
      if (line.op == Op::store && pick(2) == 0) line.order = std::memory_order_release;
      if (line.op == Op::add && pick(2) == 0) line.order = std::memory_order_acq_rel;
      thread.push_back(line);
    }
  }
  return program;
}

std::string text_of(const Program& program) {
  std::ostringstream text;
  for (const auto& thread : program) {
    for (const Line& line : thread) {
      text << static_cast<int>(line.op) << "(" << line.x << ", " << static_cast<int>(line.order) << ") ";
    }
    text << "| ";
  }
  return text.str();
}

class Runner : public Scenario {
 public:
  Runner(const Program& program, Outcomes& outcomes) : program_(program), outcomes_(outcomes) {}
  int threads() const override { return static_cast<int>(program_.size()); }
  void run(int thread) override {
    std::uint32_t* read = &read_[static_cast<std::size_t>(thread) * 6];
    std::uint32_t value = static_cast<std::uint32_t>(thread) * 10 + 1;
    for (const Line& line : program_[static_cast<std::size_t>(thread)]) {
      auto& x = x_[static_cast<std::size_t>(line.x)];
      switch (line.op) {
        case Op::load:
          *read++ = x.load(line.order) + 1;
          break;
        case Op::store:
          x.store(value++, line.order);
          Explored::wake(x, 1);
          break;
        case Op::add:
          *read++ = x.fetch_add(100, line.order) + 1;
          break;
        case Op::exchange: {
          std::uint32_t expected = 0;
          x.compare_exchange_strong(expected, value++, line.order);
          *read++ = expected + 1;
          break;
        }
        case Op::acquire_fence:
          Explored::acquire_fence();
          break;
        case Op::release_fence:
          Explored::release_fence();
          break;
        case Op::full_fence:
          Explored::full_fence();
          break;
        case Op::light_fence:
          Explored::light_fence();
          break;
        case Op::heavy_fence:
          Explored::heavy_fence();
          break;
        case Op::sleep:
          Explored::wait(x, 0, INT64_MAX);
          break;
      }
    }
  }
  void judge() override {
    std::vector<std::uint32_t> outcome(read_.begin(), read_.end());
    for (auto& x : x_) outcome.push_back(x.load(std::memory_order_relaxed));
    outcomes_.insert(outcome);
  }

 private:
  const Program& program_;
  Outcomes& outcomes_;
  std::array<Explored::Atomic<std::uint32_t>, 2> x_;
  std::array<std::uint32_t, 18> read_{};
};

struct Size {
  int programs, threads, lines;
  bool sleeps = false;
};

class RandomPrograms : public ExploringTest {
 protected:
  // All programs end in the same ways when they are searched like that.
  static void compare(Search search, Model model, const Size& size) {
    std::mt19937 random(7);
    std::uint64_t whole = 0, reduced = 0, stuck = 0;
    for (int i = 0; i < size.programs; ++i) {
      const Program program = make_program(random, size.threads, size.lines, size.sleeps);
      Outcomes all, seen;
      const auto run = [&](Outcomes& outcomes, Search how) {
        return explore([&] { return std::make_unique<Runner>(program, outcomes); }, {.model = model, .search = how});
      };
      const Report every = run(all, search);
      const Report some = run(seen, Search::reduced);
      ASSERT_TRUE(every.is_complete && some.is_complete) << text_of(program);
      ASSERT_EQ(every.failure.empty(), some.failure.empty()) << text_of(program) << every.failure << some.failure;
      whole += every.executions;
      reduced += some.executions;
      if (!every.failure.empty()) {
        ++stuck;
        continue;
      }
      ASSERT_EQ(all, seen) << text_of(program);
    }
    std::cout << "  " << size.programs << " programs, " << stuck << " of them can get stuck: " << reduced
              << " executions instead of " << whole << std::endl;
  }
};

TEST_F(RandomPrograms, StatesSeenOnceAreEnough) {
  compare(Search::everything, Model::weak, {.programs = 200, .threads = 2, .lines = 3});
  compare(Search::everything, Model::weak, {.programs = 200, .threads = 2, .lines = 3, .sleeps = true});
  compare(Search::everything, Model::sequential, {.programs = 200, .threads = 2, .lines = 3, .sleeps = true});
}

TEST_F(RandomPrograms, StepsPutOffAreEnough) {
  compare(Search::all_orders, Model::weak, {.programs = 200, .threads = 2, .lines = 5});
  compare(Search::all_orders, Model::weak, {.programs = 200, .threads = 2, .lines = 5, .sleeps = true});
  compare(Search::all_orders, Model::weak, {.programs = 100, .threads = 3, .lines = 3});
  compare(Search::all_orders, Model::weak, {.programs = 100, .threads = 3, .lines = 3, .sleeps = true});
  compare(Search::all_orders, Model::sequential, {.programs = 200, .threads = 3, .lines = 3, .sleeps = true});
}

}  // namespace
}  // namespace weir::explored
