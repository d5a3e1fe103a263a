#include "trace/analyse/gaps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <tuple>

#include "measure/statistics.h"
#include "trace/device_spans.h"
#include "trace/intervals.h"

namespace weir {
namespace {

std::uint64_t length_of(const LongGap& gap) noexcept { return distance_ns(gap.from_ns, gap.to_ns); }

// Gaps between the unions of `order`, which is sorted by start.
void collect(const Timeline& timeline, std::span<const std::uint32_t> order, std::vector<LongGap>& to) {
  const Span* last = nullptr;  // the one that ended last so far
  std::uint32_t last_index = 0;
  for (const std::uint32_t index : order) {
    const Span& span = timeline.spans[index];
    if (span.ended_ns == span.started_ns) continue;
    if (last != nullptr && span.started_ns > last->ended_ns)
      to.push_back({last->ended_ns, span.started_ns, last_index, index});
    if (last == nullptr || span.ended_ns > last->ended_ns) {
      last = &span;
      last_index = index;
    }
  }
}

// Reorders `found`.
std::optional<IdleGaps> describe(std::vector<LongGap>& found) {
  if (found.empty()) return std::nullopt;
  IdleGaps gaps;
  gaps.count = found.size();
  std::vector<double> lengths;
  lengths.reserve(found.size());
  std::array<GapBin, 64> bins{};
  for (const LongGap& gap : found) {
    const std::uint64_t length = length_of(gap);
    const auto length_ns = static_cast<double>(length);
    lengths.push_back(length_ns);
    gaps.total_ns += length_ns;
    // A gap is never empty, so its highest bit exists.
    GapBin& bin = bins[static_cast<std::size_t>(std::bit_width(length)) - 1];
    ++bin.count;
    bin.total_ns += length_ns;
  }
  std::sort(lengths.begin(), lengths.end());
  gaps.mean_ns = gaps.total_ns / static_cast<double>(gaps.count);
  gaps.p50_ns = quantile_sorted(lengths, 0.50);
  gaps.p95_ns = quantile_sorted(lengths, 0.95);
  gaps.p99_ns = quantile_sorted(lengths, 0.99);
  gaps.max_ns = lengths.back();
  std::size_t first = 0, end = bins.size();
  while (bins[first].count == 0) ++first;
  while (bins[end - 1].count == 0) --end;
  for (std::size_t i = first; i < end; ++i) {
    bins[i].from_ns = static_cast<double>(std::uint64_t{1} << i);
    gaps.histogram.push_back(bins[i]);
  }
  const std::size_t most = std::min(kMaxLongGaps, found.size());
  std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(most), found.end(),
                    [](const LongGap& a, const LongGap& b) {
                      const std::uint64_t first_length = length_of(a), second_length = length_of(b);
                      return std::tie(second_length, a.from_ns, a.after) < std::tie(first_length, b.from_ns, b.after);
                    });
  gaps.longest.assign(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(most));
  return gaps;
}

}  // namespace

GapsFound gaps(const Timeline& timeline) {
  GapsFound found;
  std::vector<LongGap> all;
  const std::vector<std::uint32_t> work = device_work_by_start(timeline);
  collect(timeline, work, all);
  found.device = describe(all);
  if (!found.device)
    found.reason = work.empty() ? fmt::format("no command of the device has times: {}", timeline.source)
                                : "the device was busy from the first start to the last end";

  const SpanLanes streams = lanes_by_stream(timeline, timed_by_start(timeline));
  all.clear();
  for (std::size_t i = 0; i < streams.ids.size(); ++i) collect(timeline, streams.of(i), all);
  found.within_streams = describe(all);
  return found;
}

}  // namespace weir
