#include "trace/analyse/overlap_slowdown.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "measure/statistics.h"
#include "trace/device_spans.h"
#include "trace/intervals.h"

namespace weir {
namespace {

constexpr double kMaxShared = 0.5;  // of an instance's time; from this share on it counts as beside a collective
constexpr double kSignificance = 0.01;
constexpr double kSmallestChange = 0.02;

// How much of an interval communication covers.
class Cover {
 public:
  explicit Cover(TimeIntervals intervals) : intervals_(std::move(intervals)) {
    for (const TimeInterval& interval : intervals_)
      before_.push_back(before_.back() + distance_ns(interval.from_ns, interval.to_ns));
  }
  std::uint64_t within(std::int64_t from_ns, std::int64_t to_ns) const { return until(to_ns) - until(from_ns); }

 private:
  std::uint64_t until(std::int64_t ns) const {
    const auto after = std::upper_bound(intervals_.begin(), intervals_.end(), ns,
                                        [](std::int64_t t, const TimeInterval& one) { return t < one.from_ns; });
    const auto count = static_cast<std::size_t>(after - intervals_.begin());
    if (count == 0) return 0;
    const TimeInterval& last = intervals_[count - 1];
    return before_[count - 1] + distance_ns(last.from_ns, std::min(ns, last.to_ns));
  }

  TimeIntervals intervals_;
  std::vector<std::uint64_t> before_{0};  // time covered before interval i
};

struct Instances {
  std::vector<double> alone, beside;
};

}  // namespace

OverlapSlowdown overlap_slowdown(const Timeline& timeline) {
  OverlapSlowdown found;
  std::vector<TimeInterval> stretches;
  const std::vector<std::uint32_t> order = device_work_by_start(timeline);
  for (const std::uint32_t i : order)
    if (timeline.spans[i].kind == SpanKind::collective)
      stretches.push_back({timeline.spans[i].started_ns, timeline.spans[i].ended_ns});
  TimeIntervals communication = unite_all(std::move(stretches));
  if (communication.empty()) {
    found.reason = "no collective ran";
    return found;
  }
  const Cover cover(std::move(communication));
  std::unordered_map<std::uint32_t, Instances> by_name;
  for (const std::uint32_t i : order) {
    const Span& span = timeline.spans[i];
    if (span.kind != SpanKind::kernel || span.name == kNoName || span.ended_ns == span.started_ns) continue;
    const auto took = length_between(span.started_ns, span.ended_ns);
    const auto shared = static_cast<double>(cover.within(span.started_ns, span.ended_ns));
    if (shared == 0)
      by_name[span.name].alone.push_back(took);
    else if (shared >= kMaxShared * took)
      by_name[span.name].beside.push_back(took);
    else
      ++found.partly;
  }
  double expected_ns = 0;
  std::size_t beside = 0;
  for (const auto& [name, instances] : by_name) {
    beside += instances.beside.size();
    if (std::min(instances.alone.size(), instances.beside.size()) < kMinInstances) {
      ++found.too_few;
      continue;
    }
    KernelSlowdown kernel;
    kernel.name = name;
    kernel.alone = instances.alone.size();
    kernel.beside = instances.beside.size();
    kernel.alone_p50_ns = median(instances.alone);
    kernel.beside_p50_ns = median(instances.beside);
    kernel.ratio = kernel.beside_p50_ns / kernel.alone_p50_ns;
    kernel.p = mann_whitney(instances.beside, instances.alone).p;
    kernel.cost_ns = (kernel.beside_p50_ns - kernel.alone_p50_ns) * static_cast<double>(kernel.beside);
    // Sums of medians, as everywhere here: one preempted instance must not distort the rest.
    found.beside_ns += kernel.beside_p50_ns * static_cast<double>(kernel.beside);
    expected_ns += kernel.alone_p50_ns * static_cast<double>(kernel.beside);
    found.kernels.push_back(kernel);
  }
  found.names = found.kernels.size();
  if (found.kernels.empty()) {
    found.reason = beside == 0 ? "no kernel ran beside a collective"
                               : "no kernel ran at least 5 times alone and 5 times beside a collective";
    return found;
  }
  found.ratio = found.beside_ns / expected_ns;
  std::sort(found.kernels.begin(), found.kernels.end(), [](const KernelSlowdown& a, const KernelSlowdown& b) {
    return a.cost_ns != b.cost_ns ? a.cost_ns > b.cost_ns : a.name < b.name;
  });
  std::vector<double> p_values;
  for (const KernelSlowdown& kernel : found.kernels) p_values.push_back(kernel.p);
  const std::vector<double> adjusted = holm(p_values);
  for (std::size_t i = 0; i < found.kernels.size(); ++i) {
    KernelSlowdown& kernel = found.kernels[i];
    kernel.p = adjusted[i];
    kernel.is_clear = kernel.p < kSignificance && std::fabs(kernel.ratio - 1) >= kSmallestChange;
    if (!kernel.is_clear) continue;
    ++found.clear;
    found.cost_ns += kernel.cost_ns;
  }
  if (found.kernels.size() > kMaxSlowdowns) found.kernels.resize(kMaxSlowdowns);
  return found;
}

}  // namespace weir
