// Round trips: a command and its answer between two threads through two channels, every trip timed.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lab/channels/loops/entry.h"
#include "lab/channels/loops/team.h"
#include "measure/statistics.h"

namespace weir::channel_bench {

// The times of a benchmark's trips, by sample and all together.
class Trips {
 public:
  // Keeps this many trips of a sample without an allocation: nothing is allocated while trips are timed.
  explicit Trips(std::size_t reserved = kMax) { ns_.reserve(reserved); }

  void add(std::int64_t ns) noexcept { ns_.push_back(static_cast<double>(ns)); }
  bool is_full() const noexcept { return ns_.size() + 1 >= kMax; }
  std::size_t count() const noexcept { return ns_.size(); }

  void end_sample(Measurement& measurement) {
    if (ns_.empty()) return;
    measurement.samples.push_back(median(ns_));
    all_.insert(all_.end(), ns_.begin(), ns_.end());
    ns_.clear();
  }
  void end(Measurement& measurement) const {
    if (all_.empty()) return;
    measurement.p50_ns = median(all_);
    measurement.p99_ns = quantile(all_, 0.99);
  }

 private:
  static constexpr std::size_t kMax = 1 << 16;
  std::vector<double> ns_, all_;
};

// `sample(trips, sent, received)` takes one sample; sampling ends if something was lost.
template <class Sample>
Measurement measure_each_trip(const Conditions& conditions, Sample&& sample, Trips trips = Trips()) {
  Measurement measurement;
  Tally sent, received;
  for (int i = 0; i < conditions.samples && sent == received; ++i) {
    sample(trips, sent, received);
    trips.end_sample(measurement);
  }
  trips.end(measurement);
  judge(sent, received, measurement);
  return measurement;
}

// The last trip of a sample is marked, because only the asking thread knows the time.
inline constexpr std::uint32_t kLastTrip = std::uint32_t{1} << 31;

// The asking thread: `send` and `receive` move one item and return false if they gave up.
template <class Carried, class Send, class Receive>
void ask(const Conditions& conditions, const Carried& carried, Trips& trips, Tally& sent, Tally& received, Send&& send,
         Receive&& receive) {
  constexpr std::size_t kMinTrips = 50;
  typename Carried::Item item = carried.make();
  Tally there, back;
  const std::int64_t until_ns = now_ns() + static_cast<std::int64_t>(conditions.sample_ms * 1e6);
  for (std::uint32_t turn = 1;; ++turn) {
    const bool is_last = trips.is_full() || (trips.count() >= kMinTrips && now_ns() >= until_ns);
    const std::uint32_t mark = is_last ? turn | kLastTrip : turn;
    carried.mark(item, mark);
    there.add(mark);
    const std::int64_t began = now_ns();
    const bool is_back = send(item) && receive(item);
    const std::int64_t ended = now_ns();
    if (!is_back) break;
    back.add(carried.mark_of(item));
    trips.add(ended - began);
    if (is_last) break;
  }
  sent.add(there);
  received.add(back);
}
// The answering thread, which returns what it was sent.
template <class Carried, class Receive, class Send>
void answer(const Carried& carried, Receive&& receive, Send&& send) {
  typename Carried::Item item = carried.make();
  while (receive(item) && send(item) && (carried.mark_of(item) & kLastTrip) == 0) {
  }
}

// kIsBare: attempts without pauses; for two threads on two cores.
template <class Contestant, class Carried, bool kIsBare>
Measurement measure_trips(const Conditions& conditions) {
  using Item = typename Carried::Item;
  return measure_each_trip(conditions, [&](Trips& trips, Tally& sent, Tally& received) {
    const auto there = std::make_unique<Contestant>(conditions.capacity);
    const auto back = std::make_unique<Contestant>(conditions.capacity);
    run_team(conditions.cores, 2, [&](int thread) {
      const Patience patience;
      const auto wait = [&](auto&& attempt) {
        if constexpr (kIsBare) {
          return patience.poll(attempt);
        } else {
          return patience.until(attempt);
        }
      };
      // Each thread has its own ends: some have state, and those of two threads must not share a cache line.
      auto out = (thread == 0 ? *there : *back).producer();
      auto in = (thread == 0 ? *back : *there).consumer();
      const auto send = [&](const Item& item) { return wait([&] { return out.try_push(item); }); };
      const auto receive = [&](Item& item) { return wait([&] { return in.try_pop(item); }); };
      if (thread == 0) {
        ask(conditions, Carried{}, trips, sent, received, send, receive);
      } else {
        answer(Carried{}, receive, send);
      }
    });
  });
}

}  // namespace weir::channel_bench
