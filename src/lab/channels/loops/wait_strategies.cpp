// The cost of waiting: round trips through the calls that wait, by strategy, compared with the system's own primitives;
// and the time to wake a sleeping consumer.
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <memory>

#include "base/error.h"
#include "lab/channels/loops/carried.h"
#include "lab/channels/loops/contestants.h"
#include "lab/channels/loops/list.h"
#include "lab/channels/loops/trips.h"

namespace weir::channel_bench {
namespace {

// The floor of parking: one written cache line, and a futex that is always woken.
class FutexMailbox {
 public:
  explicit FutexMailbox(std::size_t) {}
  Outcome push(const CommandRecord& item, Limit) noexcept {
    item_ = item;
    turn_.fetch_add(1, std::memory_order_release);  // pairs with the acquire in pop()
    System::wake(turn_, 1);
    return Outcome::done;
  }
  Outcome pop(CommandRecord& item, Limit limit) noexcept {
    while (turn_.load(std::memory_order_acquire) == seen_)  // pairs with the release in push()
      if (!System::wait(turn_, seen_, limit.deadline_ns)) return Outcome::late;
    ++seen_;
    item = item_;
    return Outcome::done;
  }

 private:
  alignas(kApart) std::atomic<std::uint32_t> turn_{0};
  CommandRecord item_{};
  alignas(kApart) std::uint32_t seen_ = 0;  // owned by the reader
};

// The same with a file descriptor. A read has no deadline, but the write cannot fail, so nothing can be lost here.
class EventfdMailbox {
 public:
  explicit EventfdMailbox(std::size_t) : file_(eventfd(0, EFD_CLOEXEC)) {
    if (file_ < 0) fail("eventfd: the system gives no more file descriptors", "Raise the limit: ulimit -n.");
  }
  ~EventfdMailbox() { close(file_); }
  EventfdMailbox(const EventfdMailbox&) = delete;
  EventfdMailbox& operator=(const EventfdMailbox&) = delete;

  Outcome push(const CommandRecord& item, Limit) noexcept {
    item_ = item;
    const std::uint64_t one = 1;
    return write(file_, &one, sizeof one) == sizeof one ? Outcome::done : Outcome::closed;
  }
  Outcome pop(CommandRecord& item, Limit) noexcept {
    std::uint64_t count = 0;
    if (read(file_, &count, sizeof count) != sizeof count) return Outcome::closed;
    item = item_;
    return Outcome::done;
  }

 private:
  int file_;
  alignas(kApart) CommandRecord item_{};
};

template <class Channel>
Measurement measure_trips_that_wait(const Conditions& conditions) {
  return measure_each_trip(conditions, [&](Trips& trips, Tally& sent, Tally& received) {
    const auto there = std::make_unique<Channel>(conditions.capacity);
    const auto back = std::make_unique<Channel>(conditions.capacity);
    run_team(conditions.cores, 2, [&](int thread) {
      const Limit limit = Limit::until(Patience{}.deadline_ns());
      Channel& out = thread == 0 ? *there : *back;
      Channel& in = thread == 0 ? *back : *there;
      const auto send = [&](const CommandRecord& item) { return out.push(item, limit) == Outcome::done; };
      const auto receive = [&](CommandRecord& item) { return in.pop(item, limit) == Outcome::done; };
      if (thread == 0) {
        ask(conditions, Small{}, trips, sent, received, send, receive);
      } else {
        answer(Small{}, receive, send);
      }
    });
  });
}

enum class Waking {
  latency,  // from the start of the push until the consumer has the command
  cost,     // of the push
};

// The consumer waits in pop; the producer pushes after giving it 200 us to fall asleep.
template <class Channel, Waking kWaking>
Measurement measure_waking(const Conditions& conditions) {
  constexpr std::int64_t kSleepNs = 200'000;
  constexpr std::uint32_t kLast = UINT32_MAX;
  Measurement measurement;
  Trips wakes;
  const int count = std::max(5, static_cast<int>(conditions.sample_ms * 1e6 / kSleepNs));
  for (int sample = 0; sample < conditions.samples && measurement.failure.empty(); ++sample) {
    const auto channel = std::make_unique<Channel>(conditions.capacity);
    struct alignas(kApart) Took {
      std::atomic<std::int64_t> at_ns{0};
    };
    const auto took = std::make_unique<Took>();
    Tally sent, received;
    run_team(conditions.cores, 2, [&](int thread) {
      const Patience patience;
      const Limit limit = Limit::until(patience.deadline_ns());
      CommandRecord item = make_synchronize(kAllStreams);
      if (thread == 1) {
        while (channel->pop(item, limit) == Outcome::done && item.id != kLast) {
          took->at_ns.store(now_ns(), std::memory_order_release);  // pairs with the acquire of the producer
          received.add(item.id);
        }
        return;
      }
      for (int i = 0; i < count; ++i) {
        const std::int64_t asleep_ns = now_ns() + kSleepNs;
        while (now_ns() < asleep_ns) System::pause();
        item.id = static_cast<std::uint32_t>(i);
        took->at_ns.store(0, std::memory_order_relaxed);  // the push synchronises with the consumer
        sent.add(item.id);
        const std::int64_t began = now_ns();
        if (channel->push(item, limit) != Outcome::done) return;
        const std::int64_t pushed = now_ns();
        std::int64_t arrived = 0;
        // Pairs with the release of the consumer.
        if (!patience.until([&] { return (arrived = took->at_ns.load(std::memory_order_acquire)) != 0; })) return;
        wakes.add((kWaking == Waking::latency ? arrived : pushed) - began);
      }
      item.id = kLast;
      channel->push(item, limit);
    });
    wakes.end_sample(measurement);
    judge(sent, received, measurement);
  }
  wakes.end(measurement);
  return measurement;
}

struct Contender {
  std::string contestant;
  bool is_ours = true;
};

template <class Channel>
void enter(std::vector<Benchmark>& list, const Conditions& conditions, std::string name, const Contender& contender,
           bool can_sleep) {
  const auto add = [&](std::string full_name, std::string what, Run run) {
    list.push_back({.name = std::move(full_name),
                    .contestant = contender.contestant,
                    .is_ours = contender.is_ours,
                    .what = std::move(what) + sharing(conditions, 2),
                    .run = std::move(run)});
  };
  add(name, "a command there and back through calls that wait", measure_trips_that_wait<Channel>);
  if (!can_sleep) return;
  add("wake_latency/" + name, "from a push until a consumer that slept 200 us has the command",
      measure_waking<Channel, Waking::latency>);
  add("wake_cost/" + name, "the push that wakes a consumer that slept 200 us", measure_waking<Channel, Waking::cost>);
}

template <Wait kWait>
void enter_ours(std::vector<Benchmark>& list, const Conditions& conditions) {
  const std::string name(name_of(kWait));
  enter<Spsc<CommandRecord, kWait>>(list, conditions, name, {"spsc"}, kWait != Wait::spin);
  enter<Mpsc<CommandRecord, kWait>>(list, conditions, name, {"mpsc"}, kWait != Wait::spin);
  enter<OneSubscriber<CommandRecord, kWait>>(list, conditions, name, {"broadcast"}, kWait != Wait::spin);
}

std::vector<Benchmark> benchmarks(const Conditions& conditions) {
  std::vector<Benchmark> list;
  enter_ours<Wait::spin>(list, conditions);
  enter_ours<Wait::spin_then_park>(list, conditions);
  enter_ours<Wait::park>(list, conditions);
  enter<MutexDeque<CommandRecord, Wait::park>>(list, conditions, "park", {"mutex_deque"}, true);
  enter<FutexMailbox>(list, conditions, "park", {"floor", false}, true);
  enter<EventfdMailbox>(list, conditions, "park", {"eventfd", false}, true);
  return list;
}

}  // namespace

Group wait_strategies() {
  return {"wait_strategies", "round trips and waking by what threads do while they wait", "", benchmarks};
}

}  // namespace weir::channel_bench
