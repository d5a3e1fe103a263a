#include "run/analyze_whole.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/named_values.h"
#include "base/schemas.h"
#include "base/units.h"
#include "run/analyze_trace.h"
#include "trace/analyse/steady.h"
#include "trace/merge.h"
#include "trace/timeline_bytes.h"

namespace weir {
namespace {

constexpr std::size_t kMaxDevices = 512;  // of one trace

Json clocks_json(const ClockAlignment& alignment) {
  return {{"is_aligned", alignment.is_aligned},
          {"error_ns", alignment.is_aligned ? Json(alignment.error_ns) : Json()},
          {"summary", alignment.summary},
          {"ranks", json_list(alignment.ranks, [](const RankClock& clock) {
             return WEIR_NAMED(clock.rank, clock.matched, clock.offset_ns, clock.error_ns, clock.drift_ppm,
                               clock.is_shifted, text_or_null(clock.reason));
           })}};
}

Json collectives_of_ranks_json(const Timeline& timeline, const RankCollectives& found, std::int64_t origin_ns) {
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

// Devices with commands, by rank, then by number.
std::vector<std::uint16_t> devices_with_commands(const Timeline& timeline) {
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

Json message(const std::string& text) { return parse_json(text, "a message between ranks"); }

}  // namespace

Timeline WholeAnalysis::merged(const std::vector<std::string>& outlines) {
  first_process_.clear();
  first_device_.clear();
  std::size_t processes = 0, devices = 0;
  std::vector<Timeline> parts;
  for (std::size_t trace = 0; trace < outlines.size(); ++trace) {
    parts.push_back(timeline_of_bytes(outlines[trace], fmt::format("trace {}", trace)));
    first_process_.push_back(processes);
    first_device_.push_back(devices);
    processes += parts.back().processes.size();
    devices += parts.back().devices.size();
  }
  return merge(std::move(parts));
}

WholeAnalysis::Place WholeAnalysis::place_of(std::uint16_t device) const {
  // Traces without devices begin where the next one does, which is the one meant.
  const auto after = std::upper_bound(first_device_.begin(), first_device_.end(), std::size_t{device});
  const auto trace = static_cast<std::size_t>(after - first_device_.begin()) - 1;
  return {trace, static_cast<std::uint16_t>(device - first_device_[trace])};
}

std::vector<std::string> WholeAnalysis::same_for_all(const Json& json) const {
  return std::vector<std::string>(traces_, json.dump());
}

std::vector<std::string> WholeAnalysis::agree(const std::vector<std::string>& facts,
                                              const std::vector<std::string>& outlines) {
  for (const std::string& text : facts) {
    const Json one = message(text);
    for (const Json& file : one["files"]) files_.push_back(file);
    commands_ += one["commands"].get<std::size_t>();
    calls_ += one["calls"].get<std::size_t>();
  }
  whole_ = merged(outlines);
  alignment_ = align_clocks(whole_);
  if (alignment_) {
    whole_.clock_error_ns = std::max(whole_.clock_error_ns, alignment_->error_ns);
    whole_.notes.push_back(alignment_->summary);
  }
  std::vector<Json> clocks(whole_.processes.size());
  if (alignment_)
    for (const RankClock& clock : alignment_->ranks) clocks[clock.process] = moved_clock_json(clock);
  std::vector<std::string> answers;
  for (std::size_t trace = 0; trace < traces_; ++trace) {
    const std::size_t from = first_process_[trace],
                      to = trace + 1 < traces_ ? first_process_[trace + 1] : whole_.processes.size();
    Json answer =
        WEIR_NAMED(whole_.has_exact_gaps, whole_.has_dependencies, whole_.has_operations, whole_.clock_error_ns);
    answer["ranks"] = json_list(std::span(whole_.processes).subspan(from, to - from),
                                [](const TraceProcess& process) { return Json(process.rank); });
    answer["alignment"] = Json();
    if (alignment_)
      answer["alignment"] = {
          {"error_ns", alignment_->error_ns},
          {"summary", alignment_->summary},
          {"clocks", json_list(std::span(clocks).subspan(from, to - from), [](const Json& clock) { return clock; })}};
    answers.push_back(answer.dump());
  }
  return answers;
}

std::vector<std::string> WholeAnalysis::start(const std::vector<std::string>& times) {
  std::int64_t first_ns = INT64_MAX;
  std::vector<std::optional<std::int64_t>> steady;
  for (const std::string& text : times) {
    const Json one = message(text);
    if (!one["first_ns"].is_null()) first_ns = std::min(first_ns, one["first_ns"].get<std::int64_t>());
    if (!one["last_ns"].is_null()) last_ns_ = std::max(last_ns_, one["last_ns"].get<std::int64_t>());
    for (const Json& start : one["steady_ns"])
      steady.push_back(start.is_null() ? std::nullopt : std::optional(start.get<std::int64_t>()));
  }
  origin_ns_ = first_ns == INT64_MAX ? 0 : first_ns;
  steady_ns_ = common_steady_start(steady);
  return same_for_all({{"origin_ns", origin_ns_}, {"steady_ns", or_null(steady_ns_)}});
}

std::vector<std::string> WholeAnalysis::window(const std::vector<std::string>& are_steady) {
  const bool is_steady = steady_ns_ && std::all_of(are_steady.begin(), are_steady.end(),
                                                   [](const std::string& text) { return message(text).get<bool>(); });
  window_ = window_from(origin_ns_, options_.window, is_steady ? steady_ns_ : std::nullopt);
  return same_for_all({{"window", window_ ? Json::array({window_->from_ns, window_->to_ns}) : Json()}});
}

std::vector<std::string> WholeAnalysis::submission(const std::vector<std::string>& first_submitted) {
  std::int64_t first_ns = INT64_MAX;
  for (const std::string& text : first_submitted)
    if (const Json one = message(text); !one.is_null()) first_ns = std::min(first_ns, one.get<std::int64_t>());
  return same_for_all({{"submitted_ns", first_ns}});
}

Json WholeAnalysis::window_json(std::size_t commands) const {
  if (!window_) return Json();
  const double last_ns = length_between(origin_ns_, last_ns_);
  if (commands == 0)
    reject(fmt::format("the window from {} to {} holds no command",
                       format_duration(length_between(origin_ns_, window_->from_ns)),
                       format_duration(length_between(origin_ns_, window_->to_ns))),
           fmt::format("The trace's commands are from 0 to {}.", format_duration(last_ns)));
  return {{"begin_ns", minus(window_->from_ns, origin_ns_)},
          {"end_ns", std::min(last_ns, length_between(origin_ns_, window_->to_ns))},
          {"commands", commands},
          {"reason", options_.window ? "asked for" : "start-up"}};
}

// Each device is a pass over its trace, so their number is limited: a file may name thousands of them.
void WholeAnalysis::choose_devices() {
  const std::vector<std::uint16_t> all = devices_with_commands(part_);
  found_devices_ = all.size();
  std::vector<std::size_t> counts(traces_, 0);
  for (const std::uint16_t device : all)
    if (++counts[place_of(device).trace] <= kMaxDevices) devices_.push_back(device);
}

std::vector<std::string> WholeAnalysis::order(const std::vector<std::string>& counts,
                                              const std::vector<std::string>& outlines) {
  std::size_t commands = 0;
  for (const std::string& text : counts) {
    const Json one = message(text);
    commands += one["commands"].get<std::size_t>();
    dependencies_ += one["dependencies"].get<std::size_t>();
  }
  window_words_ = window_json(commands);
  part_ = merged(outlines);
  collectives_ = rank_collectives(part_, alignment_);
  choose_devices();
  std::vector<std::uint32_t> places;
  for (const Span& span : part_.spans) places.push_back(span.command);
  const std::vector<std::vector<LastArrival>> arrivals = last_arrivals(part_, places, alignment_);
  std::vector<Json> lists(traces_, Json::array());
  for (const std::uint16_t device : devices_) {
    const Place place = place_of(device);
    Json one = {{"device", place.device}};
    one["arrivals"] = json_list(arrivals[device], [](const LastArrival& arrival) {
      return Json::array({arrival.span, arrival.arrived_ns, arrival.rank});
    });
    lists[place.trace].push_back(std::move(one));
  }
  std::vector<std::string> answers;
  for (Json& list : lists) {
    Json answer = {{"needs_phases", found_devices_ > 1}};
    answer["devices"] = std::move(list);
    answers.push_back(answer.dump());
  }
  part_.spans = {};
  part_.collectives = {};
  return answers;
}

std::vector<std::string> WholeAnalysis::ask_phases(std::vector<std::string> devices) {
  // By trace, in the order in which they were asked for.
  std::vector<Json> found;
  for (std::string& text : devices) {
    found.push_back(message(text));
    text = {};
  }
  std::vector<std::size_t> next(traces_, 0);
  std::set<std::pair<std::size_t, std::uint16_t>> processes;
  for (const std::uint16_t device : devices_) {
    const std::size_t trace = place_of(device).trace;
    Json& one = found[trace][next[trace]++];
    if (processes.emplace(trace, one["process"].get<std::uint16_t>()).second)
      overlapping_ += one["overlapping"].get<std::size_t>();
    if (found_devices_ > 1) uses_.push_back(phase_times_of(one["phase_ns"]));
    device_documents_.push_back(std::move(one["document"]));
  }
  std::vector<Json> wanted(traces_, Json::array());
  if (found_devices_ > 1) {
    phases_ = slowest_ranks(ranks_of_phases(device_documents_, devices_, collectives_), uses_);
    for (const SlowestRank& each : phases_.phases)
      for (const std::size_t rank : std::set<std::size_t>{each.slowest, each.median}) {
        const Place place = place_of(devices_[rank]);
        wanted[place.trace].push_back(Json::array({place.device, static_cast<int>(each.phase)}));
      }
  }
  std::vector<std::string> answers;
  for (const Json& one : wanted) answers.push_back(one.dump());
  return answers;
}

Json WholeAnalysis::document(const std::vector<std::string>& commands) {
  // By text, so that sums of commands have one order however the traces number their names.
  std::vector<Json> answers;
  std::map<std::string, std::uint32_t> number_of;
  for (const std::string& text : commands) {
    answers.push_back(message(text));
    for (const Json& name : answers.back()["names"]) number_of.emplace(name.get<std::string>(), 0);
  }
  std::vector<std::string> names;
  for (auto& [text, number] : number_of) {
    number = static_cast<std::uint32_t>(names.size());
    names.push_back(text);
  }
  for (std::size_t trace = 0; trace < answers.size(); ++trace) {
    const Json& one = answers[trace];
    std::vector<std::uint32_t> name_of;
    for (const Json& name : one["names"]) name_of.push_back(number_of.at(name.get<std::string>()));
    for (const Json& use : one["uses"]) {
      const std::size_t device = first_device_[trace] + use["device"].get<std::size_t>();
      const auto at = std::find(devices_.begin(), devices_.end(), static_cast<std::uint16_t>(device));
      if (at == devices_.end()) fail(fmt::format("trace {} tells of a device that was not asked for", trace));
      uses_[static_cast<std::size_t>(at - devices_.begin())][use["phase"].get<std::size_t>()].commands =
          phase_commands_of(use["commands"], name_of);
    }
  }
  explain_slowest(phases_, uses_);

  Json document;
  document["schema"] = schemas::analysis;
  document["created"] = wall_time();
  document["command_line"] = options_.command_line;
  document["files"] = std::move(files_);
  Json unavailable = Json::object();
  document["window"] = std::move(window_words_);
  document["origin_ns"] = commands_ == 0 ? Json() : Json(origin_ns_);
  document["source"] = whole_.source;
  document["commands"] = commands_;
  document["calls"] = calls_;
  document["dependencies"] = whole_.has_dependencies ? Json(dependencies_) : Json();
  if (!whole_.has_dependencies) unavailable["dependencies"] = "the source records no waits between streams";
  document["clocks"] = alignment_ ? clocks_json(*alignment_) : Json();
  if (!alignment_) unavailable["clocks"] = "one process only";
  const bool has_ranks = collectives_.matched > 0;
  document["ranks"] = has_ranks ? collectives_of_ranks_json(part_, collectives_, origin_ns_) : Json();
  if (!has_ranks)
    unavailable["ranks"] = collectives_.reason.empty() ? "ranks share no collective" : collectives_.reason;
  document["devices"] = std::move(device_documents_);
  document["rank_phases"] = found_devices_ > 1 ? rank_phases_json(phases_, part_, names) : Json();
  if (found_devices_ < 2) unavailable["rank_phases"] = "one device only";
  if (found_devices_ == 0) unavailable["devices"] = "the trace has no GPU commands";
  if (found_devices_ > devices_.size())
    whole_.notes.push_back(fmt::format("{} devices; the first {}{} were analysed", found_devices_, kMaxDevices,
                                       traces_ > 1 ? " of each trace" : ""));
  if (overlapping_ > 0)
    whole_.notes.push_back(
        fmt::format("{} iteration range{} overlapped the next one by more than rounding explains; each is cut where "
                    "the next one begins",
                    overlapping_, overlapping_ == 1 ? "" : "s"));
  document["dropped"] = json_list(
      whole_.dropped, [](const Dropped& dropped) { return WEIR_NAMED(dropped.reason, dropped.count, dropped.first); });
  document.update(WEIR_NAMED(whole_.notes, std::move(unavailable)));
  return document;
}

}  // namespace weir
