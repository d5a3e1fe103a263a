// Small protocols with mistakes that people make: the explorer reports each of them, and nothing where there is none.
// (Orders of memory that are too weak: explorer_orders_test.cpp.)
#include <array>
#include <cstdint>
#include <string>

#include "channel/explored_ring.h"
#include "channel/exploring_test.h"
#include "channel/mpmc.h"

namespace weir::explored {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr auto kAcquire = std::memory_order_acquire;
constexpr auto kRelease = std::memory_order_release;

enum class Mistake {
  none,
  looks_before_it_announces,  // whether the channel is closed
  wakes_before_it_publishes,
  writes_before_there_is_room,
  gives_back_before_it_reads,
  sleeps_without_a_look,  // behind the announcement of the sleeper
  closes_silently,        // wakes nobody
  closes_too_early,       // without looking whether something is left
};

// One producer, one consumer, one cell; written down as plainly as can be.
template <Mistake kMistake>
class TinyRing {
 public:
  explicit TinyRing(std::size_t) { Explored::note_write(&item_, sizeof item_); }

  Outcome push(const Item& item, Limit) {
    return wait_for(room_, Outcome::full, [&] { return try_push(item); });
  }
  Outcome pop(Item& item, Limit) {
    return wait_for(items_, Outcome::empty, [&] { return try_pop(item); });
  }
  Moved push_batch(std::span<const Item>, Limit) { return {}; }
  Moved pop_batch(std::span<Item>, Limit) { return {}; }
  void close() {
    closed_.store(1, kRelaxed);
    if (kMistake == Mistake::closes_silently) return;
    items_.notify_all();
    room_.notify_all();
  }
  std::size_t capacity() const { return 1; }

 private:
  using Gate = Event<Wait::park, Explored>;

  Outcome try_push(const Item& item) {
    if (kMistake != Mistake::writes_before_there_is_room && full_.load(kAcquire) != 0) {
      return closed_.load(kRelaxed) != 0 ? Outcome::closed : Outcome::full;
    }
    if (kMistake == Mistake::looks_before_it_announces && closed_.load(kRelaxed) != 0) return Outcome::closed;
    announced_.store(1, kRelaxed);
    Explored::full_fence();
    if (kMistake != Mistake::looks_before_it_announces && closed_.load(kRelaxed) != 0) {
      announced_.store(0, kRelaxed);
      items_.notify();
      return Outcome::closed;
    }
    Explored::note_write(&item_, sizeof item_);
    item_ = item;
    if (kMistake == Mistake::wakes_before_it_publishes) items_.notify();
    full_.store(1, kRelease);
    if (kMistake != Mistake::wakes_before_it_publishes) items_.notify();
    return Outcome::done;
  }
  Outcome try_pop(Item& item) {
    if (kMistake == Mistake::closes_too_early && closed_.load(kRelaxed) != 0) return Outcome::closed;
    if (full_.load(kAcquire) == 0) {
      if (closed_.load(kRelaxed) == 0) return Outcome::empty;
      Explored::full_fence();
      return announced_.load(kRelaxed) == 0 ? Outcome::closed : Outcome::empty;
    }
    announced_.store(0, kRelaxed);
    if (kMistake == Mistake::gives_back_before_it_reads) full_.store(0, kRelease);
    Explored::note_read(&item_, sizeof item_);
    item = item_;
    if (kMistake != Mistake::gives_back_before_it_reads) full_.store(0, kRelease);
    room_.notify();
    return Outcome::done;
  }
  template <class Attempt>
  static Outcome wait_for(Gate& gate, Outcome again, Attempt attempt) {
    Outcome outcome = attempt();
    while (outcome == again) {
      const std::uint32_t key = gate.prepare();
      if (kMistake == Mistake::sleeps_without_a_look || (outcome = attempt()) == again) {
        gate.wait(key, Limit::forever());
        outcome = attempt();
      }
      gate.leave();
    }
    return outcome;
  }

  Item item_{};
  Explored::Atomic<std::uint32_t> full_{0}, announced_{0}, closed_{0};
  Gate items_, room_;
};

class Mutants : public LargeExploringTest {};

template <Mistake kMistake>
std::string failure_of(const Plan& plan) {
  const Report report = explore_program<RingScenario<TinyRing<kMistake>>>({}, plan);
  EXPECT_TRUE(report.is_complete) << report.text();
  EXPECT_EQ(report.schedule.empty(), report.failure.empty());
  return report.failure;
}

TEST_F(Mutants, OfARing) {
  const Plan plan{.pushes = 2, .capacity = 1};
  const Plan closed{.pushes = 1, .capacity = 1, .closes_last = false, .consumer_closes = true};
  const Plan open{.pushes = 2, .pops = 2, .capacity = 1, .closes_last = false};
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  EXPECT_EQ(failure_of<Mistake::none>(plan), "");
  EXPECT_EQ(failure_of<Mistake::none>(closed), "");
  EXPECT_EQ(failure_of<Mistake::none>(open), "");
  EXPECT_TRUE(has(failure_of<Mistake::looks_before_it_announces>(closed), "never popped"));
  EXPECT_TRUE(has(failure_of<Mistake::wakes_before_it_publishes>(open), "nobody can go on"));
  EXPECT_TRUE(has(failure_of<Mistake::writes_before_there_is_room>(open), "than it can hold"));
  EXPECT_TRUE(has(failure_of<Mistake::gives_back_before_it_reads>(open), "race"));
  EXPECT_TRUE(has(failure_of<Mistake::sleeps_without_a_look>(open), "nobody can go on"));
  EXPECT_TRUE(has(failure_of<Mistake::closes_silently>(plan), "nobody can go on"));
  EXPECT_TRUE(has(failure_of<Mistake::closes_too_early>(plan), "never popped"));
}

// A mask that says whether there is something: the producer sets it only where it is not set, so that it need not be
// written each time. The consumer that clears it must look once more afterwards.
template <bool kLooksAgain, bool kHasFence>
class Mask : public Scenario {
 public:
  int threads() const override { return 2; }
  void run(int thread) override {
    if (thread == 0) {
      for (std::uint32_t i = 1; i <= 2; ++i) {
        count_.store(i, kRelease);
        Explored::light_fence();
        if (mask_.load(kRelaxed) == 0) mask_.store(1, kRelease);
      }
      return;
    }
    for (int i = 0; i < 2; ++i) {
      if (mask_.load(kAcquire) == 0) continue;
      seen_ = count_.load(kRelaxed);
      mask_.store(0, kRelaxed);
      if (kHasFence) Explored::heavy_fence();
      if (kLooksAgain && count_.load(kRelaxed) != seen_) mask_.store(1, kRelaxed);
    }
  }
  void judge() override {
    if (mask_.load(kRelaxed) == 0 && seen_ != 2) fail("there is something, and the mask does not say so");
  }

 private:
  Explored::Atomic<std::uint32_t> count_{0}, mask_{0};
  std::uint32_t seen_ = 0;
};

TEST_F(Mutants, OfAMask) {
  const auto fails = [](const Report& report) { return report.is_complete && !report.failure.empty(); };
  EXPECT_FALSE(fails(explore_program<Mask<true, true>>({})));
  EXPECT_TRUE(fails(explore_program<Mask<false, true>>({})));
  EXPECT_TRUE(fails(explore_program<Mask<true, false>>({})));
}

// A ring of many consumers where one who was woken and got something does not wake the next (wait.h, PassOn).
template <PassOn kPassOn>
class Handing : public Scenario {
 public:
  int threads() const override { return 4; }
  void run(int thread) override {
    if (thread < 2) {
      ready_[static_cast<std::size_t>(thread)].store(1, kRelease);
      event_.notify();
      return;
    }
    await<Wait::park, Explored, kPassOn>(event_, Limit::forever(), Outcome::empty, [&] {
      std::uint32_t next = next_.load(kRelaxed);
      while (next < 2 && ready_[next].load(kAcquire) != 0) {
        if (next_.compare_exchange_weak(next, next + 1, kRelaxed)) return Outcome::done;
      }
      return Outcome::empty;
    });
  }

 private:
  Explored::Atomic<std::uint32_t> next_{0};
  std::array<Explored::Atomic<std::uint32_t>, 2> ready_;  // in any order, and taken in order
  Event<Wait::park, Explored> event_;
};

TEST_F(Mutants, OfPassingOn) {
  const Report lonely = explore_program<Handing<PassOn::no>>({.model = Model::sequential});
  EXPECT_NE(lonely.failure.find("nobody can go on"), std::string::npos) << lonely.text();
  const Report passed_on = explore_program<Handing<PassOn::yes>>({.model = Model::sequential});
  EXPECT_TRUE(passed_on.is_complete && passed_on.failure.empty()) << passed_on.text();
}

}  // namespace
}  // namespace weir::explored
