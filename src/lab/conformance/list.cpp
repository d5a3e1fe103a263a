#include "lab/conformance/list.h"

#include <iterator>

namespace weir::conformance {

std::span<const ConformanceCase> cases() {
  static const Cases kCases = [] {
    Cases all;
    for (Cases& group : std::vector{WEIR_CASE_GROUPS})
      all.insert(all.end(), std::make_move_iterator(group.begin()), std::make_move_iterator(group.end()));
    return all;
  }();
  return kCases;
}

}  // namespace weir::conformance
