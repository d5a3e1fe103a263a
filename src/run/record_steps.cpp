#include "run/record_steps.h"

#include <algorithm>
#include <vector>

namespace weir {
namespace {

constexpr std::size_t kKept = 64, kJudged = 8, kRegular = 16;
constexpr std::uint64_t kFewest = 4;
constexpr std::size_t kMostSeries = 50'000;  // some 40 MB; programs have hundreds
constexpr std::int64_t kForgotten = 64;      // medians without a launch

std::int64_t median_of(const std::deque<std::int64_t>& values) {
  std::vector<std::int64_t> sorted(values.begin(), values.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

double mean_of(const std::deque<std::int64_t>& values) {
  double sum = 0;
  for (const std::int64_t value : values) sum += static_cast<double>(value);
  return sum / static_cast<double>(values.size());
}

std::uint64_t key_of(const RecordedEntry& entry) {
  const bool is_graph = static_cast<record::Kind>(entry.kind) == record::Kind::graph_launch;
  // A graph has an address in place of a name.
  const std::uint64_t what = is_graph ? (entry.object * 0x9e3779b97f4a7c15U) >> 32 | 1U << 31 : entry.name;
  const std::uint64_t kind = static_cast<record::Kind>(entry.kind) == record::Kind::range ? 1 : 0;
  return std::uint64_t{entry.thread} << 33 | kind << 32 | (what & UINT32_MAX);
}

}  // namespace

bool StepFinder::is_regular(const Series& series, std::int64_t median_ns) const {
  const auto limit = factor_ * static_cast<double>(median_ns);
  const auto longer = std::count_if(series.took_ns.begin(), series.took_ns.end(),
                                    [&](std::int64_t ns) { return static_cast<double>(ns) > limit; });
  return static_cast<std::size_t>(longer) <= std::max<std::size_t>(1, series.took_ns.size() / kRegular);
}

void StepFinder::choose() {
  std::optional<Key> best;
  double longest_ns = 0;
  bool has_range = false;
  for (const auto& [key, series] : all_) {
    if (series.times < kFewest || series.took_ns.empty() || (has_range && !series.is_range)) continue;
    const std::int64_t median_ns = median_of(series.took_ns);
    const double mean_ns = mean_of(series.took_ns);
    // A range may be short and rare, so its own length says nothing about when the next one is due.
    const bool is_forgotten = !series.is_range && (newest_ns_ - series.newest_ns) / kForgotten > median_ns;
    if (median_ns <= 0 || is_forgotten || !is_regular(series, median_ns)) continue;
    // The smaller key, so that the choice does not depend on the order of the table.
    const bool is_better =
        (series.is_range && !has_range) || mean_ns > longest_ns || (mean_ns == longest_ns && key < *best);
    if (!is_better) continue;
    best = key;
    longest_ns = mean_ns;
    has_range = series.is_range;
  }
  chosen_ = best;
}

std::optional<SlowStep> StepFinder::add(std::span<const RecordedEntry> entries) {
  std::optional<SlowStep> slowest;
  for (const RecordedEntry& entry : entries) {
    const auto kind = static_cast<record::Kind>(entry.kind);
    const bool is_range = kind == record::Kind::range;
    const bool is_launch = kind == record::Kind::launch || kind == record::Kind::graph_launch;
    if ((!is_range && !is_launch) || entry.flags != 0) continue;
    if (entry.name == record::kNoText && kind != record::Kind::graph_launch) continue;
    const std::int64_t at_ns = is_range ? entry.ended_ns : entry.started_ns;
    if (at_ns < 0) continue;  // the file may hold anything
    newest_ns_ = std::max(newest_ns_, at_ns);
    const Key key = key_of(entry);
    auto found = all_.find(key);
    if (found == all_.end()) {
      if (all_.size() == kMostSeries) continue;
      found = all_.emplace(key, Series{.is_range = is_range}).first;
    }
    Series& series = found->second;
    const std::int64_t from_ns = is_range ? entry.started_ns : series.newest_ns;
    const bool is_first = series.times++ == 0 && !is_range;
    const bool is_sane = from_ns >= 0 && at_ns >= from_ns;
    series.newest_ns = at_ns;
    if (is_first || !is_sane) continue;
    const std::int64_t took_ns = at_ns - from_ns;
    if (chosen_ == key && series.took_ns.size() >= kJudged) {
      const std::int64_t median_ns = median_of(series.took_ns);
      if (static_cast<double>(took_ns) > factor_ * static_cast<double>(median_ns) &&
          (!slowest || took_ns > slowest->took_ns))
        slowest = SlowStep{entry.name, took_ns, median_ns, at_ns};
    }
    series.took_ns.push_back(took_ns);
    if (series.took_ns.size() > kKept) series.took_ns.pop_front();
  }
  choose();
  return slowest;
}

}  // namespace weir
