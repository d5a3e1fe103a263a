// A device in virtual time that a client of endless kernels shares with one that brings requests: kernels in a part of
// the device run longer there, and requests beside them have the rest. Everything that runs in the whole device keeps a
// request waiting. Knows no chooser.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "submit/sched/board.h"

namespace weir::testing {

// How the client of endless kernels makes way.
struct Way {
  scheduler::Confine confine = scheduler::Confine::never;
  std::uint32_t part_percent = 0, in_flight = 1;
};

class PartedDevice {
 public:
  struct Demand {
    double kernel_ns = 1e6;     // in the whole device
    double request_ns = 3e5;    // with nobody beside it
    double wants_percent = 10;  // of the device; with less, a request takes longer
    double interval_ns = 5e6;   // mean, between the arrivals of requests
  };

  PartedDevice(const Demand& demand, std::uint64_t seed) : demand_(demand), random_(seed) { draw_arrival(); }

  Way way;

  // Serves all requests that arrive up to then.
  void run_until(double end_ns) {
    while (arrival_ns_ < end_ns) {
      serve(arrival_ns_);
      draw_arrival();
    }
  }

  std::uint64_t requests() const { return count_; }
  double last_end_ns() const { return free_ns_; }
  // Of the last window, and renewed every quarter of it, as a client does it.
  std::int64_t p99_ns() const { return p99_ns_; }
  // What marks show of its longest command.
  std::int64_t command_ns() const {
    const bool is_confined = way.confine != scheduler::Confine::never;
    return static_cast<std::int64_t>(demand_.kernel_ns * (is_confined ? 100.0 / way.part_percent : 1));
  }

  // p99 of many requests.
  static double p99_of(const Demand& demand, const Way& way, std::uint64_t seed) {
    PartedDevice device(demand, seed);
    device.way = way;
    constexpr int kRequests = 8'000;
    std::vector<double> took;
    took.reserve(kRequests);
    for (int i = 0; i < kRequests; ++i) {
      took.push_back(device.serve(device.arrival_ns_));
      device.draw_arrival();
    }
    const auto p99 = took.begin() + kRequests * 99 / 100;
    std::nth_element(took.begin(), p99, took.end());
    return *p99;
  }

 private:
  static constexpr std::size_t kWindow = scheduler::kRequestWindow;

  void draw_arrival() { arrival_ns_ += std::exponential_distribution<double>(1 / demand_.interval_ns)(random_); }

  double serve(double arrival_ns) {
    using scheduler::Confine;
    double begin_ns = std::max(arrival_ns, free_ns_);
    if (begin_ns > free_ns_ && way.confine != Confine::always) {
      // Since the last request has ended, kernels run one after the other in the whole device, `in_flight` of them
      // launched; before that, the last one in its part has to end.
      const double share = way.confine == Confine::beside ? way.part_percent / 100.0 : 1;
      const double first_ns = free_ns_ + (way.confine == Confine::beside ? std::uniform_real_distribution<double>(
                                                                               0, demand_.kernel_ns / share)(random_)
                                                                         : 0);
      if (begin_ns > first_ns) {
        const double begun = std::floor((begin_ns - first_ns) / demand_.kernel_ns);
        begin_ns = first_ns + (begun + way.in_flight) * demand_.kernel_ns;
      }
    }
    const double free_percent = way.confine == Confine::never ? 100.0 : 100.0 - way.part_percent;
    free_ns_ = begin_ns + demand_.request_ns * std::max(1.0, demand_.wants_percent / free_percent);
    const double took_ns = free_ns_ - arrival_ns;
    window_[count_++ % kWindow] = took_ns;
    if (count_ >= kWindow && count_ % (kWindow / 4) == 0) {
      std::array<double, kWindow> sorted = window_;
      const auto p99 = sorted.begin() + kWindow * 99 / 100;
      std::nth_element(sorted.begin(), p99, sorted.end());
      p99_ns_ = static_cast<std::int64_t>(*p99);
    }
    return took_ns;
  }

  Demand demand_;
  std::mt19937_64 random_;
  double arrival_ns_ = 0, free_ns_ = 0;
  std::uint64_t count_ = 0;
  std::array<double, kWindow> window_{};
  std::int64_t p99_ns_ = 0;
};

}  // namespace weir::testing
