// Takes things away until those are left that a test needs. Knows neither delays nor programs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace weir::race {

// Delta debugging: the smallest part that it found of `all` for which `holds` is true, as it is for `all`. `holds`
// returns false also where no more can be tried; then what was found so far is returned.
template <class Thing>
std::vector<Thing> shrunk(std::vector<Thing> all, const std::function<bool(const std::vector<Thing>&)>& holds) {
  std::size_t parts = 2;
  while (all.size() > 1) {
    bool is_smaller = false;
    for (std::size_t part = 0; part < parts && !is_smaller; ++part) {
      const std::size_t begin = all.size() * part / parts, end = all.size() * (part + 1) / parts;
      const auto at = [&](std::size_t i) { return all.begin() + static_cast<std::ptrdiff_t>(i); };
      std::vector<Thing> inside(at(begin), at(end));
      if (inside.empty()) continue;
      if (holds(inside)) {
        all = std::move(inside);
        parts = 2;
        is_smaller = true;
      } else if (parts > 2) {
        std::vector<Thing> outside(all.begin(), at(begin));
        outside.insert(outside.end(), at(end), all.end());
        if (holds(outside)) {
          all = std::move(outside);
          parts = std::max<std::size_t>(parts - 1, 2);
          is_smaller = true;
        }
      }
    }
    if (is_smaller) continue;
    if (parts >= all.size()) break;
    parts = std::min(parts * 2, all.size());
  }
  return all;
}

// The last of the indices [0, count) for which `holds`, given that it holds for 0 and not again after it once failed.
inline std::size_t last_that_holds(std::size_t count, const std::function<bool(std::size_t)>& holds) {
  std::size_t yes = 0, no = count;
  while (no - yes > 1) {
    const std::size_t middle = yes + (no - yes) / 2;
    (holds(middle) ? yes : no) = middle;
  }
  return yes;
}

}  // namespace weir::race
