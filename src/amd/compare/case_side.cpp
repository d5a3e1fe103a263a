#include "amd/compare/case_side.h"

#include <fmt/format.h>

#include <algorithm>

#include "amd/compare/case_samples.h"
#include "base/units.h"

namespace weir::amd {

std::string_view name_of(CaseSource source) {
  constexpr std::string_view kNames[] = {"log", "capture", "log_report", "timeline"};
  return kNames[static_cast<std::size_t>(source)];
}

std::uint64_t CaseSide::count(CaseQueue::Kind kind) const {
  return static_cast<std::uint64_t>(
      std::count_if(queues.begin(), queues.end(), [&](const CaseQueue& queue) { return queue.kind == kind; }));
}

bool is_short(const CaseSide& side) { return side.observed_ns < static_cast<double>(kShortNs); }

void take_totals(const LogTotals& totals, CaseSide& side) {
  if (side.queues.empty()) side.queues_reason = "the log creates no queue and writes to none";
  side.copy_queues_reason = "a runtime log does not show the queues of copy engines; snapshots of KFD do";
  std::stable_sort(side.kernels.begin(), side.kernels.end(),
                   [](const CaseKernel& a, const CaseKernel& b) { return a.count > b.count; });
  if (side.kernels.empty()) side.kernels_reason = "the log names no kernel";
  if (totals.dispatches > 0) {
    side.barriers = totals.barriers;
  } else {
    side.barriers_reason = "the log has no packets: they are written from level 4 on (from ROCm 7.2 on: 5)";
  }
  if (totals.copies > 0) {
    side.copies = totals.copies;
    side.copied_bytes = totals.copied_bytes;
    if (totals.engines > 0) side.copy_engines = totals.engines;
  } else {
    side.copies_reason = "the log has no copy by an engine; its mask may leave them out (COPY is 0x100)";
  }
  side.launch_time = totals.dispatches > 0 ? "when the host wrote the packet" : "when the host named the kernel";
  side.is_pause_bound = true;
  side.of(CaseQuantity::kernel_duration).reason =
      "a runtime log has the host's times only: how long kernels ran needs a timeline";
}

void take_samples(const CaseSampler& sampler, CaseSide& side) {
  const std::vector<Stretch> stretches = sampler.stretches();
  const auto width = static_cast<double>(sampler.width_ns());
  side.observed_ns = sampler.observed_ns();
  side.stretch_ns = width;
  if (CaseSamples& pauses = side.of(CaseQuantity::pause_share); is_short(side) && pauses.reason.empty())
    pauses.reason = fmt::format("observed for {}: the share of pauses of {} ms is known from {} ms on",
                                format_duration(side.observed_ns), kPauseNs / 1'000'000, kShortNs / 1'000'000);
  const auto fill = [&](CaseQuantity quantity, double Stretch::* count, double scale) {
    CaseSamples& samples = side.of(quantity);
    if (!samples.reason.empty()) return;
    for (const Stretch& stretch : stretches) samples.values.push_back(stretch.*count * scale);
    if (samples.values.empty()) samples.reason = "no whole stretch of time lies between the first and the last event";
  };
  fill(CaseQuantity::launch_rate, &Stretch::launches, 1e9 / width);
  fill(CaseQuantity::barrier_rate, &Stretch::barriers, 1e9 / width);
  fill(CaseQuantity::copy_rate, &Stretch::copies, 1e9 / width);
  fill(CaseQuantity::copied_bytes_rate, &Stretch::copied_bytes, 1e9 / width);
  fill(CaseQuantity::pause_share, &Stretch::pause_ns, 1 / width);
  const auto take = [&](CaseQuantity quantity, const ThinnedSamples& from, const char* reason) {
    CaseSamples& samples = side.of(quantity);
    if (!samples.reason.empty()) return;
    samples.values = from.values();
    if (samples.values.empty()) samples.reason = reason;
  };
  take(CaseQuantity::gap, sampler.gap_ns, "fewer than two launches");
  take(CaseQuantity::backlog, sampler.backlog, "no launch reports how many were before it");
  take(CaseQuantity::kernel_duration, sampler.duration_ns, "no kernel has a start and an end");
  if (sampler.runs_left_out() > 0)
    side.notes.push_back("Runs of this file beyond the first 16 are not in rates, gaps and pauses.");
}

}  // namespace weir::amd
