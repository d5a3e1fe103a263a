#include "report/figures/figures.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "base/plain_text.h"
#include "base/schemas.h"
#include "report/figures/figures_row.h"
#include "report/text/fields.h"

namespace weir {
namespace figures {

constexpr std::size_t kLongestLabel = 400;
constexpr std::size_t kMaxSettings = 64;

// 0.000123, not 0.00012300000000000001: dividing by an exact power of ten rounds once.
double scaled(double value, double scale) {
  return scale < 1 && scale > 0 ? value / std::round(1 / scale) : value * scale;
}

void add(FigureRow& row, const char* name, const char* unit, const char* help, std::optional<double> value,
         double scale, const Labels& labels) {
  if (!value || !std::isfinite(scaled(*value, scale))) return;
  row.figures.push_back({name, unit, help, labels, scaled(*value, scale)});
}

void add_summary(FigureRow& row, const std::string& name, const char* help, const Json& summary, double scale,
                 const Labels& labels) {
  const auto find = [&](const char* key) { return fields::number(summary, {key}); };
  const auto with = [&](const char* quantile) {
    Labels all = labels;
    all.emplace_back("quantile", quantile);
    return all;
  };
  constexpr std::array kQuantiles{std::pair{"min", "0"},    std::pair{"p50", "0.5"},  std::pair{"p90", "0.9"},
                                  std::pair{"p95", "0.95"}, std::pair{"p99", "0.99"}, std::pair{"p999", "0.999"},
                                  std::pair{"max", "1"}};
  for (const auto& [key, quantile] : kQuantiles)
    add(row, name.c_str(), "seconds", help, find(key), scale, with(quantile));
  add(row, (name + "_mean").c_str(), "seconds", "Mean of the samples.", find("mean"), scale, labels);
  add(row, (name + "_std").c_str(), "seconds", "Standard deviation of the samples.", find("std"), scale, labels);
  for (const auto& [key, quantile] : kQuantiles) {
    const auto ends = fields::interval(summary, {fmt::format("{}_interval", key).c_str()});
    if (!ends) continue;
    add(row, (name + "_low").c_str(), "seconds", "Low end of the quantile's 95 % interval.", ends->first, scale,
        with(quantile));
    add(row, (name + "_high").c_str(), "seconds", "High end of the quantile's 95 % interval.", ends->second, scale,
        with(quantile));
  }
}

void add_series(FigureRow& row, const char* name, const char* unit, const Json& list, double scale) {
  if (!list.is_array() || list.empty()) return;
  FigureSeries& series = row.series.emplace_back();
  series.name = name;
  series.unit = unit;
  series.values.reserve(list.size());
  for (const Json& item : list) {
    if (!item.is_number() || !std::isfinite(item.get<double>())) break;
    series.values.push_back(scaled(item.get<double>(), scale));
  }
}

std::string label(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_object() || value.is_array()) return std::string(value.type_name());
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  const std::string_view cut = whole_characters(text, kLongestLabel);
  return cut.size() == text.size() ? text : std::string(cut) + "...";
}

std::string settings(const Json& object) {
  std::string text;
  if (!object.is_object()) return text;
  std::size_t count = 0;
  for (const auto& [name, value] : object.items()) {
    if (++count > kMaxSettings) break;
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", whole_characters(name, 80),
                        value.is_array() ? value.dump() : label(value));
    if (text.size() > kLongestLabel) break;
  }
  return label(text);
}

}  // namespace figures

namespace {

using namespace fields;
using figures::add;
using figures::add_summary;
using figures::kFromNs;
using figures::label;

struct Work {
  std::string name;
  double scale = 1;
};

// "GFLOP/s" -> FLOP, 1e9; "tokens/s" -> tokens, 1.
Work work_of(std::string unit) {
  if (unit.ends_with("/s")) unit.resize(unit.size() - 2);
  constexpr std::array kPrefixes{std::pair{'k', 1e3}, std::pair{'M', 1e6}, std::pair{'G', 1e9}, std::pair{'T', 1e12}};
  for (const auto& [prefix, scale] : kPrefixes) {
    if (unit == std::string(1, prefix) + "FLOP") return {"FLOP", scale};
    if (unit == std::string(1, prefix) + "B") return {"bytes", scale};
  }
  if (unit == "GiB") return {"bytes", 1073741824.0};
  if (unit == "B") return {"bytes", 1};
  return {unit, 1};
}

void add_throughput(FigureRow& row, const Json& throughput) {
  const Work work = work_of(label(at(throughput, {"unit"})));
  const figures::Labels labels = {{"work", work.name}};
  add(row, "throughput_per_second", "", "Work done per second.", number(throughput, {"value"}), work.scale, labels);
  const auto ends = interval(throughput, {"interval"});
  if (!ends) return;
  add(row, "throughput_low_per_second", "", "Low end of its 95 % interval.", ends->first, work.scale, labels);
  add(row, "throughput_high_per_second", "", "High end of its 95 % interval.", ends->second, work.scale, labels);
}

FigureRow row_of(const Json& result, const std::string& name) {
  if (!at(result, {"workload", "name"}).is_string() || !at(result, {"status"}).is_string())
    reject(fmt::format("{}: no result: 'workload.name' or 'status' is missing", name),
           "Name files that weir wrote, unchanged.");
  FigureRow row;
  row.group = "run";
  row.labels = {{"workload", label(at(result, {"workload", "name"}))},
                {"device", label(at(result, {"device", "name"}))}};
  for (const char* key : {"precision", "scale", "streams", "submit", "placement", "sync_mode"})
    row.labels.emplace_back(key, label(at(result, {key})));
  const Json& ranks = at(result, {"ranks", "count"});
  row.labels.emplace_back("ranks", ranks.is_null() ? "1" : label(ranks));
  const Json& asked = at(result, {"device", "compute_units_asked"});
  row.labels.emplace_back("compute_units", label(asked.is_null() ? at(result, {"device", "compute_units"}) : asked));
  Json parameters = at(result, {"parameters"});
  if (const Json& variables = at(result, {"set_variables"}); variables.is_object() && parameters.is_object())
    for (const auto& [name, value] : variables.items()) parameters[name] = value.is_null() ? Json("unset") : value;
  row.labels.emplace_back("parameters", figures::settings(parameters));
  row.status = label(at(result, {"status"}));
  row.failure = label(at(result, {"failure"}));
  row.is_failed = row.status == "failed" || at(result, {"check", "status"}) == "failed";
  if (row.is_failed && row.failure.empty()) row.failure = label(at(result, {"check", "reason"}));
  row.created = label(at(result, {"created"}));
  row.version = label(at(result, {"weir", "version"}));
  row.commit = label(at(result, {"weir", "commit"}));
  const Json& metrics = at(result, {"metrics"});
  const bool is_pipelined = label(at(result, {"sync_mode"})) == "end_only";  // 0.1 wrote device_ns twice there
  add_summary(row, "latency", "Time of an iteration, by quantile; 0 is the least and 1 the most.",
              is_pipelined ? Json(nullptr) : at(metrics, {"latency_ns"}), kFromNs);
  add_summary(row, "device", "First start to last end of an iteration on the device's clock.",
              at(metrics, {"device_ns"}), kFromNs);
  add_throughput(row, at(metrics, {"throughput"}));
  add_summary(row, "first_token", "From an iteration's first submit to a request's first token.",
              at(metrics, {"serving", "first_token_ns"}), kFromNs);
  add_summary(row, "next_token", "From one token to the next.", at(metrics, {"serving", "next_token_ns"}), kFromNs);
  add(row, "samples", "", "Measured iterations.",
      number(metrics, {is_pipelined ? "device_ns" : "latency_ns", "count"}));
  add(row, "commands_per_second", "", "Commands that ended, per second.", number(metrics, {"commands_per_s"}));
  add(row, "host_per_command", "seconds", "Median host time to submit one command.",
      number(metrics, {"host_ns_per_command"}), kFromNs);
  add(row, "floor_per_command", "seconds", "The same on the null device: what the toolkit itself costs.",
      number(metrics, {"floor_ns_per_command"}), kFromNs);
  add(row, "memory_allocated", "bytes", "Buffers of the step.", number(metrics, {"memory", "allocated_bytes"}));
  add(row, "memory_reserved", "bytes", "All that the session took from the device.",
      number(metrics, {"memory", "reserved_bytes"}));
  add(row, "memory_peak", "bytes", "Most that was in use at once.", number(metrics, {"memory", "peak_bytes"}));
  add(row, "energy_per_iteration", "joules", "By the device's own counter.",
      number(metrics, {"energy", "joules_per_iteration"}));
  add(row, "power", "watts", "Mean over the timed pass.", number(metrics, {"energy", "watts", "mean"}));
  add(row, "clock_before", "hertz", "Before the timed pass.", number(metrics, {"telemetry", "clock_mhz_before"}), 1e6);
  add(row, "clock_after", "hertz", "After the timed pass.", number(metrics, {"telemetry", "clock_mhz_after"}), 1e6);
  add(row, "temperature", "celsius", "After the timed pass.", number(metrics, {"telemetry", "temperature_c"}));
  add(row, "tracing_latency", "ratio", "Traced p50 over untraced p50: what tracing costs.",
      number(metrics, {"tracing", "latency_ratio"}));
  add(row, "concurrency_mean", "", "Commands that ran at once, while any ran.",
      number(metrics, {"concurrency", "mean"}));
  add(row, "concurrency_max", "", "Most commands that ran at once.", number(metrics, {"concurrency", "max"}));
  add(row, "fairness", "ratio", "Jain's index over streams of equal work.", number(metrics, {"fairness"}));
  add(row, "queue_switch", "seconds", "What a hop between streams costs over one within a stream.",
      number(metrics, {"queue_switch", "controlled", "ns_per_hop"}), kFromNs);
  add(row, "convoy", "ratio", "p99 of small commands beside large ones over their p99 alone.",
      number(metrics, {"convoy", "index"}));
  add(row, "check_worst", "ratio", "Largest error over what is tolerated.",
      number(result, {"check", "worst_share_of_tolerance"}));
  for (const char* series : {"latency", "interval", "device", "submit"})
    figures::add_series(row, series, "seconds", at(result, {"samples", fmt::format("{}_ns", series).c_str()}), kFromNs);
  return row;
}

// A document's schema, and the function that makes rows of it.
struct Reader {
  const char* schema;
  std::vector<FigureRow> (*read)(const Json& document, const std::string& name);
};
#define WEIR_READER(name) Reader{schemas::name, figures::of_##name},
constexpr std::array kReaders{WEIR_FIGURES(WEIR_READER)};
#undef WEIR_READER

const Reader* reader_of(const Json& document) {
  for (const Reader& reader : kReaders)
    if (at(document, {"schema"}) == reader.schema) return &reader;
  return nullptr;
}

}  // namespace

std::vector<FigureRow> figures::of_result(const Json& document, const std::string& name) {
  return {row_of(document, name)};
}

std::vector<FigureRow> figures::of_sweep(const Json& document, const std::string& name) {
  const Json& results = at(document, {"results"});
  if (!results.is_array()) reject(fmt::format("{}: 'results' is not a list", name), "Name files that weir wrote.");
  std::vector<FigureRow> rows;
  for (const Json& result : results) {
    const std::string where = fmt::format("{}: results[{}]", name, rows.size());
    if (at(result, {"schema"}) != schemas::result)
      reject(fmt::format("{}: expected {}", where, schemas::result), "Name files that weir wrote, unchanged.");
    rows.push_back(row_of(result, where));
  }
  return rows;
}

bool has_figures(const Json& document) { return reader_of(document) != nullptr; }

std::vector<FigureRow> figures_of(const Json& document, const std::string& name) {
  if (const Reader* const reader = reader_of(document)) return reader->read(document, name);
  const Json& schema = at(document, {"schema"});
  std::string known;
  for (const Reader& reader : kReaders) known += fmt::format("{}{}", known.empty() ? "" : ", ", reader.schema);
  reject(fmt::format("{}: found {}, which has no figures to export", name,
                     schema.is_string() ? fmt::format("'{}'", label(schema)) : "no schema"),
         at(document, {"traceEvents"}).is_array() ? "It is a trace: `weir analyze FILE --json` has its figures."
                                                  : fmt::format("Known are {}.", known));
}

std::optional<double> unix_seconds(const std::string& created) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, used = 0;
  if (std::sscanf(created.c_str(), "%4d-%2d-%2dT%2d:%2d:%2dZ%n", &year, &month, &day, &hour, &minute, &second, &used) !=
          6 ||
      static_cast<std::size_t>(used) != created.size())
    return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (month < 1 || day < 1 || !date.ok() || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 ||
      second > 60)
    return std::nullopt;
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  return static_cast<double>(days) * 86400 + hour * 3600 + minute * 60 + second;
}

}  // namespace weir
