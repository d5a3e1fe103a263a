#include "lab/race/race_document.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/named_values.h"
#include "base/schemas.h"
#include "trace/race_format.h"

namespace weir::race {
namespace {

constexpr std::size_t kMostReadBack = 10'000;

Json facts_json(const CommandFacts& facts) {
  return WEIR_NAMED(named("command", text_or_null(facts.command)), facts.label,
                    named("stream", text_or_null(facts.stream)), facts.kind);
}

template <class Facts>
Json facts_or_null(const std::optional<Facts>& facts) {
  return facts ? facts_json(*facts) : Json();
}

Json wait_json(const Wait& wait) {
  return WEIR_NAMED(named("first", text(wait.first)), named("second", wait.second ? Json(text(*wait.second)) : Json()));
}

Json bytes_between(std::uint64_t begin, std::uint64_t end) { return end > begin ? Json(end - begin) : Json(); }

Json lane_json(const std::string& stream, const std::vector<LaneCommand>& lane) {
  const Json commands = json_list(lane, [](const LaneCommand& each) {
    Json json = facts_json(each.facts);
    json["order"] = each.order;
    return json;
  });
  return WEIR_NAMED(stream, commands);
}

Json counts_json(std::uint32_t runs, std::uint32_t changes) { return runs == 0 ? Json() : WEIR_NAMED(runs, changes); }

Json race_json(const Race& race) {
  const Json delays = json_list(race.delays, [](const Delay& delay) {
    return WEIR_NAMED(named("command", text(delay.before)), named("delay_ns", delay.ns));
  });
  Json lanes = Json::array();
  if (race.first && !race.first_lane.empty()) lanes.push_back(lane_json(race.first->stream, race.first_lane));
  if (race.second && !race.second_lane.empty() && race.second->stream != race.first->stream)
    lanes.push_back(lane_json(race.second->stream, race.second_lane));
  const bool is_host = race.first && !race.second;
  return WEIR_NAMED(race.change, delays, named("delayed", facts_or_null(race.delayed)),
                    named("waits", json_list(race.waits, wait_json)), named("first", facts_or_null(race.first)),
                    named("second", facts_or_null(race.second)), is_host, race.is_suspect,
                    named("address", race.end > race.begin ? Json(fmt::format("{:#x}", race.begin)) : Json()),
                    named("bytes", bytes_between(race.begin, race.end)), race.is_exact, race.repeats, race.hazard,
                    race.is_reused, named("missing", text_or_null(missing_call(race))),
                    named("with_delay", counts_json(race.delayed_runs, race.delayed_changes)),
                    named("with_wait", counts_json(race.cured_runs, race.cured_changes)), race.first_stack,
                    race.second_stack, lanes);
}

Json run_json(const RunRecord& run) {
  return WEIR_NAMED(run.purpose, named("seed", or_null(run.seed)), run.delays, run.waits, run.duration_ns, run.ended,
                    run.is_timed_out, named("change", or_null(run.change)));
}

Json suspect_json(const SuspectFacts& facts) {
  const Suspect& suspect = facts.suspect;
  return WEIR_NAMED(named("first", facts_json(facts.first)), named("second", facts_or_null(facts.second)),
                    named("is_host", suspect.second == kHost), named("address", fmt::format("{:#x}", suspect.begin)),
                    named("bytes", bytes_between(suspect.begin, suspect.end)), suspect.is_exact, suspect.apart_ns,
                    suspect.repeats, suspect.score);
}

Json options_json(const SearchOptions& options) {
  const Json numbers = json_list(options.rules.numbers, [](const NumberPattern& each) { return Json(each.text); });
  return WEIR_NAMED(options.plain_runs, options.seeds, options.delay_ns, options.one_in, options.budget_ns,
                    options.rules.has_status, options.rules.has_stdout, options.rules.files, numbers,
                    options.rules.tolerance, named("ignored", options.rules.ignored.size()));
}

CommandName name_in(const Json& text, const std::string& file) {
  const auto name = text.is_string() ? read_command_name(text.string()) : std::nullopt;
  if (!name) reject(fmt::format("{}: '{}' is no command", file, text.dump()), "Commands are written as 1.417.");
  return *name;
}

std::optional<CommandFacts> facts_in(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  const auto text_of = [&](const char* key) {
    const Json& value = member(json, key);
    return value.is_string() ? value.string() : std::string();
  };
  return CommandFacts{text_of("command"), text_of("label"), text_of("stream"), text_of("kind")};
}

Hazard hazard_in(const Json& json) {
  for (int i = 0; i <= static_cast<int>(Hazard::host_writes); ++i)
    if (const auto hazard = static_cast<Hazard>(i); json == Json(name_of(hazard))) return hazard;
  return Hazard::unknown;
}

}  // namespace

std::string missing_call(const Race& race) {
  if (!race.first) return {};
  const std::string& one = race.first->stream;
  if (!race.second) {
    if (race.hazard == Hazard::host_writes)
      return fmt::format(
          "the host changes memory that {} still copies from: before that, wait for the copy (cudaEventSynchronize, "
          "event.synchronize()), or use another buffer",
          one);
    return fmt::format(
        "the host goes on before {} is done: wait for it first (cudaStreamSynchronize, cudaEventSynchronize; in "
        "PyTorch stream.synchronize() or event.synchronize())",
        one);
  }
  const std::string& other = race.second->stream;
  const std::string wait = fmt::format(
      "{} must wait for {}: record an event after the first command and let the second's stream wait for it "
      "(cudaStreamWaitEvent; in PyTorch stream.wait_event(event) or stream.wait_stream(other))",
      other.empty() ? "the second stream" : other, one.empty() ? "the first" : one);
  if (race.is_reused)
    return fmt::format(
        "the memory is given away while {} still uses it: free it only after that (in PyTorch "
        "tensor.record_stream(stream); with cudaFreeAsync, free it on that stream or let the freeing one wait)",
        one);
  if (race.hazard == Hazard::write_after_read)
    return fmt::format(
        "{}; if the memory was a tensor that had been freed, then the allocator gave it away too early: "
        "tensor.record_stream(stream)",
        wait);
  return wait;
}

Json race_document(const std::vector<std::string>& program, const SearchOptions& options, const Findings& findings,
                   const RunContext& context, const char* status) {
  const auto logged = [&](std::uint64_t count) { return findings.has_log ? Json(count) : Json(nullptr); };
  return WEIR_NAMED(named("schema", schemas::race), named("created", wall_time()), named("status", status),
                    context.command_line, context.environment, named("command", program), findings.answer,
                    named("reason", text_or_null(findings.ended_by)), named("options", options_json(options)),
                    findings.judged, findings.varying, findings.is_by_itself, named("calls", logged(findings.calls)),
                    named("commands", logged(findings.commands)), named("streams", logged(findings.streams)),
                    named("unread", logged(findings.unread)), named("suspect_count", logged(findings.suspect_count)),
                    named("cost", WEIR_NAMED(named("plain_ns", or_null(findings.plain_ns)),
                                             named("observed_ns", or_null(findings.observed_ns)),
                                             named("delayed_ns", or_null(findings.delayed_ns)))),
                    named("races", json_list(findings.races, race_json)),
                    named("suspects", json_list(findings.suspects, suspect_json)),
                    named("runs", json_list(findings.runs, run_json)), findings.warnings, findings.notes,
                    named("step", Json()));
}

Json step_race_document(const std::string& workload, const StepRace& race, const RunContext& context) {
  Findings findings;
  const std::size_t wanted = race.missing.size();
  if (wanted == 0)
    findings.answer = race.intact_pairs == 0 ? Answer::clean : Answer::found;
  else
    findings.answer =
        race.found == wanted && race.shown.value_or(race.found) == wanted ? Answer::found : Answer::unclear;
  findings.ended_by = wanted == 0 ? "the step was looked at as it is" : "each missing wait was looked at";
  Json document = race_document({}, {}, findings, context, "complete");
  document["options"] = nullptr;
  const Json missing = json_list(race.missing, [](const MissingWait& wait) {
    const Json pairs = json_list(wait.pairs, [](const StepRacePair& pair) {
      return WEIR_NAMED(named("first", pair.first_name), named("first_command", pair.first.command),
                        named("first_stream", pair.first_stream), named("second", pair.second_name),
                        named("second_command", pair.second.command), named("second_stream", pair.second_stream),
                        named("buffer", text_or_null(pair.buffer_name)), pair.offset_bytes, pair.size_bytes,
                        pair.is_ordered_with_wait, named("is_shown", or_null(pair.is_shown)),
                        named("is_right_with_wait", or_null(pair.is_right_with_wait)),
                        named("shown", text_or_null(pair.shown)));
    });
    return WEIR_NAMED(named("wait", wait.number), named("waiter", wait.waiter.command), named("awaited", wait.awaited),
                      wait.is_found, pairs);
  });
  document["step"] = WEIR_NAMED(workload, race.device, race.streams, race.is_pipelined, race.waits, race.intact_pairs,
                                race.found, named("shown", or_null(race.shown)), missing);
  return document;
}

Race race_in(const Json& document, std::size_t number, const std::string& name) {
  const Json& races = member(document, "races");
  const std::size_t count = races.is_array() ? races.size() : 0;
  if (count == 0)
    reject(fmt::format("{}: no race was found there", name), "Only a race that was found can be replayed.");
  if (number == 0 || number > count)
    reject(fmt::format("{}: has {} races, no number {}", name, count, number), fmt::format("Use 1 to {}.", count));
  const Json& json = races[number - 1];
  Race race;
  const Json &delays = member(json, "delays"), &waits = member(json, "waits");
  if (delays.is_array())
    for (const Json& each : delays) {
      const Json& ns = member(each, "delay_ns");
      if (race.delays.size() == kMostReadBack) break;
      if (!ns.is_number_integer() || ns.get<double>() < 1 ||
          ns.get<double>() > static_cast<double>(race_format::kLongestDelayNs))
        reject(fmt::format("{}: {} is no delay in nanoseconds", name, ns.dump()), "At most 10 ms.");
      race.delays.push_back({name_in(member(each, "command"), name), ns.get<std::int64_t>()});
    }
  if (race.delays.empty()) reject(fmt::format("{}: the race has no delays", name));
  if (waits.is_array())
    for (const Json& each : waits) {
      if (race.waits.size() == kMostReadBack) break;
      const Json& second = member(each, "second");
      Wait wait{name_in(member(each, "first"), name), std::nullopt};
      if (!second.is_null()) wait.second = name_in(second, name);
      race.waits.push_back(wait);
    }
  race.delayed = facts_in(member(json, "delayed"));
  race.first = facts_in(member(json, "first"));
  race.second = facts_in(member(json, "second"));
  race.hazard = hazard_in(member(json, "hazard"));
  race.is_reused = member(json, "is_reused") == Json(true);
  race.is_suspect = member(json, "is_suspect") == Json(true);
  return race;
}

}  // namespace weir::race
