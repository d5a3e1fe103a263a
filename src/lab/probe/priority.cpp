#include "lab/probe/priority.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/clock.h"
#include "base/error.h"
#include "base/named_values.h"
#include "base/plain_text.h"
#include "base/schemas.h"
#include "measure/statistics.h"

namespace weir::probe {
namespace {

constexpr std::size_t kMaxProcesses = 1000;
constexpr std::size_t kLongestText = 500;
constexpr double kLongestNs = 3600e9;
// A kernel that comes at a random moment of a long one and waits for its end waits for half of it on average.
constexpr double kInsideShare = 0.25;

[[noreturn]] void reject_line(const char* key) {
  reject(fmt::format("the probe's line cannot be read: {} is missing or out of range", key),
         "Use the script that this weir prints: weir probe priority --snippet");
}

std::string short_text(const Json& line, const char* key) {
  const Json& value = member(line, key);
  return value.is_string() ? without_controls(whole_characters(value.get<std::string>(), kLongestText), ' ') : "";
}

std::optional<std::int64_t> whole_in(const Json& line, const char* key, std::int64_t lowest, std::int64_t highest) {
  const Json& value = member(line, key);
  if (value.is_null()) return std::nullopt;
  const double number = value.is_number() ? value.get<double>() : NAN;
  if (!(number >= static_cast<double>(lowest) && number <= static_cast<double>(highest)) ||
      number != std::floor(number))
    reject_line(key);
  return static_cast<std::int64_t>(number);
}

double time_in(const Json& value, const char* key) {
  const double ns = value.is_number() ? value.get<double>() : NAN;
  if (!(ns > 0 && ns <= kLongestNs)) reject_line(key);
  return ns;
}

std::vector<double> times_in(const Json& line, const char* key) {
  const Json& values = member(line, key);
  if (!values.is_array() || values.size() > static_cast<std::size_t>(kMaxProbeIterations)) reject_line(key);
  std::vector<double> times;
  for (const Json& value : values) times.push_back(time_in(value, key));
  return times;
}

std::vector<double> all_of(std::span<const PrioritySamples> processes, std::vector<double> PrioritySamples::* side) {
  std::vector<double> all;
  for (const PrioritySamples& one : processes) all.insert(all.end(), (one.*side).begin(), (one.*side).end());
  return all;
}

double typical_kernel_ns(std::span<const PrioritySamples> processes) {
  std::vector<double> times;
  for (const PrioritySamples& one : processes)
    if (one.kernel_ns > 0) times.push_back(one.kernel_ns);
  return times.empty() ? 0 : median(times);
}

PriorityFinding unavailable(std::string reason) {
  PriorityFinding finding;
  finding.reason = std::move(reason);
  return finding;
}

bool has_failed(const PrioritySamples& one) { return !one.error.empty(); }

// Why there is nothing to judge; empty where there is something. None of these has failed.
std::string obstacle(std::span<const PrioritySamples> processes) {
  for (const PrioritySamples& one : processes) {
    if (one.least && one.greatest && *one.least == *one.greatest)
      return fmt::format("the runtime offers one priority only ({}): streams cannot be given another", *one.least);
    if (one.device != processes[0].device || one.torch != processes[0].torch)
      return fmt::format("the processes differ: torch {} on {}, torch {} on {}", processes[0].torch,
                         processes[0].device, one.torch, one.device);
  }
  return "";
}

Json wait_json(const char* stream, std::optional<std::int64_t> priority, const std::vector<double>& times) {
  const auto level = [&](double share) { return times.empty() ? Json() : Json(quantile(times, share)); };
  return WEIR_NAMED(
      stream, named("priority", or_null(priority)), named("samples", times.size()),
      named("wait_ns", WEIR_NAMED(named("p50", level(0.5)), named("p95", level(0.95)), named("max", level(1)))));
}

Json process_json(const PrioritySamples& one) {
  return WEIR_NAMED(named("kernel_ns", positive_or_null(one.kernel_ns)), one.queued, one.idle, one.equal_ns,
                    one.high_ns, one.alone_ns, named("error", text_or_null(one.error)));
}

}  // namespace

const char* name_of(Answer answer) {
  constexpr std::array kNames{"helps", "nothing", "slower", "undecided", "unavailable"};
  return kNames[static_cast<std::size_t>(answer)];
}

bool is_priority_line(const Json& line) { return line.is_object() && member(line, "probe") == "priority"; }

PrioritySamples read_priority_line(const Json& line) {
  if (member(line, "version") != 1) reject_line("version");
  PrioritySamples samples;
  samples.python = short_text(line, "python");
  samples.torch = short_text(line, "torch");
  samples.runtime = short_text(line, "runtime");
  samples.runtime_version = short_text(line, "runtime_version");
  samples.device = short_text(line, "device");
  samples.error = short_text(line, "error");
  constexpr std::int64_t kFar = 1'000'000;
  samples.least = whole_in(line, "least_priority", -kFar, kFar);
  samples.greatest = whole_in(line, "greatest_priority", -kFar, kFar);
  if (!samples.error.empty()) return samples;
  if (!samples.least || !samples.greatest) reject_line("least_priority");
  if (*samples.least == *samples.greatest) return samples;
  samples.kernel_ns = time_in(member(line, "kernel_ns"), "kernel_ns");
  samples.queued = whole_in(line, "queued", 1, kFar).value_or(0);
  samples.idle = whole_in(line, "idle", 0, kFar).value_or(0);
  samples.equal_ns = times_in(line, "equal_ns");
  samples.high_ns = times_in(line, "high_ns");
  samples.alone_ns = times_in(line, "alone_ns");
  return samples;
}

std::vector<PrioritySamples> read_priority_lines(std::string_view text, const std::string& name) {
  std::vector<PrioritySamples> processes;
  while (!text.empty()) {
    const std::string_view row = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), row.size() + 1));
    const auto line = Json::parse_if_valid(row);
    if (!line || !is_priority_line(*line)) continue;
    if (processes.size() == kMaxProcesses) reject(fmt::format("{}: more than {} lines", name, kMaxProcesses));
    processes.push_back(read_priority_line(*line));
  }
  if (processes.empty())
    reject(fmt::format("{}: no line of the probe is in it", name),
           "weir probe priority --snippet | python3 - > FILE writes one; add more with >>.");
  return processes;
}

PriorityFinding judge_priority(std::span<const PrioritySamples> all, const CompareOptions& options) {
  const auto failed = std::find_if(all.begin(), all.end(), has_failed);
  std::vector<PrioritySamples> processes(all.begin(), all.end());
  std::erase_if(processes, has_failed);
  if (processes.empty()) return unavailable(failed == all.end() ? "nothing was measured" : failed->error);
  if (std::string reason = obstacle(processes); !reason.empty()) return unavailable(std::move(reason));
  PriorityFinding finding;
  Change& change = finding.change;
  if (processes.size() == 1) {
    measure_samples(processes[0].equal_ns, processes[0].high_ns, options, change);
  } else {
    std::vector<ProcessSamples> equal, high;
    for (const PrioritySamples& one : processes) {
      if (!one.equal_ns.empty()) equal.emplace_back(one.equal_ns);
      if (!one.high_ns.empty()) high.emplace_back(one.high_ns);
    }
    measure_sides(equal, high, {}, options, change);
  }
  Change* const changes[] = {&change};
  decide(changes, options);
  const std::vector<double> high = all_of(processes, &PrioritySamples::high_ns);
  const std::vector<double> alone = all_of(processes, &PrioritySamples::alone_ns);
  switch (change.verdict) {
    case Verdict::faster:
      finding.answer = Answer::helps;
      finding.passes_running =
          !alone.empty() && median(high) - median(alone) < kInsideShare * typical_kernel_ns(processes);
      break;
    case Verdict::same:
      finding.answer = Answer::nothing;
      break;
    case Verdict::slower:
      finding.answer = Answer::slower;
      break;
    case Verdict::ambiguous:
    case Verdict::not_comparable:
      finding.answer = Answer::undecided;
      finding.reason = change.reason;
      if (high.empty() || all_of(processes, &PrioritySamples::equal_ns).empty())
        finding.reason = "the device was idle whenever the short kernel came: the host fills it too slowly";
      break;
  }
  if (failed != all.end())
    finding.reason += fmt::format("{}{} of {} processes failed: {}", finding.reason.empty() ? "" : "; ",
                                  all.size() - processes.size(), all.size(), failed->error);
  return finding;
}

Json priority_document(std::span<const PrioritySamples> processes, const PriorityFinding& finding,
                       const CompareOptions& options, const RunContext& context) {
  const auto measured = std::find_if_not(processes.begin(), processes.end(), has_failed);
  const PrioritySamples facts = measured != processes.end() ? *measured
                                : processes.empty()         ? PrioritySamples{}
                                                            : processes.front();
  const auto failed = std::count_if(processes.begin(), processes.end(), has_failed);
  const bool is_one = static_cast<std::ptrdiff_t>(processes.size()) - failed <= 1;
  const Change& change = finding.change;
  const bool is_less = change.ratio && *change.ratio > 0;
  // As a user asks: how many times sooner.
  const Json interval = change.interval && change.interval->low > 0
                            ? Json::array({1 / change.interval->high, 1 / change.interval->low})
                            : Json();
  std::int64_t idle = 0;
  for (const PrioritySamples& one : processes) idle += one.idle;
  Json runtime =
      WEIR_NAMED(named("python", text_or_null(facts.python)), named("torch", text_or_null(facts.torch)),
                 named("name", text_or_null(facts.runtime)), named("version", text_or_null(facts.runtime_version)),
                 named("device", text_or_null(facts.device)), named("least_priority", or_null(facts.least)),
                 named("greatest_priority", or_null(facts.greatest)));
  Json waits = Json::array();
  waits.push_back(wait_json("high", facts.greatest, all_of(processes, &PrioritySamples::high_ns)));
  waits.push_back(wait_json("equal", facts.least, all_of(processes, &PrioritySamples::equal_ns)));
  waits.push_back(wait_json("alone", std::nullopt, all_of(processes, &PrioritySamples::alone_ns)));
  return WEIR_NAMED(named("schema", schemas::probe_priority), named("created", wall_time()), context.command_line,
                    context.environment, finding.answer, named("reason", text_or_null(finding.reason)),
                    named("speedup", is_less ? Json(1 / *change.ratio) : Json()), named("interval", interval),
                    named("adjusted_p", number_or_null(change.adjusted_p)), named("threshold", options.threshold),
                    named("judged_by", is_one ? "samples" : "processes"),
                    named("passes_running", or_null(finding.passes_running)), runtime,
                    named("kernel_ns", positive_or_null(typical_kernel_ns(processes))), idle, waits,
                    named("processes", json_list(processes, process_json)));
}

}  // namespace weir::probe
