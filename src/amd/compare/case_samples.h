// What happened over time, in bounded memory: counts per stretch of time, and samples thinned evenly, both in order, so
// that intervals can be resampled from them. Knows numbers only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "measure/bootstrap.h"

namespace weir::amd {

// Keeps one of every n samples, in order; n doubles when there are too many. Which one is drawn: programs repeat
// themselves, and every n-th of what repeats would be of one kind.
class ThinnedSamples {
 public:
  static constexpr std::size_t kMost = 4000;
  void add(double value);
  const std::vector<double>& values() const { return values_; }
  std::uint64_t count() const { return count_; }  // that were added

 private:
  std::vector<double> values_;
  std::uint64_t every_ = 1, count_ = 0;
  SplitMix random_{1};
};

struct Stretch {
  double launches = 0, barriers = 0, copies = 0, copied_bytes = 0;
  double pause_ns = 0;  // of pauses that fall into it
  Stretch& operator+=(const Stretch& other);
};

// Equal stretches from the first event on. They begin at 1 us and double where the time outgrows kMost of them.
class Stretches {
 public:
  static constexpr std::size_t kMost = 512;
  // The stretch of this moment; moments before the first count as the first.
  Stretch& at(std::int64_t time_ns);
  // Distributes the time between the two over the stretches. Both are at or after the first event.
  void add_pause(std::int64_t from_ns, std::int64_t to_ns);

  bool is_empty() const { return stretches_.empty(); }
  std::int64_t begin_ns() const { return begin_ns_; }
  std::int64_t last_ns() const { return last_ns_; }
  std::int64_t width_ns() const { return width_ns_; }
  // Those that are over at the last event, `width_ns` each, which is a multiple of their own by a power of two.
  std::vector<Stretch> whole(std::int64_t width_ns) const;

 private:
  std::int64_t begin_ns_ = INT64_MIN, last_ns_ = INT64_MIN, width_ns_ = 1024;
  std::vector<Stretch> stretches_;
};

// A pause is what a suspend and a resume would fit into: 10 ms, by the study's targets of 5 ms for each.
inline constexpr std::int64_t kPauseNs = 10'000'000;
// Less than ten pauses long, an observation does not show which part of the time is pauses.
inline constexpr std::int64_t kShortNs = 10 * kPauseNs;

// Takes the events of one side of a comparison. Runs do not overlap in time; each has its own stretches.
class CaseSampler {
 public:
  static constexpr std::size_t kMostRuns = 16;
  void begin_run();
  void launch(std::int64_t time_ns);
  void barrier(std::int64_t time_ns);
  void copy(std::int64_t time_ns, double bytes);
  // Times between launches are pauses, unless somebody who knows better tells of idle times: call before the first.
  void tell_idle() { is_idle_told_ = true; }
  void idle(std::int64_t from_ns, std::int64_t to_ns);

  ThinnedSamples gap_ns, backlog, duration_ns;
  // Of all runs, by stretches of one width; empty where no run has a whole one.
  std::vector<Stretch> stretches() const;
  std::int64_t width_ns() const;  // of those
  double observed_ns() const;     // from the first to the last event of each run, together
  std::uint64_t runs_left_out() const { return runs_left_out_; }

 private:
  Stretches* run();

  std::vector<Stretches> runs_;
  std::uint64_t runs_left_out_ = 0;
  bool is_new_run_ = true, is_left_out_ = false, is_idle_told_ = false;
  std::int64_t last_launch_ns_ = INT64_MIN;
};

}  // namespace weir::amd
