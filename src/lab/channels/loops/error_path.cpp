// The cost of being refused: no room, closed, nothing there, too late.
#include <algorithm>
#include <array>
#include <vector>

#include "channel/channel.h"
#include "channel/oneshot.h"
#include "lab/channels/loops/contestants.h"
#include "lab/channels/loops/list.h"
#include "lab/channels/loops/trips.h"

namespace weir::channel_bench {
namespace {

enum class Case : std::uint8_t { push_full, push_closed, pop_empty, pop_closed };

// One thread asks repeatedly; each refusal must be the right one, and counts as received.
template <class Channel>
Measurement measure_refusal(const Conditions& conditions, Case which) {
  const BoundToCore bound(conditions.cores);
  Channel channel(64);
  if (which == Case::push_full) {
    while (channel.try_push(make_synchronize(0)) == Outcome::done) {
    }
  }
  if (which == Case::push_closed || which == Case::pop_closed) channel.close();
  const bool is_push = which == Case::push_full || which == Case::push_closed;
  const Outcome wanted = which == Case::push_full   ? Outcome::full
                         : which == Case::pop_empty ? Outcome::empty
                                                    : Outcome::closed;
  const auto attempts = static_cast<std::uint32_t>(std::max(1000.0, conditions.sample_ms * 1e6 / 20));
  return measure_warm(conditions, [&](Tally& sent, Tally& received) {
    std::uint32_t right = 0;
    CommandRecord record = make_synchronize(0);
    const std::int64_t began_ns = now_ns();
    for (std::uint32_t i = 0; i < attempts; ++i)
      right += (is_push ? channel.try_push(record) : channel.try_pop(record)) == wanted ? 1U : 0U;
    const std::int64_t took_ns = now_ns() - began_ns;
    for (std::uint32_t i = 0; i < attempts; ++i) sent.add(i);
    for (std::uint32_t i = 0; i < right; ++i) received.add(i);
    return static_cast<double>(took_ns) / attempts;
  });
}

// How long after its deadline a pop of an empty channel returns.
template <class Channel>
Measurement measure_overshoot(const Conditions& conditions) {
  constexpr std::int64_t kTimeoutNs = 200'000;
  const BoundToCore bound(conditions.cores);
  Channel channel(64);
  const auto times = std::max(5, static_cast<int>(conditions.sample_ms * 1e6 / kTimeoutNs));
  return measure_each_trip(conditions, [&](Trips& trips, Tally& sent, Tally& received) {
    for (int i = 0; i < times; ++i) {
      CommandRecord record;
      const Limit limit = Limit::within(kTimeoutNs);
      sent.add(static_cast<std::uint64_t>(i));
      const Outcome outcome = channel.pop(record, limit);
      const std::int64_t over_ns = now_ns() - limit.deadline_ns;
      if (outcome == Outcome::late && over_ns >= 0) received.add(static_cast<std::uint64_t>(i));
      trips.add(over_ns);
    }
  });
}

// Replies to clients that gave up: each is dropped, and none reaches the client that now waits in the same slot.
Measurement measure_late_reply(const Conditions& conditions) {
  constexpr std::size_t kSlots = 1024;
  const BoundToCore bound(conditions.cores);
  Oneshots<std::uint64_t> replies(kSlots);
  std::vector<Ticket> late(kSlots), waiting(kSlots);
  const auto rounds = static_cast<int>(std::max(1.0, conditions.sample_ms * 1e6 / (kSlots * 40)));
  return measure_warm(conditions, [&](Tally& sent, Tally& received) {
    std::int64_t timed_ns = 0;
    for (int round = 0; round < rounds; ++round) {
      for (Ticket& ticket : late) replies.open(ticket);
      for (const Ticket ticket : late) replies.give_up(ticket);
      for (Ticket& ticket : waiting) replies.open(ticket);
      std::uint32_t refused = 0;
      const std::int64_t began_ns = now_ns();
      for (const Ticket ticket : late) refused += replies.set(ticket, 666) ? 0U : 1U;
      timed_ns += now_ns() - began_ns;
      std::uint64_t reply = 0;
      for (std::size_t i = 0; i < kSlots; ++i) {
        sent.add(i);
        if (i < refused && replies.wait(waiting[i], reply, Limit::none()) == Outcome::empty) received.add(i);
        replies.give_up(waiting[i]);
      }
    }
    return static_cast<double>(timed_ns) / rounds / kSlots;
  });
}

Benchmark make(std::string name, std::string contestant, std::string what, Run run) {
  return {.name = std::move(name), .contestant = std::move(contestant), .what = std::move(what), .run = std::move(run)};
}

template <class Channel>
void offer_refusals(std::vector<Benchmark>& all, const std::string& contestant) {
  struct Named {
    Case which;
    const char *name, *what;
  };
  static constexpr std::array<Named, 4> kCases = {{
      {Case::push_full, "push_full", "try_push where there is no room"},
      {Case::push_closed, "push_closed", "try_push where it is closed"},
      {Case::pop_empty, "pop_empty", "try_pop where there is nothing"},
      {Case::pop_closed, "pop_closed", "try_pop where it is closed and drained"},
  }};
  for (const Named& named : kCases) {
    all.push_back(make(named.name, contestant, named.what, [which = named.which](const Conditions& conditions) {
      return measure_refusal<Channel>(conditions, which);
    }));
  }
}

std::vector<Benchmark> benchmarks(const Conditions&) {
  std::vector<Benchmark> all;
  offer_refusals<Spsc<CommandRecord>>(all, "spsc");
  offer_refusals<Mpsc<CommandRecord>>(all, "mpsc");
  offer_refusals<Mpmc<CommandRecord>>(all, "mpmc");
  offer_refusals<OneSubscriber<CommandRecord>>(all, "broadcast");
  offer_refusals<Priority<CommandRecord>>(all, "priority");
  offer_refusals<MutexDeque<CommandRecord>>(all, "mutex_deque");
  const std::string what = "a pop of nothing with 200 us: how much later it comes back";
  all.push_back(make("overshoot/spin", "mpsc", what, measure_overshoot<Mpsc<CommandRecord, Wait::spin>>));
  all.push_back(
      make("overshoot/spin_then_park", "mpsc", what, measure_overshoot<Mpsc<CommandRecord, Wait::spin_then_park>>));
  all.push_back(make("overshoot/park", "mpsc", what, measure_overshoot<Mpsc<CommandRecord, Wait::park>>));
  all.push_back(make("overshoot/park", "mutex_deque", what, measure_overshoot<MutexDeque<CommandRecord>>));
  all.push_back(
      make("late_reply", "oneshot", "a reply to one who gave up; the slot serves another", measure_late_reply));
  return all;
}

}  // namespace

Group error_path() { return {"error_path", "what a refusal costs, and how late a time-out is", "", benchmarks}; }

}  // namespace weir::channel_bench
