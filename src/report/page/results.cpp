#include "report/page/results.h"

#include <algorithm>

#include "report/page/curves.h"
#include "report/page/result_findings.h"

namespace weir::page {
namespace {

// About a megabyte of samples in all: a report of very many points keeps fewer of each.
constexpr std::size_t kMostValues = 512, kFewestValues = 32, kAllValues = 100'000;

}  // namespace

void add_results(Page& page, std::span<const Measured> all) {
  if (all.empty()) return;
  const std::size_t values = std::clamp(kAllValues / all.size(), kFewestValues, kMostValues);
  for (CurveGroup& group : group_measured(page, all)) {
    add_group(page, group, values);
    find_in_group(page, group);
  }
}

}  // namespace weir::page
