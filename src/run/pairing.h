// Finds which point of one result file belongs to which of another, by what was run and never by position.
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
  std::string left;  // "(none)" where only the other side has it
  std::string right;
};
// What keeps two points from being the same configuration. Names that one side's format cannot know are passed over.
std::vector<KeyDifference> key_differences(const ResultPoint& left, const ResultPoint& right);

// Repeated runs of one configuration become one point with all their samples: they are the only view of the variation
// between runs, so refusing or dropping them would hide it. A run that is there twice (a sweep beside its own points)
// counts once, and one failed run fails the point. Device names keep points apart.
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
// Points on the same device first, then those that differ in nothing but the device. The null device pairs with itself
// only. A point that fits several on the other side, because its format does not record enough, stays unpaired.
Pairing pair_points(std::span<const ResultPoint> baseline, std::span<const ResultPoint> test);

// Names of key fields, and "device", that differ among these points: what a label has to mention.
std::set<std::string> varying_fields(std::span<const ResultPoint> points);
// "moe, 8 streams, graph, param hidden 512".
std::string label_of(const ResultPoint& point, const std::set<std::string>& fields);

}  // namespace weir
