// Matches the points of two result files, by what was run and never by position.
#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "run/load.h"

namespace weir {

struct KeyDifference {
  std::string name;  // "streams", "param.hidden"
  std::string left;  // "(none)" if only the other side has it
  std::string right;
};
// The differences in configuration between two points. Names that one side's format does not record are skipped.
std::vector<KeyDifference> key_differences(const ResultPoint& left, const ResultPoint& right);

// Repeated runs of one configuration become one point with all their processes: they alone show the variation between
// runs, so rejecting or dropping them would hide it. A duplicate run (a sweep next to its own points) counts once, and
// one failed run fails the point. Points on different devices stay separate.
std::vector<ResultPoint> pool_repeats(std::span<const ResultPoint> points);

struct Unpaired {
  std::size_t index = 0;
  std::string nearest;  // "differs in streams: 8 vs 16", this side's value first
};

struct Pairing {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;  // (baseline, test), in the baseline's order
  std::vector<Unpaired> baseline_only;
  std::vector<Unpaired> test_only;
};
// Pairs points on the same device first, then those that differ only in the device. The null device pairs only with
// itself. A point that matches several on the other side, because its format does not record enough, stays unpaired.
Pairing pair_points(std::span<const ResultPoint> baseline, std::span<const ResultPoint> test);

// Names of key fields, and "device", that differ among these points and so belong in a label.
std::set<std::string> varying_fields(std::span<const ResultPoint> points);
// "moe, 8 streams, graph, param hidden 512".
std::string label_of(const ResultPoint& point, const std::set<std::string>& fields);

}  // namespace weir
