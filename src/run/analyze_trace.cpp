#include "run/analyze_trace.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/named_values.h"
#include "trace/analyse/iterations.h"
#include "trace/analyse/slice.h"
#include "trace/analyse/steady.h"
#include "trace/clock_alignment.h"
#include "trace/merge.h"
#include "trace/outline.h"
#include "trace/rank_collectives.h"
#include "trace/timeline_bytes.h"

namespace weir {
namespace {

double real_of(const Json& json) { return json.is_number() ? json.get<double>() : 0; }

// What moved_clock_json() wrote.
RankClock moved_clock(const Json& json, std::uint16_t process) {
  ClockCurve::Fit fit;
  fit.origin_ns = json["origin_ns"].get<std::int64_t>();
  fit.base_ns = json["base_ns"].get<std::int64_t>();
  fit.usual_ns = real_of(json["usual_ns"]);
  fit.error_ns = real_of(json["error_ns"]);
  for (const Json& knot : json["knots"]) fit.knots.push_back({real_of(knot[0]), real_of(knot[1])});
  RankClock clock;
  clock.process = process;
  clock.offset_ns = real_of(json["offset_ns"]);
  clock.is_shifted = true;
  clock.curve = ClockCurve(std::move(fit));
  return clock;
}

Json name_or_null(std::uint32_t name) { return name == kNoName ? Json() : Json(name); }

// Numbers of the names that commands of some phases use, in the order of the timeline.
class UsedNames {
 public:
  explicit UsedNames(const std::vector<std::string>& names) : names_(names), number_(names.size(), kNoName) {}
  void use(std::uint32_t name) {
    if (name < number_.size()) number_[name] = 0;
  }
  Json take() {
    Json used = Json::array();
    for (std::size_t i = 0; i < number_.size(); ++i) {
      if (number_[i] == kNoName) continue;
      number_[i] = static_cast<std::uint32_t>(used.size());
      used.push_back(names_[i]);
    }
    return used;
  }
  Json of(std::uint32_t name) const { return name_or_null(name < number_.size() ? number_[name] : kNoName); }

 private:
  const std::vector<std::string>& names_;
  std::vector<std::uint32_t> number_;
};

}  // namespace

Json moved_clock_json(const RankClock& clock) {
  if (!clock.is_shifted || !clock.offset_ns) return Json();
  const ClockCurve::Fit& fit = clock.curve.fit();
  Json json = WEIR_NAMED(clock.offset_ns, fit.origin_ns, fit.base_ns, fit.usual_ns, fit.error_ns);
  json["knots"] =
      json_list(fit.knots, [](const ClockCurve::Knot& knot) { return Json::array({knot.at_ns, knot.distance_ns}); });
  return json;
}

Json phase_times_json(const RankUse& use) {
  return json_list(
      use, [](const PhaseUse& phase) { return Json::array({phase.busy_ns, phase.late_host_ns, phase.waiting_ns}); });
}

RankUse phase_times_of(const Json& json) {
  RankUse use;
  for (std::size_t phase = 0; phase < use.size() && phase < json.size(); ++phase) {
    use[phase].busy_ns = real_of(json[phase][0]);
    use[phase].late_host_ns = real_of(json[phase][1]);
    use[phase].waiting_ns = real_of(json[phase][2]);
  }
  return use;
}

std::map<CommandKey, CommandSum> phase_commands_of(const Json& commands, std::span<const std::uint32_t> name_of) {
  const auto name = [&](const Json& number) { return number.is_null() ? kNoName : name_of[number.get<std::size_t>()]; };
  std::map<CommandKey, CommandSum> found;
  for (const Json& one : commands) {
    const CommandKey key = {name(one[0]), name(one[1]), name(one[2]), static_cast<SpanKind>(one[3].get<int>())};
    CommandSum& sum = found[key];
    sum.count += real_of(one[4]);
    sum.ns += real_of(one[5]);
  }
  return found;
}

TraceAnalysis::TraceAnalysis(ImportedTrace& trace, const AnalyzeOptions& options, bool is_one_of_several,
                             bool keeps_trace)
    : trace_(trace), options_(options), keeps_trace_(keeps_trace) {
  if (!is_one_of_several) return;
  add_lanes(trace_.timeline);
  sort_by_start(trace_.timeline);
}

Json TraceAnalysis::facts() const {
  const Json files =
      json_list(trace_.files, [](const ImportedFile& file) { return WEIR_NAMED(file.name, file.format, file.bytes); });
  return {{"files", files}, {"commands", trace_.timeline.spans.size()}, {"calls", trace_.timeline.calls.size()}};
}

std::string TraceAnalysis::outline_bytes() const { return timeline_bytes(outline(current())); }

void TraceAnalysis::agree(const Json& common) {
  Timeline& timeline = trace_.timeline;
  timeline.has_exact_gaps = common["has_exact_gaps"].get<bool>();
  timeline.has_dependencies = common["has_dependencies"].get<bool>();
  timeline.has_operations = common["has_operations"].get<bool>();
  timeline.clock_error_ns = real_of(common["clock_error_ns"]);
  for (std::size_t i = 0; i < timeline.processes.size(); ++i)
    timeline.processes[i].rank = common["ranks"][i].get<int>();
  const Json& alignment = common["alignment"];
  if (alignment.is_null()) return;
  ClockAlignment own;
  own.error_ns = real_of(alignment["error_ns"]);
  own.summary = alignment["summary"].get<std::string>();
  for (std::size_t i = 0; i < timeline.processes.size(); ++i)
    if (const Json& clock = alignment["clocks"][i]; !clock.is_null())
      own.ranks.push_back(moved_clock(clock, static_cast<std::uint16_t>(i)));
  apply_alignment(timeline, own);
}

Json TraceAnalysis::times() const {
  Json first, last;
  for (const Span& span : trace_.timeline.spans) {
    if (span.started_ns != kNoTime && (first.is_null() || span.started_ns < first.get<std::int64_t>()))
      first = span.started_ns;
    if (span.ended_ns != kNoTime && (last.is_null() || span.ended_ns > last.get<std::int64_t>())) last = span.ended_ns;
  }
  Json steady;
  if (!options_.window)
    steady = json_list(steady_starts(trace_.timeline), [](const auto& start) { return start ? Json(*start) : Json(); });
  return {{"first_ns", first}, {"last_ns", last}, {"steady_ns", steady}};
}

Json TraceAnalysis::is_steady(const Json& start) {
  origin_ns_ = start["origin_ns"].get<std::int64_t>();
  const Json& steady_ns = start["steady_ns"];
  return steady_ns.is_null() ? Json() : Json(are_steady_from(trace_.timeline, steady_ns.get<std::int64_t>()));
}

Json TraceAnalysis::first_submitted(const Json& part) {
  const Json& window = part["window"];
  if (window.is_null()) return Json();
  window_ = {window[0].get<std::int64_t>(), window[1].get<std::int64_t>()};
  return first_submission(trace_.timeline, *window_);
}

void TraceAnalysis::cut(const Json& part) {
  if (!window_) return;
  part_ = within(trace_.timeline, *window_, part["submitted_ns"].get<std::int64_t>());
  is_cut_ = true;
  if (!keeps_trace_) trace_.timeline = {};
}

Json TraceAnalysis::counts() const {
  return {{"commands", current().spans.size()}, {"dependencies", current().dependencies.size()}};
}

Json TraceAnalysis::analyze(const Json& order) {
  const Timeline& timeline = current();
  Json found = Json::array();
  for (const Json& each : order["devices"]) {
    const auto device = each["device"].get<std::uint16_t>();
    std::vector<LastArrival> arrivals;
    for (const Json& one : each["arrivals"])
      arrivals.push_back({one[0].get<std::uint32_t>(), one[1].get<std::int64_t>(), one[2].get<int>()});
    const std::uint16_t process = timeline.devices[device].process;
    std::size_t overlapping = 0;
    iteration_ranges(timeline, process, &overlapping);
    found.push_back({{"device", device},
                     {"process", process},
                     {"overlapping", overlapping},
                     {"document", analyze_device(timeline, device, origin_ns_, arrivals, options_)}});
    devices_.push_back(device);
  }
  if (!order["needs_phases"].get<bool>()) return found;
  uses_ = rank_uses(timeline, devices_);
  for (std::size_t i = 0; i < uses_.size(); ++i) found[i]["phase_ns"] = phase_times_json(uses_[i]);
  return found;
}

Json TraceAnalysis::commands(const Json& wanted) const {
  struct Wanted {
    std::uint16_t device;
    std::size_t phase;
    const std::map<CommandKey, CommandSum>& commands;
  };
  std::vector<Wanted> all;
  UsedNames names(current().names);
  for (const Json& one : wanted) {
    const auto device = one[0].get<std::uint16_t>();
    const auto phase = one[1].get<std::size_t>();
    const auto at = std::find(devices_.begin(), devices_.end(), device);
    if (at == devices_.end() || phase >= kRankPhases) fail("rank 0 asks for a device that was not analysed here");
    all.push_back({device, phase, uses_[static_cast<std::size_t>(at - devices_.begin())][phase].commands});
    for (const auto& [key, sum] : all.back().commands)
      for (const std::uint32_t name : {std::get<0>(key), std::get<1>(key), std::get<2>(key)}) names.use(name);
  }
  Json json = {{"names", names.take()}};
  json["uses"] = json_list(all, [&](const Wanted& one) -> Json {
    return {{"device", one.device},
            {"phase", one.phase},
            {"commands", json_list(one.commands, [&](const auto& command) {
               const auto& [key, sum] = command;
               return Json::array({names.of(std::get<0>(key)), names.of(std::get<1>(key)), names.of(std::get<2>(key)),
                                   static_cast<int>(std::get<3>(key)), sum.count, sum.ns});
             })}};
  });
  return json;
}

}  // namespace weir
