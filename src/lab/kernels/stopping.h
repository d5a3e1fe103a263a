// Decides when there are enough samples. Knows numbers; never their source. docs/bench_method.md has the rules.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "lab/kernels/method.h"

namespace weir::bench {

// The entropy of the distribution of values, in bits, after every sample. It grows while new values keep coming, and is
// level once the samples repeat their distribution.
class EntropyTrail {
 public:
  // Values closer than `width` count as one.
  explicit EntropyTrail(double width) : width_(width) {}
  void add(double sample);
  std::span<const double> bits() const { return bits_; }
  // Whether a line through the later half of the trail rises or falls by less than 0.05 bits, and the trail stays as
  // close to it.
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

  // Called after each sample with all samples so far. Returns the rule by which there are enough, or empty to go on.
  std::string_view enough(std::span<const double> samples);

 private:
  Stop stop_;
  std::size_t min_, max_;
  double width_, sees_ns_;
  std::size_t next_look_;
  std::vector<EntropyTrail> trail_;  // empty until there are the fewest samples
};

}  // namespace weir::bench
