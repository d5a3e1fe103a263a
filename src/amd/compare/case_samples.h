// Events over time in bounded memory: counts per stretch of time, and evenly thinned samples, both in order, so that
// intervals can be resampled from them. Knows only numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "measure/bootstrap.h"

namespace weir::amd {

// Keeps one of every n samples, in order; n doubles when there are too many. The kept one is drawn at random, because
// programs repeat themselves, and every n-th sample might be of one kind.
class ThinnedSamples {
 public:
  static constexpr std::size_t kMax = 4000;
  void add(double value);
  const std::vector<double>& values() const { return values_; }
  std::uint64_t count() const { return count_; }  // samples added

 private:
  std::vector<double> values_;
  std::uint64_t every_ = 1, count_ = 0;
  SplitMix random_{1};
};

struct Stretch {
  double launches = 0, barriers = 0, copies = 0, copied_bytes = 0;
  double pause_ns = 0;  // the part of pauses within it
  Stretch& operator+=(const Stretch& other);
};

// Equal stretches from the first event on. They start at about 1 us and double when more than kMax would be needed.
class Stretches {
 public:
  static constexpr std::size_t kMax = 512;
  // The stretch at this time; times before the first count as the first.
  Stretch& at(std::int64_t time_ns);
  // Distributes the time between the two over the stretches. Both times are at or after the first event.
  void add_pause(std::int64_t from_ns, std::int64_t to_ns);

  bool is_empty() const { return stretches_.empty(); }
  std::int64_t begin_ns() const { return begin_ns_; }
  std::int64_t last_ns() const { return last_ns_; }
  std::int64_t width_ns() const { return width_ns_; }
  // The stretches that were complete at the last event, merged to `width_ns`, their own width times a power of two.
  std::vector<Stretch> whole(std::int64_t width_ns) const;

 private:
  std::int64_t begin_ns_ = INT64_MIN, last_ns_ = INT64_MIN, width_ns_ = 1024;
  std::vector<Stretch> stretches_;
};

// A pause has room for a suspend and a resume: 10 ms, from the study's targets of 5 ms for each.
inline constexpr std::int64_t kPauseNs = 10'000'000;
// An observation shorter than ten pauses does not show which share of the time is pauses.
inline constexpr std::int64_t kShortNs = 10 * kPauseNs;

// Takes the events of one side of a comparison. Runs do not overlap in time; each has its own stretches.
class CaseSampler {
 public:
  static constexpr std::size_t kMaxRuns = 16;
  void begin_run();
  void launch(std::int64_t time_ns);
  void barrier(std::int64_t time_ns);
  void copy(std::int64_t time_ns, double bytes);
  // By default, times between launches are pauses. Callers that know the idle times call this before the first event.
  void set_idle_known() { is_idle_known_ = true; }
  void idle(std::int64_t from_ns, std::int64_t to_ns);

  ThinnedSamples gap_ns, backlog, duration_ns;
  // From all runs, with stretches of one width; empty if no run has a complete one.
  std::vector<Stretch> stretches() const;
  std::int64_t width_ns() const;  // of the stretches above
  double observed_ns() const;     // from the first to the last event, summed over runs
  std::uint64_t runs_left_out() const { return runs_left_out_; }

 private:
  Stretches* run();

  std::vector<Stretches> runs_;
  std::uint64_t runs_left_out_ = 0;
  bool is_new_run_ = true, is_left_out_ = false, is_idle_known_ = false;
  std::int64_t last_launch_ns_ = INT64_MIN;
};

}  // namespace weir::amd
