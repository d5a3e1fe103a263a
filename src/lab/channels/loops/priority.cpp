// Urgent commands first: the cost of putting in 10,000 and taking them out, and how long an urgent command waits behind
// 1000 others.
#include "channel/priority.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <queue>
#include <vector>

#include "channel/channel.h"
#include "lab/channels/loops/entry.h"
#include "lab/channels/loops/list.h"
#include "lab/channels/loops/team.h"

namespace weir::channel_bench {
namespace {

constexpr std::uint32_t kItems = 10'000;
constexpr std::uint32_t kWaiting = 1000;
constexpr std::size_t kLevels = 4;
constexpr std::int64_t kWorkNs = 1000;

template <class Channel>
struct Ours {
  explicit Ours(std::size_t capacity) : channel(capacity) {}
  bool try_push(const CommandRecord& record) noexcept { return channel.try_push(record) == Outcome::done; }
  bool try_pop(CommandRecord& record) noexcept { return channel.try_pop(record) == Outcome::done; }
  Channel channel;
};

// The textbook version: a heap protected by a mutex, with a number that keeps equal items in order.
class MutexHeap {
 public:
  explicit MutexHeap(std::size_t) {}
  bool try_push(const CommandRecord& record) {
    const std::lock_guard lock(mutex_);
    heap_.push({record, next_++});
    return true;
  }
  bool try_pop(CommandRecord& record) {
    const std::lock_guard lock(mutex_);
    if (heap_.empty()) return false;
    record = heap_.top().record;
    heap_.pop();
    return true;
  }

 private:
  struct Entry {
    CommandRecord record;
    std::uint64_t number;
    friend bool operator<(const Entry& a, const Entry& b) {
      return a.record.priority != b.record.priority ? a.record.priority > b.record.priority : a.number > b.number;
    }
  };
  std::mutex mutex_;
  std::priority_queue<Entry> heap_;
  std::uint64_t next_ = 0;
};

class MutexDeques {
 public:
  explicit MutexDeques(std::size_t) {}
  bool try_push(const CommandRecord& record) {
    const std::lock_guard lock(mutex_);
    levels_[std::min<std::size_t>(record.priority, kLevels - 1)].push_back(record);
    return true;
  }
  bool try_pop(CommandRecord& record) {
    const std::lock_guard lock(mutex_);
    for (std::deque<CommandRecord>& level : levels_) {
      if (level.empty()) continue;
      record = level.front();
      level.pop_front();
      return true;
    }
    return false;
  }

 private:
  std::mutex mutex_;
  std::array<std::deque<CommandRecord>, kLevels> levels_;
};

CommandRecord record_of(std::uint32_t id, std::uint8_t priority) {
  CommandRecord record = make_synchronize(0, id);
  record.priority = priority;
  return record;
}
// Levels in an order that a branch predictor cannot learn.
std::uint8_t level_of(std::uint32_t i) { return static_cast<std::uint8_t>(Tally::mix(i) >> 20 & (kLevels - 1)); }

// One thread, so that only the queue is measured: all in, then all out.
template <class Queue>
Measurement measure_items(const Conditions& conditions, bool is_enqueue) {
  Measurement measurement;
  const BoundToCore bound(conditions.cores);
  Tally sent, received;
  const auto rounds = static_cast<int>(std::max(1.0, conditions.sample_ms * 1e6 / (kItems * 50)));
  // Kept, because the first round pays for memory and a queue in use does not.
  const auto queue = std::make_unique<Queue>(std::size_t{16'384});
  for (int sample = -1; sample < conditions.samples; ++sample) {
    std::int64_t timed_ns = 0;
    for (int round = 0; round < rounds; ++round) {
      const std::int64_t began_ns = now_ns();
      for (std::uint32_t i = 0; i < kItems; ++i)
        if (queue->try_push(record_of(i, level_of(i)))) sent.add(i);
      const std::int64_t between_ns = now_ns();
      CommandRecord record;
      std::uint8_t before = 0;
      bool is_ordered = true;
      while (queue->try_pop(record)) {
        received.add(record.id);
        is_ordered &= before <= record.priority;
        before = record.priority;
      }
      timed_ns += is_enqueue ? between_ns - began_ns : now_ns() - between_ns;
      if (!is_ordered) {
        measurement.failure = "a less urgent command came before a more urgent one";
        return measurement;
      }
    }
    if (sample >= 0) measurement.samples.push_back(static_cast<double>(timed_ns) / rounds / kItems);
  }
  judge(sent, received, measurement);
  return measurement;
}

// An urgent command arrives while 1000 commands of 1 us each are in front of the consumer: how long until it is taken?
template <class Queue>
Measurement measure_urgent(const Conditions& conditions) {
  Measurement measurement;
  Tally sent, received;
  for (int sample = 0; sample < conditions.samples; ++sample) {
    const auto queue = std::make_unique<Queue>(std::size_t{2048});
    for (std::uint32_t i = 0; i < kWaiting; ++i)
      if (queue->try_push(record_of(i, 2))) sent.add(i);
    std::atomic<std::uint32_t> taken{0};
    std::int64_t pushed_ns = 0, popped_ns = 0;
    run_team(conditions.cores, 2, [&](int thread) {
      if (thread == 0) {
        while (taken.load(std::memory_order_relaxed) < 10) System::pause();  // the consumer is at work; only a hint
        pushed_ns = now_ns();
        if (queue->try_push(record_of(kWaiting, 0))) sent.add(kWaiting);
        return;
      }
      CommandRecord record;
      const std::int64_t give_up_ns = now_ns() + 1'000'000'000;
      for (std::uint32_t i = 0; i <= kWaiting && now_ns() < give_up_ns;) {
        if (!queue->try_pop(record)) continue;
        const std::int64_t now = now_ns();
        if (record.id == kWaiting) popped_ns = now;
        received.add(record.id);
        while (now_ns() < now + kWorkNs) System::pause();
        taken.store(++i, std::memory_order_relaxed);
      }
    });
    measurement.samples.push_back(static_cast<double>(popped_ns - pushed_ns));
  }
  measurement.facts = {{"commands_before_it", kWaiting - 10.0}, {"consumer_ns_per_command", double{kWorkNs}}};
  judge(sent, received, measurement);
  return measurement;
}

template <class Queue>
void offer(const Conditions& conditions, std::vector<Benchmark>& all, const std::string& contestant, bool is_ours,
           bool has_levels) {
  if (has_levels) {
    for (const bool is_enqueue : {true, false})
      all.push_back({.name = is_enqueue ? "enqueue/10000" : "dequeue/10000",
                     .contestant = contestant,
                     .is_ours = is_ours,
                     .what = "one thread puts 10,000 commands of four levels in and takes them out; per command",
                     .run = [is_enqueue](const Conditions& c) { return measure_items<Queue>(c, is_enqueue); }});
  }
  all.push_back({.name = "urgent",
                 .contestant = contestant,
                 .is_ours = is_ours,
                 .unit = Unit::ns_in_all,
                 .what = "how long an urgent command waits behind 1000 others at a consumer of 1 us each",
                 .run = measure_urgent<Queue>,
                 .unavailable = conditions.cores.size() == 1 ? kNeedsOwnCore : ""});
}

std::vector<Benchmark> benchmarks(const Conditions& conditions) {
  std::vector<Benchmark> all;
  offer<Ours<Priority<CommandRecord>>>(conditions, all, "priority", true, true);
  offer<MutexHeap>(conditions, all, "mutex_heap", false, true);
  offer<MutexDeques>(conditions, all, "mutex_four_deques", false, true);
  offer<Ours<Mpsc<CommandRecord>>>(conditions, all, "mpsc", true, false);  // no levels: the cost of waiting in line
  return all;
}

}  // namespace

Group priority() { return {"priority", "urgent commands first: cost per command, and their wait", "", benchmarks}; }

}  // namespace weir::channel_bench
