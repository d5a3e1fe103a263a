#include "lab/channels/channel_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/named_values.h"
#include "measure/statistics.h"

namespace weir {
namespace {

using channel_bench::Conditions;
using channel_bench::Measurement;
using channel_bench::Unit;

constexpr std::array kUnits{std::pair{Unit::ns_per_operation, "ns_per_operation"},
                            std::pair{Unit::ns_in_all, "ns_in_all"}, std::pair{Unit::per_second, "per_second"}};
constexpr std::size_t kMaxSamples = 1'000'000;  // of one measurement: Weir never writes more

const Json& member(const Json& json, const char* name, const std::string& where) {
  if (!json.is_object()) reject(fmt::format("{}: an object is needed here", where));
  const auto found = json.find(name);
  if (found == json.end()) reject(fmt::format("{}: '{}' is missing", where, name));
  return *found;
}

double number_of(const Json& json, const char* name, const std::string& where) {
  const Json& value = member(json, name, where);
  const double number = value.is_number() ? value.get<double>() : NAN;
  if (!std::isfinite(number)) reject(fmt::format("{}: '{}' must be a number", where, name));
  return number;
}

std::optional<double> number_or_nothing(const Json& json, const char* name, const std::string& where) {
  if (member(json, name, where).is_null()) return std::nullopt;
  return number_of(json, name, where);
}

std::uint64_t count_of(const Json& json, const char* name, const std::string& where) {
  const Json& value = member(json, name, where);
  if (!value.is_number_unsigned()) reject(fmt::format("{}: '{}' must be a whole number, not negative", where, name));
  return value.get<std::uint64_t>();
}

int small_count_of(const Json& json, const char* name, const std::string& where) {
  const std::uint64_t count = count_of(json, name, where);
  if (count > 1'000'000) reject(fmt::format("{}: '{}' is {}: that cannot be", where, name, count));
  return static_cast<int>(count);
}

std::string text_of(const Json& json, const char* name, const std::string& where) {
  const Json& value = member(json, name, where);
  if (!value.is_string()) reject(fmt::format("{}: '{}' must be a text", where, name));
  return value.get<std::string>();
}

std::optional<double> median_of(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  return median(values);
}

// Facts have no fixed names: takes those of all processes, in the order of first appearance.
void add_facts(const ChannelResult& result, ChannelSummary& summary) {
  std::vector<std::pair<std::string, std::vector<double>>> all;
  for (const ChannelMeasurement& measurement : result.measurements) {
    for (const auto& [name, value] : measurement.found.facts) {
      auto found = std::find_if(all.begin(), all.end(), [&](const auto& fact) { return fact.first == name; });
      if (found == all.end()) found = all.insert(all.end(), {name, {}});
      found->second.push_back(value);
    }
  }
  for (const auto& [name, values] : all) summary.facts.emplace_back(name, median(values));
}

}  // namespace

ChannelSummary summarise(const ChannelResult& result) {
  ChannelSummary summary;
  std::vector<double> all, p50, p99;
  for (const ChannelMeasurement& measurement : result.measurements) {
    const Measurement& found = measurement.found;
    summary.sent += found.sent;
    summary.received += found.received;
    if (!found.failure.empty()) {
      if (summary.failures++ == 0) summary.failure = found.failure;
      continue;
    }
    if (found.samples.empty()) continue;
    summary.medians.push_back(median(found.samples));
    all.insert(all.end(), found.samples.begin(), found.samples.end());
    if (found.p50_ns) p50.push_back(*found.p50_ns);
    if (found.p99_ns) p99.push_back(*found.p99_ns);
  }
  summary.value = median_of(summary.medians);
  if (summary.value) {
    const auto [low, high] = std::minmax_element(summary.medians.begin(), summary.medians.end());
    summary.low = *low;
    summary.high = *high;
  }
  summary.p50_ns = median_of(p50);
  summary.p99_ns = median_of(p99);
  summary.modes = two_modes(all);
  add_facts(result, summary);
  return summary;
}

const ChannelResult* ChannelRun::find(std::string_view id) const {
  const auto found =
      std::find_if(results.begin(), results.end(), [&](const auto& result) { return result.id() == id; });
  return found == results.end() ? nullptr : &*found;
}

const char* name_of(Unit unit) {
  for (const auto& [known, name] : kUnits)
    if (known == unit) return name;
  return "unknown";
}

std::optional<Unit> unit_named(std::string_view name) {
  for (const auto& [known, text] : kUnits)
    if (name == text) return known;
  return std::nullopt;
}

Json to_json(const Measurement& measurement) {
  const Json latency_ns = {{"p50", number_or_null(measurement.p50_ns)}, {"p99", number_or_null(measurement.p99_ns)}};
  Json json =
      WEIR_NAMED(measurement.samples, latency_ns, measurement.sent, measurement.received, measurement.is_checksum_right,
                 text_or_null(measurement.failure), named("facts", Json::object()));
  for (const auto& [name, value] : measurement.facts) json["facts"][name] = number_or_null(value);
  return json;
}

Measurement measurement_from(const Json& json, const std::string& where) {
  Measurement measurement;
  const Json& samples = member(json, "samples", where);
  if (!samples.is_array()) reject(fmt::format("{}: 'samples' must be a list", where));
  if (samples.size() > kMaxSamples) reject(fmt::format("{}: {} samples: that cannot be", where, samples.size()));
  for (const Json& sample : samples) {
    const double value = sample.is_number() ? sample.get<double>() : NAN;
    if (!std::isfinite(value) || value <= 0) reject(fmt::format("{}: a sample is not a positive number", where));
    measurement.samples.push_back(value);
  }
  const Json& latency = member(json, "latency_ns", where);
  measurement.p50_ns = number_or_nothing(latency, "p50", where);
  measurement.p99_ns = number_or_nothing(latency, "p99", where);
  measurement.sent = count_of(json, "sent", where);
  measurement.received = count_of(json, "received", where);
  const Json& checksum = member(json, "is_checksum_right", where);
  if (!checksum.is_boolean()) reject(fmt::format("{}: 'is_checksum_right' must be true or false", where));
  measurement.is_checksum_right = checksum.get<bool>();
  if (!member(json, "failure", where).is_null()) measurement.failure = text_of(json, "failure", where);
  const Json& facts = member(json, "facts", where);
  if (!facts.is_object()) reject(fmt::format("{}: 'facts' must be an object", where));
  for (const auto& [name, value] : facts.items())
    if (value.is_number() && std::isfinite(value.get<double>()))
      measurement.facts.emplace_back(name, value.get<double>());
  if (measurement.failure.empty() && measurement.samples.empty()) measurement.failure = "it took no samples";
  return measurement;
}

Json to_json(const Conditions& conditions) {
  Json json = WEIR_NAMED(conditions.cores, conditions.samples, named("sample_ns", conditions.sample_ms * 1e6),
                         conditions.capacity, conditions.device, conditions.seed);
  return json;
}

Conditions conditions_from(const Json& json, const std::string& where) {
  Conditions conditions;
  const Json& cores = member(json, "cores", where);
  if (!cores.is_array() || cores.size() > 100'000) reject(fmt::format("{}: 'cores' must be a list", where));
  for (const Json& core : cores) {
    if (!core.is_number_unsigned() || core.get<std::uint64_t>() > 1'000'000)
      reject(fmt::format("{}: 'cores' must hold numbers of cores", where));
    conditions.cores.push_back(core.get<int>());
  }
  conditions.samples = small_count_of(json, "samples", where);
  conditions.sample_ms = number_of(json, "sample_ns", where) / 1e6;
  conditions.capacity = count_of(json, "capacity", where);
  conditions.device = text_of(json, "device", where);
  conditions.seed = count_of(json, "seed", where);
  return conditions;
}

}  // namespace weir
