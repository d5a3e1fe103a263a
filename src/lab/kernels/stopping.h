// When there are samples enough. Knows numbers; never who made them. docs/bench_method.md has the rules.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "lab/kernels/method.h"

namespace weir::bench {

// The entropy of how often each value came, in bits, after every sample. While new values keep coming it grows; once
// the samples repeat their distribution it is level.
class EntropyTrail {
 public:
  // Values closer than `width` count as one.
  explicit EntropyTrail(double width) : width_(width) {}
  void add(double sample);
  std::span<const double> bits() const { return bits_; }
  // A line through the later half of the trail rises or falls by less than 0.05 bits, and the trail keeps as close to
  // it.
  bool is_level() const;

 private:
  double width_;
  std::map<double, double> counts_;
  double weighted_ = 0;  // sum of count * log2(count)
  std::vector<double> bits_;
};

class Stopping {
 public:
  // `sees_ns`: the smallest difference between two samples that the clock shows.
  Stopping(const MethodOptions& options, double sees_ns);

  // Asked after each sample, with all so far. Empty: go on; else by which rule there is enough.
  std::string_view enough(std::span<const double> samples);

 private:
  Stop stop_;
  std::size_t fewest_, most_;
  double width_, sees_ns_;
  std::size_t next_look_;
  std::vector<EntropyTrail> trail_;  // none before the fewest samples are there
};

}  // namespace weir::bench
