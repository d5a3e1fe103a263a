#include "lab/kernels/document.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/clock.h"
#include "base/error.h"
#include "base/named_values.h"
#include "base/schemas.h"
#include "measure/statistics.h"

namespace weir::bench {
namespace {

constexpr std::array kBlocks{"timing", "memory", "energy", "accuracy", "roofline"};
// From best to worst. A case has the status of its worst round: one wrong result is enough.
constexpr std::array kStatuses{"ok", "skipped", "inaccurate", "failed", "timed_out", "crashed"};

Json blank_entry(const std::string& name, const Json& backend, const Json& precision, const Json& problem,
                 const std::string& key, const Json& seed) {
  Json entry = {{"kernel_name", name},     {"backend", backend}, {"precision", precision},
                {"problem_size", problem}, {"key", key},         {"seed", seed},
                {"device", nullptr},       {"how", nullptr},     {"launches_per_run", nullptr}};
  for (const char* block : kBlocks) entry[block] = nullptr;
  entry["yardstick_ns"] = Json::array();
  entry["success"] = false;
  entry["status"] = "failed";
  entry["error"] = {{"what", "it was not run"}, {"hint", nullptr}, {"signal", nullptr}, {"output", nullptr}};
  return entry;
}

std::size_t severity(const Json& entry) {
  const Json& status = value_at(entry, {"status"});
  const auto found = std::find(kStatuses.begin(), kStatuses.end(), status);
  return static_cast<std::size_t>(found - kStatuses.begin());
}

std::vector<double> samples_of(const Json& entry) {
  std::vector<double> samples;
  for (const Json& sample : value_at(entry, {"timing", "samples_ns"}))
    if (sample.is_number()) samples.push_back(sample.get<double>());
  return samples;
}

double sum_of(std::span<const Json> rounds, std::initializer_list<const char*> path) {
  double sum = 0;
  for (const Json& round : rounds) sum += number_at(round, path).value_or(0);
  return sum;
}

std::optional<double> max_of(std::span<const Json> rounds, std::initializer_list<const char*> path) {
  std::optional<double> most;
  for (const Json& round : rounds)
    if (const auto value = number_at(round, path); value && (!most || *value > *most)) most = value;
  return most;
}

const Json* first_with(std::span<const Json> rounds, const char* block) {
  for (const Json& round : rounds)
    if (value_at(round, {block}).is_object()) return &round;
  return nullptr;
}

// {"count", "redone", "kept", "reasons": {reason: count}, "samples_ns", "note"}
Json merged_disturbance(std::span<const Json> rounds) {
  Json merged;
  for (const Json& round : rounds) {
    const Json& mine = value_at(round, {"timing", "disturbed"});
    if (!mine.is_object()) continue;
    if (merged.is_null()) {
      merged = mine;
      continue;
    }
    for (const char* key : {"count", "redone", "kept"})
      if (const Json& more = value_at(mine, {key}); more.is_number_integer() && value_at(merged, {key}).is_number())
        merged[key] = merged[key].get<std::int64_t>() + more.get<std::int64_t>();
    for (const auto& [reason, count] : value_at(mine, {"reasons"}).items())
      merged["reasons"][reason] = static_cast<std::int64_t>(number_at(merged["reasons"], {reason.c_str()}).value_or(0) +
                                                            (count.is_number() ? count.get<double>() : 0));
    for (const Json& sample : value_at(mine, {"samples_ns"})) merged["samples_ns"].push_back(sample);
    if (value_at(merged, {"note"}).is_null()) merged["note"] = value_at(mine, {"note"});
  }
  return merged;
}

// {"p50", "low", "high", "readings"}; null if no round has clocks. Readings themselves are not kept, so the median
// is that of the rounds' medians.
Json merged_clocks(std::span<const Json> rounds) {
  std::vector<double> medians, lows, highs;
  for (const Json& round : rounds) {
    const Json& mine = value_at(round, {"timing", "clocks_mhz"});
    const auto middle = number_at(mine, {"p50"}), low = number_at(mine, {"low"}), high = number_at(mine, {"high"});
    if (!middle || !low || !high) continue;
    medians.push_back(*middle);
    lows.push_back(*low);
    highs.push_back(*high);
  }
  if (medians.empty()) return nullptr;
  return {{"p50", median(medians)},
          {"low", *std::min_element(lows.begin(), lows.end())},
          {"high", *std::max_element(highs.begin(), highs.end())},
          {"readings", static_cast<std::int64_t>(sum_of(rounds, {"timing", "clocks_mhz", "readings"}))}};
}

// Values that do not come from samples are those of the worst round.
void put_worst(std::span<const Json> rounds, Json& timing) {
  for (const Json& round : rounds) {
    const Json& steady = value_at(round, {"timing", "is_steady"});
    if (steady.is_boolean() && !steady.get<bool>() && is_set(timing, {"is_steady"})) {
      timing["is_steady"] = false;
      timing["unsteady_reason"] = value_at(round, {"timing", "unsteady_reason"});
    }
    if (is_set(round, {"timing", "is_launch_bound"})) timing["is_launch_bound"] = true;
    if (const auto mine = number_at(round, {"timing", "resolution"});
        mine && *mine > number_at(timing, {"resolution"}).value_or(HUGE_VAL))
      timing["resolution"] = *mine;
    if (is_set(round, {"timing", "drift", "is_clear"}) && !is_set(timing, {"drift", "is_clear"}))
      timing["drift"] = value_at(round, {"timing", "drift"});
  }
}

Json merged_timing(std::span<const Json> rounds) {
  const Json* const first = first_with(rounds, "timing");
  if (first == nullptr) return nullptr;
  std::vector<double> samples_ns;
  Json counts = Json::array();
  std::vector<std::string> stops;
  for (const Json& round : rounds) {
    const std::vector<double> samples = samples_of(round);
    if (samples.empty()) continue;
    counts.push_back(samples.size());
    samples_ns.insert(samples_ns.end(), samples.begin(), samples.end());
    const Json& stop = value_at(round, {"timing", "stopped_by"});
    if (!stop.is_string()) continue;
    const auto& word = stop.string();
    if (std::find(stops.begin(), stops.end(), word) == stops.end()) stops.push_back(word);
  }
  Json timing = (*first)["timing"];
  if (samples_ns.empty()) return timing;
  const auto before = number_at(timing, {"latency_ns", "mean"}), items = number_at(timing, {"items_per_s"});
  timing.update(timing_block(samples_ns));
  timing["rounds"] = std::move(counts);
  std::string ends;
  for (const std::string& stop : stops) ends += (ends.empty() ? "" : ", ") + stop;
  if (!ends.empty()) timing["stopped_by"] = ends;
  // The block of a crashed process has only samples.
  if (timing.contains("warmup_runs"))
    timing["warmup_runs"] = static_cast<std::int64_t>(sum_of(rounds, {"timing", "warmup_runs"}));
  if (Json disturbed = merged_disturbance(rounds); !disturbed.is_null()) timing["disturbed"] = std::move(disturbed);
  if (Json clocks = merged_clocks(rounds); !clocks.is_null()) timing["clocks_mhz"] = std::move(clocks);
  put_worst(rounds, timing);
  if (const auto after = number_at(timing, {"latency_ns", "mean"}); items && before && after && *after > 0)
    timing["items_per_s"] = *items * *before / *after;
  return timing;
}

Json merged_memory(std::span<const Json> rounds) {
  const Json* const first = first_with(rounds, "memory");
  if (first == nullptr) return nullptr;
  Json memory = (*first)["memory"];
  for (const char* key : {"peak_bytes", "allocated_bytes"})
    if (const auto most = max_of(rounds, {"memory", key})) memory[key] = *most;
  return memory;
}

// Adds up the joules and runs of all windows.
Json merged_energy(std::span<const Json> rounds) {
  const Json* first = first_with(rounds, "energy");
  if (first == nullptr) return nullptr;
  double joules = 0, runs = 0, window_ns = 0, readings = 0, busy_ns = 0;
  bool is_busy_known = true;
  for (const Json& round : rounds) {
    const auto each = number_at(round, {"energy", "energy_j"}), window = number_at(round, {"energy", "window_ns"}),
               count = number_at(round, {"energy", "runs"});
    if (!each || !window || !count || *window <= 0) continue;
    if (runs == 0) first = &round;
    joules += *each * *count;
    runs += *count;
    window_ns += *window;
    const auto busy = number_at(round, {"energy", "busy"});
    is_busy_known = is_busy_known && busy.has_value();
    busy_ns += busy.value_or(0) * *window;
    readings += number_at(round, {"energy", "readings"}).value_or(0);
  }
  Json energy = (*first)["energy"];
  if (runs <= 0) return energy;
  energy["energy_j"] = joules / runs;
  energy["power_w"] = joules * 1e9 / window_ns;
  energy["window_ns"] = window_ns;
  energy["busy"] = is_busy_known ? Json(busy_ns / window_ns) : Json();
  energy.update(WEIR_NAMED(static_cast<std::int64_t>(runs), static_cast<std::int64_t>(readings)));
  return energy;
}

// The accuracy of the worst round; unknown is worse than any number.
Json merged_accuracy(std::span<const Json> rounds) {
  const Json* worst = nullptr;
  const auto error_of = [](const Json& round) {
    const Json& within = value_at(round, {"accuracy", "is_within"});
    const bool is_wrong = within.is_boolean() && !within.get<bool>();
    return std::pair(is_wrong, number_at(round, {"accuracy", "rmse"}).value_or(is_wrong ? HUGE_VAL : 0));
  };
  for (const Json& round : rounds)
    if (value_at(round, {"accuracy"}).is_object() && (worst == nullptr || error_of(round) > error_of(*worst)))
      worst = &round;
  return worst == nullptr ? Json() : (*worst)["accuracy"];
}

// Rates follow the median of all samples; the work and the ceilings are the same in every round. The text is that of
// the round closest to that median: whether it is beyond a ceiling may differ between rounds.
Json merged_roofline(std::span<const Json> rounds, const Json& timing) {
  const Json* nearest = first_with(rounds, "roofline");
  if (nearest == nullptr) return nullptr;
  const double after = number_at(timing, {"latency_ns", "p50"}).value_or(0);
  const auto distance = [&](const Json& round) {
    const double own = number_at(round, {"timing", "latency_ns", "p50"}).value_or(0);
    return own > 0 && after > 0 ? std::fabs(std::log(own / after)) : HUGE_VAL;
  };
  for (const Json& round : rounds)
    if (value_at(round, {"roofline"}).is_object() && distance(round) < distance(*nearest)) nearest = &round;
  Json roofline = (*nearest)["roofline"];
  if (!std::isfinite(distance(*nearest))) return roofline;
  const double before = *number_at(*nearest, {"timing", "latency_ns", "p50"});
  for (const char* key : {"of_ceiling", "bytes_per_s", "flop_per_s"})
    if (const auto value = number_at(roofline, {key})) roofline[key] = *value * before / after;
  if (const auto share = number_at(roofline, {"of_ceiling"})) roofline["is_beyond"] = *share > 1;
  return roofline;
}

Json skipped_json(const package::Skipped& skipped) {
  return WEIR_NAMED(skipped.package, text_or_null(skipped.backend), text_or_null(skipped.precision),
                    text_or_null(skipped.problem), skipped.reason, text_or_null(skipped.hint));
}

}  // namespace

std::optional<double> number_at(const Json& entry, std::initializer_list<const char*> path) {
  const Json& value = value_at(entry, path);
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

bool is_set(const Json& entry, std::initializer_list<const char*> path) {
  const Json& value = value_at(entry, path);
  return value.is_boolean() && value.get<bool>();
}

Json entry_of(const package::Package& package, const package::Case& wanted) {
  return blank_entry(package.name, name_of(wanted.backend), name_of(wanted.precision), json_of(wanted.problem),
                     wanted.key(package.name), wanted.seed);
}

Json entry_of(const package::Package& package, package::Backend backend) {
  return blank_entry(package.name, name_of(backend), nullptr, Json::object(),
                     package.name + "/" + std::string(name_of(backend)), nullptr);
}

Json entry_of(const package::Package& package) {
  return blank_entry(package.name, nullptr, nullptr, Json::object(), package.name, nullptr);
}

void put_measurement(Json& entry, const MeasuredKernel& measurement, const package::ReadyKernel& kernel) {
  entry["device"] = {{"name", kernel.device_name()}, {"model", kernel.device_model()}};
  entry["how"] = kernel.how();
  if (const auto launches = kernel.launches_per_run()) entry["launches_per_run"] = *launches;
  entry.update(WEIR_NAMED(measurement.timing, measurement.memory, measurement.energy, measurement.accuracy,
                          measurement.roofline, measurement.yardstick_ns));
  entry["success"] = measurement.is_accurate;
  entry["status"] = measurement.is_accurate ? "ok" : "inaccurate";
  entry["error"] = nullptr;
  if (measurement.is_accurate) return;
  entry["error"] = {{"what", measurement.inaccuracy}, {"hint", nullptr}, {"signal", nullptr}, {"output", nullptr}};
}

void put_failure(Json& entry, const std::string& status, const std::string& what, const std::string& hint,
                 const std::string& signal, const std::string& output) {
  entry["success"] = false;
  entry["status"] = status;
  entry["error"] = WEIR_NAMED(what, text_or_null(hint), text_or_null(signal), text_or_null(output));
}

Json merge_rounds(std::span<const Json> rounds) {
  if (rounds.empty()) reject("there is no round to merge");
  const auto worst = std::max_element(rounds.begin(), rounds.end(),
                                      [](const Json& one, const Json& two) { return severity(one) < severity(two); });
  // "device" and "how" come from a round that got far enough to know them.
  const auto shown = std::find_if(rounds.begin(), rounds.end(),
                                  [](const Json& round) { return value_at(round, {"device"}).is_object(); });
  Json merged = shown == rounds.end() ? rounds.front() : *shown;
  for (const char* key : {"success", "status", "error"}) merged[key] = value_at(*worst, {key});
  merged["timing"] = merged_timing(rounds);
  merged["memory"] = merged_memory(rounds);
  merged["energy"] = merged_energy(rounds);
  merged["accuracy"] = merged_accuracy(rounds);
  merged["roofline"] = merged_roofline(rounds, merged["timing"]);
  merged["yardstick_ns"] = Json::array();
  for (const Json& round : rounds)
    for (const Json& time : value_at(round, {"yardstick_ns"})) merged["yardstick_ns"].push_back(time);
  return merged;
}

Json kernel_document(const std::string& name, std::span<const Json> entries) {
  Json document = {{"schema", schemas::bench_kernel}, {"kernel_name", name}};
  const auto good =
      std::find_if(entries.begin(), entries.end(), [](const Json& entry) { return is_set(entry, {"success"}); });
  const Json* const shown = good != entries.end() ? &*good : entries.empty() ? nullptr : &entries.front();
  if (shown != nullptr)
    for (const auto& [key, value] : shown->items()) document[key] = value;
  document["cases"] = entries;
  return document;
}

Json summary_document(const Json& environment, const Json& options, const Json& ceilings, std::span<const Json> entries,
                      std::span<const package::Skipped> skipped) {
  std::vector<Json> sorted(entries.begin(), entries.end());
  const auto p50 = [](const Json& entry) {
    return number_at(entry, {"timing", "latency_ns", "p50"}).value_or(HUGE_VAL);
  };
  std::stable_sort(sorted.begin(), sorted.end(), [&](const Json& a, const Json& b) { return p50(a) < p50(b); });
  Json counts = Json::object();
  for (const char* status : kStatuses)
    counts[status] = std::count_if(sorted.begin(), sorted.end(),
                                   [&](const Json& entry) { return value_at(entry, {"status"}) == status; });
  Json left_out = json_list(skipped, skipped_json);
  return {{"schema", schemas::bench},   {"created", wall_time()},       {"status", "complete"},
          {"environment", environment}, {"options", options},           {"ceilings", ceilings},
          {"counts", counts},           {"findings", findings(sorted)}, {"recommendations", recommendations(sorted)},
          {"skipped", left_out},        {"regressions", nullptr},       {"cases", sorted}};
}

}  // namespace weir::bench
