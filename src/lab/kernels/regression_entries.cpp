#include "lab/kernels/regression_entries.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/json.h"
#include "base/schemas.h"

namespace weir::bench {
namespace {

constexpr std::size_t kMaxCases = 100'000;
constexpr std::size_t kMaxSamples = 10'000'000;  // of a document
constexpr std::size_t kMaxRounds = 10'000;       // of an entry
constexpr std::size_t kLongestKey = 1000;
constexpr std::size_t kLongestFact = 200;
constexpr double kShortest = 1e-9, kLongest = 1e18;  // of a sample in ns; anything else is no measurement

// Keys of "environment". The first ones identify the machine: on another machine nothing can be compared.
constexpr const char* kMachineFacts[] = {"architecture", "cpu_model", "cpus"};
constexpr const char* kSoftwareFacts[] = {"system",     "kernel",    "governor",     "compiler", "compilers",
                                          "build_type", "variables", "memory_bytes", "weir"};

Json sorted(Json json) {
  const auto members = json.items();
  std::sort(members.begin(), members.end(), [](const auto& one, const auto& other) { return one.name < other.name; });
  for (Json& below : json)
    if (below.is_structured()) below = sorted(std::move(below));
  return json;
}

// A value as one short line; empty for null. Members of objects are sorted, so that their order does not matter.
std::string fact_of(const Json& json) {
  if (json.is_null()) return {};
  std::string text;
  if (json.is_string()) {
    text = json.get<std::string>();
  } else if (json.is_number()) {
    text = fmt::format("{}", json.get<double>());  // 64 and 64.0 are one value
  } else {
    text = sorted(json).dump();
  }
  return text;
}

std::string shortened(std::string text) {
  if (text.size() > kLongestFact) text.replace(kLongestFact, std::string::npos, "...");
  return text;
}

std::optional<double> number_of(const Json& json) {
  if (!json.is_number()) return std::nullopt;
  const double value = json.get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

// Reads a list of positive numbers; describes problems in `trouble`.
std::vector<double> times_of(const Json& json, const char* name, std::string& trouble) {
  std::vector<double> values;
  if (!json.is_array()) {
    trouble = fmt::format("'{}' is not a list", name);
    return values;
  }
  values.reserve(json.size());
  for (const Json& item : json) {
    const double value = item.is_number() ? item.get<double>() : 0;
    if (!(value >= kShortest && value <= kLongest)) {
      trouble = fmt::format("{}[{}] is not a duration", name, values.size());
      return {};
    }
    values.push_back(value);
  }
  return values;
}

// "rounds": [10, 10, 10] says which process samples belong to. Nothing if it does not add up.
std::optional<std::vector<std::size_t>> rounds_of(const Json& json, std::size_t samples) {
  if (!json.is_array() || json.empty() || json.size() > kMaxRounds) return std::nullopt;
  std::vector<std::size_t> counts;
  std::size_t sum = 0;
  for (const Json& item : json) {
    if (!item.is_number_integer() || item.get<double>() < 0) return std::nullopt;
    const std::uint64_t count = item.get<std::uint64_t>();
    if (count > samples - sum) return std::nullopt;
    sum += count;
    if (count > 0) counts.push_back(count);
  }
  return sum == samples ? std::optional(counts) : std::nullopt;
}

// Splits values by the counts; without counts all belong to one process.
std::vector<std::vector<double>> split(const std::vector<double>& values,
                                       const std::optional<std::vector<std::size_t>>& counts) {
  if (!counts) return {values};
  std::vector<std::vector<double>> parts;
  auto begin = values.begin();
  for (const std::size_t count : *counts) {
    parts.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(count));
    begin += static_cast<std::ptrdiff_t>(count);
  }
  return parts;
}

void read_times(const Json& entry, ComparedEntry& result) {
  const Json& timing = member(entry, "timing");
  result.p50_ns = number_of(at_path(timing, {"latency_ns", "p50"}));
  const std::vector<double> samples = times_of(member(timing, "samples_ns"), "samples_ns", result.trouble);
  if (samples.empty()) {
    if (result.trouble.empty()) result.trouble = "there are no samples";
    return;
  }
  const auto counts = rounds_of(member(timing, "rounds"), samples.size());
  result.has_rounds = counts.has_value();
  result.times.rounds = split(samples, counts);
  // Times can be compared without a yardstick, so its problems are ignored.
  std::string no_matter;
  const std::vector<double> yardstick = times_of(member(entry, "yardstick_ns"), "yardstick_ns", no_matter);
  if (yardstick.empty()) return;
  result.times.yardstick = split(yardstick, yardstick.size() == samples.size() ? counts : std::nullopt);
}

void read_failure(const Json& entry, ComparedEntry& result) {
  const Json& status = member(entry, "status");
  const Json& success = member(entry, "success");
  result.status = status.is_string() ? shortened(status.get<std::string>())
                                     : (success.is_boolean() ? (success.get<bool>() ? "ok" : "failed") : "unknown");
  if (result.is_ok()) return;
  const Json& error = member(entry, "error");
  const Json& what = error.is_string() ? error : member(error, "what");
  result.failure = what.is_string() ? shortened(what.get<std::string>()) : result.status;
}

ComparedEntry compared_entry(const Json& json, const std::string& where) {
  if (!json.is_object()) reject(fmt::format("{}: an object is needed here", where), "Measure the baseline again.");
  const Json& key = member(json, "key");
  if (!key.is_string() || key.string().empty() || key.string().size() > kLongestKey)
    reject(fmt::format("{}: 'key' must be a text of at most {} letters", where, kLongestKey),
           "Measure the baseline again.");
  ComparedEntry result;
  result.key = key.get<std::string>();
  read_failure(json, result);
  const Json& timing = member(json, "timing");
  result.conditions = {{"device", fact_of(member(member(json, "device"), "model"))},
                       {"problem size", fact_of(member(json, "problem_size"))},
                       {"seed", fact_of(member(json, "seed"))},
                       {"precision", fact_of(member(json, "precision"))},
                       {"backend", fact_of(member(json, "backend"))},
                       {"cold caches", fact_of(member(timing, "is_cold"))},
                       {"clock", fact_of(member(timing, "clock"))},
                       {"threads", fact_of(member(json, "threads"))}};
  if (result.is_ok() || result.status == "inaccurate")
    read_times(json, result);
  else
    result.trouble = fmt::format("its status is '{}'", result.status);
  const Json& accuracy = member(json, "accuracy");
  for (const char* name : {"rmse", "max_error", "relative_error"})
    if (const auto value = number_of(member(accuracy, name))) result.errors[name] = *value;
  return result;
}

}  // namespace

const ComparedEntry* ComparedSummary::find(const std::string& key) const {
  const auto found = by_key.find(key);
  return found == by_key.end() ? nullptr : &entries[found->second];
}

ComparedSummary compared_summary(const Json& document, const std::string& name) {
  constexpr const char* kHint = "A baseline is the summary.json that 'weir bench' wrote.";
  if (!document.is_object()) reject(fmt::format("{}: is not a document of weir bench", name), kHint);
  const Json& schema = member(document, "schema");
  if (!schema.is_string()) reject(fmt::format("{}: is not a document of weir bench: it has no schema", name), kHint);
  if (schema != schemas::bench)
    reject(fmt::format("{}: is '{}', not '{}'", name, shortened(schema.get<std::string>()), schemas::bench), kHint);
  const Json& cases = member(document, "cases");
  if (!cases.is_array() || cases.size() > kMaxCases)
    reject(fmt::format("{}: 'cases' must be a list of at most {}", name, kMaxCases), kHint);
  ComparedSummary summary;
  const Json& environment = member(document, "environment");
  for (const char* fact : kMachineFacts) summary.machine[fact] = fact_of(member(environment, fact));
  for (const char* fact : kSoftwareFacts) summary.software[fact] = fact_of(member(environment, fact));
  const std::string threads = fact_of(member(member(document, "options"), "threads"));
  std::size_t samples = 0;
  for (const Json& json : cases) {
    const std::string where = fmt::format("{}: cases[{}]", name, summary.entries.size());
    ComparedEntry entry = compared_entry(json, where);
    for (const auto& round : entry.times.rounds) samples += round.size();
    if (samples > kMaxSamples) reject(fmt::format("{}: more than {} samples", where, kMaxSamples), kHint);
    if (entry.conditions["threads"].empty() && entry.conditions["backend"] == "cpu")
      entry.conditions["threads"] = threads;
    if (!summary.by_key.emplace(entry.key, summary.entries.size()).second)
      reject(fmt::format("{}: '{}' is there twice", where, entry.key), kHint);
    summary.entries.push_back(std::move(entry));
  }
  return summary;
}

}  // namespace weir::bench
