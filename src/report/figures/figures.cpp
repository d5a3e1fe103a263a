#include "report/figures/figures.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "base/plain_text.h"
#include "report/figures/figures_row.h"
#include "report/text/fields.h"

namespace weir {
namespace figures {

constexpr std::size_t kLongestLabel = 400;
constexpr std::size_t kMostSettings = 64;

// 0.000123, not 0.00012300000000000001: dividing by an exact power of ten rounds once.
double scaled(double value, double scale) {
  return scale < 1 && scale > 0 ? value / std::round(1 / scale) : value * scale;
}

void add(FigureRow& row, const char* name, const char* unit, const char* help, std::optional<double> value,
         double scale, const Labels& labels) {
  if (!value || !std::isfinite(scaled(*value, scale))) return;
  row.figures.push_back({name, unit, help, labels, scaled(*value, scale)});
}

void add_summary(FigureRow& row, const std::string& name, const char* help, const Json& summary, const char* suffix,
                 double scale, const Labels& labels) {
  const auto find = [&](const char* key) {
    return fields::number(summary, {fmt::format("{}{}", key, suffix).c_str()});
  };
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
    const Json& interval = fields::at(summary, {fmt::format("{}_interval{}", key, suffix).c_str()});
    if (!interval.is_array() || interval.size() != 2 || !interval[0].is_number() || !interval[1].is_number()) continue;
    add(row, (name + "_low").c_str(), "seconds", "Low end of the quantile's 95 % interval.", interval[0].get<double>(),
        scale, with(quantile));
    add(row, (name + "_high").c_str(), "seconds", "High end of the quantile's 95 % interval.",
        interval[1].get<double>(), scale, with(quantile));
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
    if (++count > kMostSettings) break;
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", whole_characters(name, 80),
                        value.is_array() ? value.dump() : label(value));
    if (text.size() > kLongestLabel) break;
  }
  return label(text);
}

}  // namespace figures

namespace {

using fields::at;
using fields::number;
using figures::add;
using figures::kFromNs;
using figures::label;

// One number of weir.result/1, by its path.
struct ResultFigure {
  std::array<const char*, 4> path;
  const char* name;
  const char* unit;
  double scale;
  const char* help;
};

constexpr std::array kResultFigures{
    ResultFigure{{"metrics", "latency_ns", "count"}, "samples", "", 1, "Measured iterations."},
    ResultFigure{{"metrics", "commands_per_second"}, "commands_per_second", "", 1, "Commands that ended, per second."},
    ResultFigure{{"metrics", "host_ns_per_command"},
                 "host_per_command",
                 "seconds",
                 kFromNs,
                 "Median host time to submit one command."},
    ResultFigure{{"metrics", "floor_ns_per_command"},
                 "floor_per_command",
                 "seconds",
                 kFromNs,
                 "The same on the null device: what the toolkit itself costs."},
    ResultFigure{{"metrics", "memory", "allocated_bytes"}, "memory_allocated", "bytes", 1, "Buffers of the step."},
    ResultFigure{{"metrics", "memory", "reserved_bytes"},
                 "memory_reserved",
                 "bytes",
                 1,
                 "All that the session took from the device."},
    ResultFigure{{"metrics", "memory", "peak_bytes"}, "memory_peak", "bytes", 1, "Most that was in use at once."},
    ResultFigure{{"metrics", "energy", "joules_per_iteration"},
                 "energy_per_iteration",
                 "joules",
                 1,
                 "By the device's own counter."},
    ResultFigure{{"metrics", "energy", "mean_watts"}, "power", "watts", 1, "Mean over the timed pass."},
    ResultFigure{{"metrics", "telemetry", "clock_mhz_before"}, "clock_before", "hertz", 1e6, "Before the timed pass."},
    ResultFigure{{"metrics", "telemetry", "clock_mhz_after"}, "clock_after", "hertz", 1e6, "After the timed pass."},
    ResultFigure{{"metrics", "telemetry", "temperature_c"}, "temperature", "celsius", 1, "After the timed pass."},
    ResultFigure{{"metrics", "tracing", "latency_ratio"},
                 "tracing_latency",
                 "ratio",
                 1,
                 "Traced p50 over untraced p50: what tracing costs."},
    ResultFigure{
        {"metrics", "concurrency", "mean"}, "concurrency_mean", "", 1, "Commands that ran at once, while any ran."},
    ResultFigure{{"metrics", "concurrency", "max"}, "concurrency_max", "", 1, "Most commands that ran at once."},
    ResultFigure{{"metrics", "fairness"}, "fairness", "ratio", 1, "Jain's index over streams of equal work."},
    ResultFigure{{"metrics", "queue_switch", "controlled", "ns_per_hop"},
                 "queue_switch",
                 "seconds",
                 kFromNs,
                 "What a hop between streams costs over one within a stream."},
    ResultFigure{{"metrics", "convoy", "index"},
                 "convoy",
                 "ratio",
                 1,
                 "p99 of small commands beside large ones over their p99 alone."},
    ResultFigure{
        {"check", "worst_share_of_tolerance"}, "check_worst", "ratio", 1, "Largest error over what is tolerated."},
};

const Json& along(const Json& json, const std::array<const char*, 4>& path) {
  const Json* here = &json;
  for (const char* key : path) {
    if (key == nullptr) break;
    here = &at(*here, {key});
  }
  return *here;
}

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
  const Json& interval = at(throughput, {"interval"});
  if (!interval.is_array() || interval.size() != 2 || !interval[0].is_number() || !interval[1].is_number()) return;
  add(row, "throughput_low_per_second", "", "Low end of its 95 % interval.", interval[0].get<double>(), work.scale,
      labels);
  add(row, "throughput_high_per_second", "", "High end of its 95 % interval.", interval[1].get<double>(), work.scale,
      labels);
}

FigureRow of_result(const Json& result, const std::string& name) {
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
  row.labels.emplace_back("parameters", figures::settings(at(result, {"parameters"})));
  row.status = label(at(result, {"status"}));
  row.failure = label(at(result, {"failure"}));
  row.is_failed = row.status == "failed" || at(result, {"check", "status"}) == "failed";
  if (row.is_failed && row.failure.empty()) row.failure = label(at(result, {"check", "reason"}));
  row.created = label(at(result, {"created"}));
  row.version = label(at(result, {"weir", "version"}));
  row.commit = label(at(result, {"weir", "commit"}));
  figures::add_summary(row, "latency", "Time of an iteration, by quantile; 0 is the least and 1 the most.",
                       at(result, {"metrics", "latency_ns"}), "", kFromNs);
  figures::add_summary(row, "device", "First start to last end of an iteration on the device's clock.",
                       at(result, {"metrics", "device_ns"}), "", kFromNs);
  add_throughput(row, at(result, {"metrics", "throughput"}));
  figures::add_summary(row, "first_token", "From an iteration's first submit to a request's first token.",
                       at(result, {"metrics", "serving", "first_token_ns"}), "", kFromNs);
  figures::add_summary(row, "next_token", "From one token to the next.",
                       at(result, {"metrics", "serving", "next_token_ns"}), "", kFromNs);
  for (const ResultFigure& figure : kResultFigures) {
    const Json& value = along(result, figure.path);
    if (value.is_number()) add(row, figure.name, figure.unit, figure.help, value.get<double>(), figure.scale);
  }
  for (const char* series : {"latency", "interval", "device", "submit"})
    figures::add_series(row, series, "seconds", at(result, {"samples", fmt::format("{}_ns", series).c_str()}), kFromNs);
  return row;
}

std::vector<FigureRow> of_sweep(const Json& sweep, const std::string& name) {
  const Json& results = at(sweep, {"results"});
  if (!results.is_array()) reject(fmt::format("{}: 'results' is no list", name), "Name files that weir wrote.");
  std::vector<FigureRow> rows;
  for (const Json& result : results) {
    const std::string where = fmt::format("{}: results[{}]", name, rows.size());
    if (at(result, {"schema"}) != "weir.result/1")
      reject(fmt::format("{}: expected weir.result/1", where), "Name files that weir wrote, unchanged.");
    rows.push_back(of_result(result, where));
  }
  return rows;
}

constexpr std::array kSchemas{"weir.result/1",  "weir.sweep/1",   "weir.bench/1",
                              "weir.overlap/1", "weir.preempt/1", "weir.channel/1"};

}  // namespace

bool has_figures(const Json& document) {
  const Json& schema = at(document, {"schema"});
  for (const char* known : kSchemas)
    if (schema == known) return true;
  return false;
}

std::vector<FigureRow> figures_of(const Json& document, const std::string& name) {
  const Json& schema = at(document, {"schema"});
  if (!has_figures(document)) {
    const std::string found = schema.is_string() ? fmt::format("'{}'", label(schema)) : "no schema";
    std::string known;
    for (const char* each : kSchemas) known += fmt::format("{}{}", known.empty() ? "" : ", ", each);
    reject(fmt::format("{}: found {}, which has no figures to export", name, found),
           fmt::format("Known are {}.", known));
  }
  if (schema == "weir.result/1") return {of_result(document, name)};
  if (schema == "weir.sweep/1") return of_sweep(document, name);
  if (schema == "weir.bench/1") return figures::of_bench(document);
  if (schema == "weir.overlap/1") return figures::of_overlap(document);
  if (schema == "weir.preempt/1") return figures::of_preempt(document);
  return figures::of_channel(document);
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
