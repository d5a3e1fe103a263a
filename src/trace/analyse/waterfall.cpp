#include "trace/analyse/waterfall.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>

#include "base/units.h"
#include "measure/statistics.h"
#include "trace/device_spans.h"
#include "trace/intervals.h"
#include "trace/timeline_builder.h"

namespace weir {
namespace {

constexpr std::size_t kKinds = 5;

struct StageFacts {
  const char* name;
  std::int64_t Span::* time;
  const char* why_unknown;  // why a source may lack it although it has others
};
// By Stage, in the order in which a command passes them.
constexpr std::array<StageFacts, kStages> kWay = {{
    {"enqueued", &Span::enqueued_ns, "no channel lies before the driver, or the source does not record it"},
    {"submitted", &Span::submitted_ns, "the source has no host call for these commands"},
    {"accepted", &Span::accepted_ns, "the source does not say when the driver had them"},
    {"launched", &Span::launched_ns, "the source does not see commands leave their hardware queue"},
    {"started", &Span::started_ns, "the source does not record it"},
    {"ended", &Span::ended_ns, "the source does not record it"},
    {"seen", &Span::seen_ns, "no synchronisation of the host is recorded after them"},
}};

// What commands do on a hop, for the user. Hops skip stages that the source does not know.
const char* meaning_of(Stage from, Stage to) noexcept {
  if (to == Stage::seen) return from == Stage::ended ? "until the host that waits knows" : "until the host knows";
  if (to == Stage::ended) return from == Stage::started ? "commands run" : "commands wait and run";
  if (to == Stage::submitted) return "commands wait in a channel for a submitter";
  if (to == Stage::accepted)
    return from == Stage::submitted ? "the host is in the driver's call" : "in a channel and in the driver's call";
  if (from == Stage::accepted) return "commands wait for those before them on their stream and queue";
  if (from == Stage::launched) return "the device has them and takes its time to start them";
  return from == Stage::submitted ? "in the driver's call and in the hardware queue"
                                  : "in a channel, in the driver and in the hardware queue";
}

// By span: whether the host waited for it. Of the commands that it saw together it waited for the last to end, unless
// it began to wait only after that.
std::vector<bool> waited_for(const Timeline& timeline) {
  constexpr std::int64_t kRounding = 1'000;  // files have microseconds
  struct Seen {
    std::int64_t last_ns = INT64_MIN;      // end
    std::optional<bool> began_too_late{};  // the wait for that
  };
  std::unordered_map<std::int64_t, Seen> seen;  // by time
  for (const Span& span : timeline.spans) {
    if (span.seen_ns == kNoTime || span.ended_ns == kNoTime) continue;
    std::int64_t& last_ns = seen[span.seen_ns].last_ns;
    last_ns = std::max(last_ns, span.ended_ns);
  }
  std::vector<const HostCall*> waits;
  for (const HostCall& call : timeline.calls)
    if ((call.kind == CallKind::synchronize || call.kind == CallKind::copy) && is_timed(call)) waits.push_back(&call);
  std::sort(waits.begin(), waits.end(), [](const HostCall* a, const HostCall* b) { return a->ended_ns < b->ended_ns; });
  const auto began_too_late = [&](const Span& span) {
    auto at = std::partition_point(waits.begin(), waits.end(), [&](const HostCall* call) {
      return call->ended_ns < span.seen_ns && distance_ns(call->ended_ns, span.seen_ns) > kRounding;
    });
    bool is_found = false;
    for (; at != waits.end() &&
           ((*at)->ended_ns <= span.seen_ns || distance_ns(span.seen_ns, (*at)->ended_ns) <= kRounding);
         ++at) {
      if ((*at)->started_ns <= span.ended_ns) return false;
      is_found = true;
    }
    return is_found;
  };
  std::vector<bool> waited(timeline.spans.size(), false);
  for (std::size_t i = 0; i < waited.size(); ++i) {
    const Span& span = timeline.spans[i];
    if (span.seen_ns == kNoTime || span.ended_ns == kNoTime) continue;
    Seen& together = seen[span.seen_ns];
    if (together.last_ns != span.ended_ns) continue;
    if (!together.began_too_late) together.began_too_late = began_too_late(span);
    waited[i] = !*together.began_too_late;
  }
  return waited;
}

// `only`, where given, says which commands count.
Hop measure_hop(const Timeline& timeline, SpanKind kind, Stage from, Stage to, const std::vector<bool>* only,
                std::vector<double>& lengths) {
  Hop hop;
  hop.from = from;
  hop.to = to;
  lengths.clear();
  for (std::size_t i = 0; i < timeline.spans.size(); ++i) {
    const Span& span = timeline.spans[i];
    if (span.kind != kind) continue;
    const std::int64_t begin = time_of(span, from), end = time_of(span, to);
    if (begin == kNoTime || end == kNoTime || (only != nullptr && !(*only)[i])) {
      ++hop.unknown;
    } else if (end < begin) {
      ++hop.negative;
      hop.worst_negative_ns = std::max(hop.worst_negative_ns, length_between(end, begin));
    } else {
      lengths.push_back(length_between(begin, end));
    }
  }
  hop.count = lengths.size();
  if (lengths.empty()) return hop;
  std::sort(lengths.begin(), lengths.end());
  for (const double length : lengths) hop.total_ns += length;
  hop.mean_ns = hop.total_ns / static_cast<double>(hop.count);
  hop.p50_ns = quantile_sorted(lengths, 0.50);
  hop.p95_ns = quantile_sorted(lengths, 0.95);
  hop.p99_ns = quantile_sorted(lengths, 0.99);
  return hop;
}

// The hop with the largest mean in hops[0, count), and its share of them in words.
std::optional<std::size_t> dominating_of(const std::vector<Hop>& hops, std::size_t count, const char* way,
                                         std::string* words) {
  double sum = 0;
  std::optional<std::size_t> largest;
  for (std::size_t i = 0; i < count; ++i) {
    sum += hops[i].mean_ns;
    if (hops[i].mean_ns > (largest ? hops[*largest].mean_ns : 0.0)) largest = i;
  }
  if (!largest) {
    *words = count == 0 ? "fewer than two times of these commands are known" : "no hop took any time";
    return std::nullopt;
  }
  const Hop& hop = hops[*largest];
  *words = fmt::format("{} -> {}: {:.0f} % of the {}; {}", to_string(hop.from), to_string(hop.to),
                       100 * hop.mean_ns / sum, way, meaning_of(hop.from, hop.to));
  if (hop.negative > 0)
    *words += fmt::format(" ({} of {} commands left out: the clocks disagree by up to {})", hop.negative,
                          hop.negative + hop.count, format_duration(hop.worst_negative_ns));
  return largest;
}

ClassWaterfall follow(const Timeline& timeline, SpanKind kind, std::size_t commands,
                      const std::array<std::size_t, kStages>& known, const std::vector<bool>& waited,
                      std::vector<double>& lengths) {
  ClassWaterfall found;
  found.kind = kind;
  found.commands = commands;
  for (std::size_t i = 0; i < waited.size(); ++i)
    if (waited[i] && timeline.spans[i].kind == kind) ++found.waited_for;
  std::vector<Stage> stages;
  for (std::size_t i = 0; i < kStages; ++i) {
    const auto stage = static_cast<Stage>(i);
    // A stage that only a few commands have would split the way of the others and represent only those few.
    if (2 * known[i] >= commands)
      stages.push_back(stage);
    else
      found.missing.push_back({stage, known[i] == 0 ? std::string(kWay[i].why_unknown)
                                                    : fmt::format("known of {} of {} commands only: {}", known[i],
                                                                  commands, kWay[i].why_unknown)});
  }
  const bool is_seen_on_way = 2 * found.waited_for >= commands;
  for (std::size_t i = 1; i < stages.size(); ++i)
    found.hops.push_back(measure_hop(timeline, kind, stages[i - 1], stages[i],
                                     stages[i] == Stage::seen && is_seen_on_way ? &waited : nullptr, lengths));
  const bool is_last_seen = !found.hops.empty() && found.hops.back().to == Stage::seen;
  const std::size_t to_end = found.hops.size() - (is_last_seen ? 1 : 0);
  const std::size_t on_way = is_seen_on_way ? found.hops.size() : to_end;
  for (std::size_t i = 0; i < on_way; ++i) found.way_ns += found.hops[i].mean_ns;
  for (std::size_t i = 0; i < on_way; ++i)
    found.hops[i].share = found.way_ns > 0 ? found.hops[i].mean_ns / found.way_ns : 0;
  found.dominating = dominating_of(found.hops, on_way, "way", &found.words);
  found.dominating_to_end = dominating_of(found.hops, to_end, "way to their end", &found.words_to_end);
  return found;
}

}  // namespace

const char* to_string(Stage stage) noexcept { return kWay[static_cast<std::size_t>(stage)].name; }

std::int64_t time_of(const Span& span, Stage stage) noexcept {
  return span.*kWay[static_cast<std::size_t>(stage)].time;
}

Waterfall waterfall(const Timeline& timeline) {
  Waterfall found;
  std::array<std::size_t, kKinds> commands{};
  std::array<std::array<std::size_t, kStages>, kKinds> known{};
  for (const Span& span : timeline.spans) {
    const auto kind = static_cast<std::size_t>(span.kind);
    ++commands[kind];
    for (std::size_t i = 0; i < kStages; ++i)
      if (span.*kWay[i].time != kNoTime) ++known[kind][i];
  }
  const std::vector<bool> waited = waited_for(timeline);
  std::vector<double> lengths;
  for (std::size_t kind = 0; kind < kKinds; ++kind)
    if (commands[kind] > 0)
      found.classes.push_back(
          follow(timeline, static_cast<SpanKind>(kind), commands[kind], known[kind], waited, lengths));
  if (found.classes.empty()) found.reason = fmt::format("there are no commands: {}", timeline.source);
  return found;
}

}  // namespace weir
