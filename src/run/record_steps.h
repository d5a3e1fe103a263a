// Finds the steps of a program in its recorded calls, and those that took much longer than usual. Knows no process.
//
// The rule: where the program names ranges (NVTX), a step is a range of the name whose ranges last longest. Otherwise
// it is the time between two launches of the same kernel (or graph) in one thread, of the kernel that is launched least
// often, but regularly: at least 4 times, at most one interval in 16 is longer than the factor times the median, and
// the last launch is not further back than 64 of them. A step is judged once 8 before it are known; the median is that
// of the last 64.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <unordered_map>

#include "trace/recording.h"

namespace weir {

struct SlowStep {
  std::uint32_t name = record::kNoText;  // text: the range or kernel by which it was found
  std::int64_t took_ns = 0, median_ns = 0;
  std::int64_t ended_ns = 0;
};

class StepFinder {
 public:
  // Steps longer than `factor` times the median are slow.
  explicit StepFinder(double factor) : factor_(factor) {}
  // Takes the newest entries, those of each thread in order. Returns the slowest of the slow steps among them.
  std::optional<SlowStep> add(std::span<const RecordedEntry> entries);

 private:
  struct Series {
    bool is_range = false;
    std::int64_t newest_ns = 0;
    std::uint64_t times = 0;
    std::deque<std::int64_t> took_ns;  // of the last ones
  };
  // Thread, then what names the steps: a text, or a graph.
  using Key = std::uint64_t;

  bool is_regular(const Series& series, std::int64_t median_ns) const;
  void choose();

  double factor_;
  std::int64_t newest_ns_ = 0;
  std::unordered_map<Key, Series> all_;
  std::optional<Key> chosen_;
};

}  // namespace weir
