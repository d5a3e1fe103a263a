#include "run/analyze.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>

#include "base/clock.h"
#include "base/error.h"
#include "base/named_values.h"
#include "base/schemas.h"
#include "base/units.h"
#include "trace/analyse/iterations.h"
#include "trace/analyse/slice.h"
#include "trace/analyse/steady.h"
#include "trace/clock_alignment.h"
#include "trace/rank_collectives.h"
#include "trace/timeline_builder.h"

namespace weir {
namespace {

constexpr std::size_t kMaxDevices = 512;

Json clocks_json(const ClockAlignment& alignment) {
  return {{"is_aligned", alignment.is_aligned},
          {"error_ns", alignment.is_aligned ? Json(alignment.error_ns) : Json()},
          {"summary", alignment.summary},
          {"ranks", json_list(alignment.ranks, [](const RankClock& clock) {
             return WEIR_NAMED(clock.rank, clock.matched, clock.offset_ns, clock.error_ns, clock.drift_ppm,
                               clock.is_shifted, text_or_null(clock.reason));
           })}};
}

Json ranks_json(const Timeline& timeline, const RankCollectives& found, std::int64_t origin_ns) {
  Json json = {{"matched", found.matched}, {"left_out", text_or_null(found.reason)}, {"skew", nullptr}};
  if (found.skew) {
    Json among = json_list(found.skew_devices, [&](std::uint16_t device) {
      const TraceDevice& facts = timeline.devices[device];
      return WEIR_NAMED(timeline.processes[facts.process].rank, named("device", facts.label));
    });
    json["skew"] = WEIR_NAMED(found.skew->instances, std::move(among));
    json["skew"]["skew_ns"] = {{"p50", found.skew->p50_ns},
                               {"p95", found.skew->p95_ns},
                               {"p99", found.skew->p99_ns},
                               {"max", found.skew->max_ns}};
  }
  json["kinds"] = json_list(found.kinds, [](const KindSkew& kind) {
    const Json skew_ns = {{"p50", kind.p50_ns}, {"p95", kind.p95_ns}, {"max", kind.max_ns}};
    return WEIR_NAMED(kind.kind, kind.instances, skew_ns, kind.waiting_ns);
  });
  json["ranks"] = json_list(found.ranks, [](const RankWait& rank) {
    return WEIR_NAMED(rank.rank, rank.collectives, rank.collective_ns, rank.waiting_ns, rank.wait_share,
                      rank.last_share, rank.behind_ns);
  });
  json["stragglers"] =
      json_list(found.stragglers, [](const Straggler& one) { return WEIR_NAMED(one.rank, one.reason); });
  json["worst"] = json_list(found.worst, [&](const SkewedCollective& worst) -> Json {
    return {{"kind", to_string(worst.kind)},
            {"group", worst.group < timeline.names.size() ? Json(timeline.names[worst.group]) : Json()},
            {"bytes", positive_or_null(worst.bytes)},
            {"at_ns", worst.first_ns - origin_ns},
            {"skew_ns", worst.last_ns - worst.first_ns},
            {"last_rank", worst.last_rank}};
  });
  return json;
}

std::int64_t first_start(const Timeline& timeline) {
  std::int64_t first = INT64_MAX;
  for (const Span& span : timeline.spans)
    if (span.started_ns != kNoTime) first = std::min(first, span.started_ns);
  return first == INT64_MAX ? 0 : first;
}

std::int64_t last_end(const Timeline& timeline) {
  std::int64_t last = INT64_MIN;
  for (const Span& span : timeline.spans)
    if (span.ended_ns != kNoTime) last = std::max(last, span.ended_ns);
  return last;
}

// Devices with commands, by rank, then by number.
std::vector<std::uint16_t> devices_of(const Timeline& timeline) {
  std::set<std::uint16_t> used;
  for (const Span& span : timeline.spans)
    if (span.stream < timeline.streams.size()) used.insert(timeline.streams[span.stream].device);
  std::vector<std::uint16_t> devices(used.begin(), used.end());
  std::stable_sort(devices.begin(), devices.end(), [&](std::uint16_t a, std::uint16_t b) {
    const auto key = [&](std::uint16_t device) {
      const TraceDevice& facts = timeline.devices[device];
      return std::pair(timeline.processes[facts.process].rank, facts.id);
    };
    return key(a) < key(b);
  });
  return devices;
}

}  // namespace

std::optional<TimeInterval> window_in(const Timeline& timeline, const std::optional<TimeInterval>& window) {
  if (window == kWholeTrace) return std::nullopt;
  // Times of a file may be near the limits.
  const std::int64_t origin_ns = first_start(timeline);
  const auto later = [&](std::int64_t ns) { return origin_ns > INT64_MAX - ns ? INT64_MAX : origin_ns + ns; };
  if (window) return TimeInterval{later(window->from_ns), later(window->to_ns)};
  const std::optional<std::int64_t> steady_ns = steady_from(timeline);
  if (!steady_ns) return std::nullopt;
  return TimeInterval{*steady_ns, INT64_MAX};
}

Json analyze_timeline(Timeline& whole, const std::vector<ImportedFile>& files, const AnalyzeOptions& options) {
  Json document;
  document["schema"] = schemas::analysis;
  document["created"] = wall_time();
  document["command_line"] = options.command_line;
  document["files"] =
      json_list(files, [](const ImportedFile& file) { return WEIR_NAMED(file.name, file.format, file.bytes); });
  Json unavailable = Json::object();

  const std::optional<ClockAlignment> alignment = align_clocks(whole);
  if (alignment) apply_alignment(whole, *alignment);
  const std::int64_t origin_ns = first_start(whole);
  const std::optional<TimeInterval> window = window_in(whole, options.window);
  const Timeline part = window ? within(whole, *window) : Timeline{};
  const Timeline& timeline = window ? part : whole;
  document["window"] = nullptr;
  if (window) {
    const double last_ns = length_between(origin_ns, last_end(whole));
    if (part.spans.empty())
      reject(fmt::format("the window from {} to {} holds no command",
                         format_duration(length_between(origin_ns, window->from_ns)),
                         format_duration(length_between(origin_ns, window->to_ns))),
             fmt::format("The trace's commands are from 0 to {}.", format_duration(last_ns)));
    document["window"] = {{"begin_ns", minus(window->from_ns, origin_ns)},
                          {"end_ns", std::min(last_ns, length_between(origin_ns, window->to_ns))},
                          {"commands", part.spans.size()},
                          {"reason", options.window ? "asked for" : "start-up"}};
  }
  document["origin_ns"] = whole.spans.empty() ? Json() : Json(origin_ns);
  document["source"] = timeline.source;
  document["commands"] = whole.spans.size();
  document["calls"] = whole.calls.size();
  document["dependencies"] = timeline.has_dependencies ? Json(timeline.dependencies.size()) : Json();
  if (!timeline.has_dependencies) unavailable["dependencies"] = "the source records no waits between streams";
  document["clocks"] = alignment ? clocks_json(*alignment) : Json();
  if (!alignment) unavailable["clocks"] = "one process only";

  const RankCollectives ranks = rank_collectives(timeline, alignment);
  document["ranks"] = ranks.matched > 0 ? ranks_json(timeline, ranks, origin_ns) : Json();
  if (ranks.matched == 0) unavailable["ranks"] = ranks.reason.empty() ? "ranks share no collective" : ranks.reason;

  document["devices"] = Json::array();
  // Each device is a pass over the whole timeline, so their number is limited: a file may name thousands of them.
  const std::vector<std::uint16_t> devices = devices_of(timeline);
  const std::vector<std::vector<LastArrival>> arrivals = last_arrivals(timeline, alignment);
  std::set<std::uint16_t> processes;
  for (const std::uint16_t device : std::span(devices).first(std::min(devices.size(), kMaxDevices))) {
    processes.insert(timeline.devices[device].process);
    document["devices"].push_back(analyze_device(timeline, device, origin_ns, arrivals[device], options));
  }
  document["rank_phases"] =
      devices.size() > 1 ? rank_phases_json(timeline, document["devices"], devices, ranks) : Json();
  if (devices.size() < 2) unavailable["rank_phases"] = "one device only";
  if (devices.empty()) unavailable["devices"] = "the trace has no GPU commands";
  if (devices.size() > kMaxDevices)
    whole.notes.push_back(fmt::format("{} devices; the first {} were analysed", devices.size(), kMaxDevices));
  std::size_t overlapping = 0;
  for (const std::uint16_t process : processes) {
    std::size_t own = 0;
    iteration_ranges(timeline, process, &own);
    overlapping += own;
  }
  if (overlapping > 0)
    whole.notes.push_back(
        fmt::format("{} iteration range{} overlapped the next one by more than rounding explains; each is cut where "
                    "the next one begins",
                    overlapping, overlapping == 1 ? "" : "s"));
  document["dropped"] = json_list(
      whole.dropped, [](const Dropped& dropped) { return WEIR_NAMED(dropped.reason, dropped.count, dropped.first); });
  document.update(WEIR_NAMED(whole.notes, std::move(unavailable)));
  return document;
}

Timeline analysed_part(const Timeline& timeline, const Json& document) {
  const Json& window = document["window"];
  if (window.is_null()) return timeline;
  const std::int64_t origin_ns = first_start(timeline);
  return within(timeline,
                {origin_ns + window["begin_ns"].get<std::int64_t>(), origin_ns + window["end_ns"].get<std::int64_t>()});
}

}  // namespace weir
