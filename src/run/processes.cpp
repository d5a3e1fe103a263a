#include "run/processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "measure/result.h"
#include "measure/student.h"

namespace weir {
namespace {

constexpr double kWidestRates = 4;  // high / low: beyond, the processes say nothing about the mean

std::vector<double> numbers_of(const Json& list) {
  std::vector<double> found;
  if (list.is_array())
    for (const Json& each : list)
      if (each.is_number()) found.push_back(each.get<double>());
  return found;
}

// The values at a path, if every process has it.
std::vector<double> by_process(const Json& document, JsonPath path) {
  std::vector<double> found;
  if (const Json& processes = at_path(document, {"processes"}); processes.is_array())
    for (const Json& process : processes) {
      const Json& value = at_path(process, path);
      if (!value.is_number() || !(value.get<double>() > 0)) return {};
      found.push_back(value.get<double>());
    }
  return found;
}

struct LogMean {
  double mean = 0;
  double error = 0;  // half of the 95 % interval
};

std::optional<LogMean> log_mean(std::vector<double> values) {
  if (values.size() < 2) return std::nullopt;
  for (double& value : values) value = std::log(value);
  const auto count = static_cast<double>(values.size());
  return LogMean{mean(values), student_limit(0.025, count - 1) * standard_deviation(values) / std::sqrt(count)};
}

// Summarises a list of samples again; its intervals may exist now that there are more of them.
void put_summary(Json& all, const char* list) {
  const auto summary = summarise(numbers_of(at_path(all, {"samples", list})));
  if (!summary) return;
  Json& metric = all["metrics"][list];
  metric = to_json(*summary);
  for (const auto& [name, value] : metric.items())
    if (!value.is_null()) all["unavailable"].erase(fmt::format("metrics.{}.{}", list, name));
}

// Work over time of all processes, and an interval from the spread between them.
void put_rates(Json& all) {
  const std::vector<double> rates = by_process(all, {"commands_per_s"});
  if (rates.empty()) return;
  double samples = 0, seconds = 0;  // in units of one iteration's commands
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const auto count = at_path(all["processes"][i], {"samples"}).get<double>();
    samples += count;
    seconds += count / rates[i];
  }
  const double rate = samples / seconds;
  const Json before = std::exchange(all["metrics"]["commands_per_s"], rate);
  Json& throughput = all["metrics"]["throughput"];
  if (!at_path(throughput, {"value"}).is_number() || !before.is_number()) return;
  const double value = throughput["value"].get<double>() * rate / before.get<double>();
  throughput["value"] = value;
  const auto known = log_mean(rates);
  if (known && std::exp(2 * known->error) < kWidestRates) {
    throughput["interval"] = Json::array({value * std::exp(-known->error), value * std::exp(known->error)});
    all["unavailable"].erase("metrics.throughput.interval");
  } else {
    throughput["interval"] = nullptr;
    all["unavailable"]["metrics.throughput.interval"] = "the processes are too few for how much they differ";
  }
}

void put_warnings(Json& all, const Json& warnings) {
  for (const Json& warning : warnings) {
    const bool is_known = std::any_of(all["warnings"].begin(), all["warnings"].end(),
                                      [&](const Json& other) { return other["code"] == warning["code"]; });
    if (!is_known) all["warnings"].push_back(warning);
  }
}

// Says why there are fewer processes, or a less precise result, than asked for; not what an earlier run said.
void put_shortage(Json& document, const ProcessCount& count, bool has_budget_ended) {
  if (!at_path(document, {"warnings"}).is_array()) return;  // a summary of `weir overlap` has none
  constexpr const char *kBudget = "budget_ended", *kPrecision = "imprecise";
  Json warnings = Json::array();
  for (const Json& warning : document["warnings"])
    if (const Json& code = at_path(warning, {"code"}); code != kBudget && code != kPrecision)
      warnings.push_back(warning);
  const std::size_t done = process_count(document);
  const auto error = median_error(document);
  if (has_budget_ended) {
    warnings.push_back(
        to_json(Warning{kBudget, fmt::format("the budget ended after {} of {} processes", done, count.most),
                        "Give a longer --budget."}));
  } else if (count.fewest < count.most && done >= count.most && error && *error > count.until) {
    const double percent = 100 * *error;
    const std::string known = percent < 10 ? fmt::format("{:.2g}", percent) : fmt::format("{:.0f}", percent);
    warnings.push_back(to_json(Warning{
        kPrecision, fmt::format("{} processes, and the mean of their medians is known to {} % only", done, known),
        "Allow more processes."}));
  }
  document["warnings"] = std::move(warnings);
}

bool is_failed(const Json& document) { return at_path(document, {"status"}) == "failed"; }

// A process that failed ends its side: what the others measured is kept, but is not what was asked for.
void put_failure(Json& all, const ChildOutcome& outcome) {
  const std::size_t done = process_count(all);
  if (done == 0 && is_failed(outcome.document)) {
    all = outcome.document;
  } else {
    if (all.is_null()) all = Json::object();
    all["failure"] = done == 0 ? outcome.message : fmt::format("process {}: {}", done + 1, outcome.message);
    all["hint"] = outcome.hint.empty() ? Json(nullptr) : Json(outcome.hint);
  }
  all["status"] = "failed";
}

}  // namespace

std::optional<double> median_error(const Json& document) {
  const auto known = log_mean(by_process(document, {"latency_ns", "p50"}));
  return known ? std::optional(std::expm1(known->error)) : std::nullopt;
}

std::size_t process_count(const Json& document) {
  if (!document.is_object()) return 0;
  const Json& processes = at_path(document, {"processes"});
  return processes.is_array() ? processes.size() : 1;
}

void add_process_result(Json& all, const Json& result, std::int64_t wall_ns) {
  const Json& latency = at_path(result, {"samples", "latency_ns"});
  const Json& samples = latency.is_array() ? latency : at_path(result, {"samples", "interval_ns"});
  const Json process = {{"samples", samples.is_array() ? samples.size() : 0},
                        {"seed", at_path(result, {"seed"})},
                        {"wall_ns", wall_ns},
                        {"latency_ns", {{"p50", number_or_null(median(numbers_of(samples)))}}},
                        {"commands_per_s", at_path(result, {"metrics", "commands_per_s"})}};
  if (all.is_null()) {
    all = result;
    all["processes"] = Json::array({process});
    return;
  }
  const double submit_before = median(numbers_of(at_path(all, {"samples", "submit_ns"})));
  for (auto& [name, list] : all["samples"].items()) {
    const Json& more = at_path(result, {"samples", name.c_str()});
    if (list.is_array() && more.is_array())
      for (const Json& sample : more) list.push_back(sample);
  }
  all["processes"].push_back(process);
  put_summary(all, "latency_ns");
  put_summary(all, "device_ns");
  put_rates(all);
  const double submit = median(numbers_of(at_path(all, {"samples", "submit_ns"})));
  if (Json& cost = all["metrics"]["host_ns_per_command"]; cost.is_number() && submit_before > 0)
    cost = cost.get<double>() * submit / submit_before;
  put_warnings(all, at_path(result, {"warnings"}));
}

RoundsOutcome run_in_processes(const ProcessCount& count, std::uint64_t seed, std::vector<Json>& sides,
                               const ProcessesControl& control, const std::atomic<bool>& stop) {
  const auto wants_more = [&](const Json& document) {
    const std::size_t done = process_count(document);
    if (is_failed(document) || done >= count.most) return false;
    if (done < count.fewest) return true;
    const auto error = median_error(document);
    return !error || *error > count.until;
  };
  RoundsControl rounds;
  rounds.wants = [&](std::size_t side, std::size_t round) {
    return process_count(sides[side]) <= round && wants_more(sides[side]);
  };
  rounds.run = [&](std::size_t side, std::size_t round) {
    const ChildOutcome outcome = control.run(side, round);
    if (outcome.end == ChildEnd::interrupted) return false;
    if (outcome.end == ChildEnd::done) {
      control.add(sides[side], outcome.document, outcome.wall_ns);
      sides[side]["status"] = "interrupted";  // until all of them are there
    } else {
      put_failure(sides[side], outcome);
    }
    if (control.ended) control.ended(side);
    return true;
  };
  rounds.is_enough = [&](std::size_t) { return std::none_of(sides.begin(), sides.end(), wants_more); };
  const RoundsPlan plan{
      .sides = sides.size(), .min_rounds = 1, .max_rounds = count.most, .budget_ns = count.budget_ns, .seed = seed};
  const RoundsOutcome outcome = run_rounds(plan, rounds, stop);
  for (Json& document : sides) {
    if (document.is_null() || is_failed(document)) continue;
    const bool is_cut = outcome.end == RoundsEnd::interrupted && wants_more(document);
    document["status"] = is_cut ? "interrupted" : "complete";
    put_shortage(document, count, outcome.end == RoundsEnd::budget && wants_more(document));
  }
  return outcome;
}

}  // namespace weir
