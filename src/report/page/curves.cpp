#include "report/page/curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "base/named_values.h"
#include "measure/statistics.h"
#include "report/text/documents.h"
#include "report/text/fields.h"
#include "run/scaling_curves.h"

namespace weir::page {
namespace {

constexpr std::size_t kMaxCurveNotes = 12;

using Key = std::map<std::string, std::string>;

// Whether it tells the curves of one picture apart, or is their axis.
bool is_of_curve(const std::string& name) {
  return name == "streams" || name == "submit" || name == "compute_units" || name.starts_with(kVariable);
}

// Everything that the points of one picture share.
Key common_key(const Measured& measured) {
  Key key = measured.point.key;
  std::erase_if(key, [](const auto& entry) { return is_of_curve(entry.first); });
  key["environment"] = measured.environment ? fmt::to_string(*measured.environment) : "";
  key["unit"] = measured.unit;
  if (measured.is_of_sweep) key["source"] = fmt::to_string(measured.source);
  return key;
}

// "param.size" -> "size"
std::string plain_name(const std::string& name) {
  return name.starts_with("param.") ? name.substr(6) : name == "sync_mode" ? "sync" : name;
}

// Groups of one workload differ in some setting, which their titles name. Environments have their own labels.
void set_titles(const Page& page, std::vector<CurveGroup>& groups) {
  std::map<std::string, std::map<std::string, std::set<std::string>>> values;  // workload -> name -> values
  for (const CurveGroup& group : groups)
    for (const auto& [name, value] : group.first().point.key)
      values[group.first().name("workload")][name].insert(value);
  for (CurveGroup& group : groups) {
    const std::string workload = group.first().name("workload");
    group.title = workload;
    for (const auto& [name, value] : group.first().point.key) {
      if (!is_of_curve(name) && values[workload][name].size() > 1)
        group.title += fmt::format(", {} {}", plain_name(name), value);
    }
  }
  // Titles that are still equal were measured on two machines, or twice on one.
  const std::vector<std::function<std::string(const Measured&)>> additions = {
      [&](const Measured& first) { return " on " + page.label_of(first.environment); },
      [](const Measured& first) { return fmt::format(" ({})", std::filesystem::path(first.path).filename().string()); },
      [](const Measured& first) { return fmt::format(" ({})", first.path); }};
  for (const auto& addition : additions) {
    std::map<std::string, std::set<std::string>> titles;  // and the texts to append to them
    for (const CurveGroup& group : groups) titles[group.title].insert(addition(group.first()));
    for (CurveGroup& group : groups)
      if (titles[group.title].size() > 1) group.title += addition(group.first());
  }
}

// scaling_of() takes results; this passes only the fields that it uses.
Json analysed(const Curve& curve) {
  Json results = Json::array();
  for (const Measured* point : curve.points)
    results.push_back({{"status", point->point.failure.empty() ? "complete" : "failed"},
                       {"submit", "inline"},
                       {"streams", point->streams},
                       {"device", Json::object()},
                       {"metrics", {{"throughput", {{"value", point->throughput}}}}}});
  Json analyses = scaling_of(results, curve.points.front()->scaling);
  return analyses.empty() ? Json() : std::move(analyses.begin().value());
}

Json point_json(const Measured& measured, const std::map<int, Json>& efficiencies) {
  Json json = WEIR_NAMED(measured.streams, measured.status, text_or_null(measured.point.failure), measured.throughput,
                         measured.throughput_interval, measured.latency_ns, measured.host_ns_per_command);
  const auto found = efficiencies.find(measured.streams);
  json["efficiency"] = found == efficiencies.end() || measured.throughput.is_null() ? Json(nullptr) : found->second;
  json["count"] = std::max(measured.point.latency.samples.size(), measured.point.throughput.samples.size());
  return json;
}

Json curve_json(const Curve& curve) {
  Json json = {{"name", curve.name}, {"points", Json::array()}, {"floor", Json::array()}};
  std::map<int, Json> efficiencies;
  for (const Json& row : fields::at(curve.analysis, {"rows"}))
    efficiencies[row["streams"].get<int>()] = row["efficiency"];
  for (const Measured* point : curve.points) {
    json["points"].push_back(point_json(*point, efficiencies));
    if (!point->floor_ns_per_command.is_null())
      json["floor"].push_back({{"streams", point->streams}, {"ns_per_command", point->floor_ns_per_command}});
  }
  const Json& usl = fields::at(curve.analysis, {"usl"});
  json["usl"] = nullptr;
  if (usl.is_object())
    for (const char* name : {"gamma", "alpha", "beta", "r_squared", "peak_streams"})
      json["usl"][name] = fields::at(usl, {name});
  json["usl_reason"] = fields::at(curve.analysis, {"usl_reason"});
  if (curve.analysis.is_null()) json["usl_reason"] = "no point has a throughput";
  json["knee"] = fields::at(curve.analysis, {"knee"});
  json["best_streams"] = fields::at(curve.analysis, {"best_streams"});
  return json;
}

// Whole nanoseconds are written as such: "10910144", not "10910144.0".
Json short_number(double value) {
  if (!std::isfinite(value)) return nullptr;
  if (std::fabs(value) < 1e15 && value == std::floor(value)) return static_cast<std::int64_t>(value);
  return std::round(value * 1000) / 1000;
}

Json series_json(const Measured& measured, const std::string& name, std::size_t most) {
  std::vector<double> samples = measured.point.latency.samples;
  std::sort(samples.begin(), samples.end());
  Json json = {{"name", name}, {"count", samples.size()}, {"values", Json::array()}};
  const bool is_whole = samples.size() <= most;
  const std::size_t kept = std::min(samples.size(), most);
  for (std::size_t i = 0; i < kept; ++i)
    json["values"].push_back(short_number(
        is_whole ? samples[i] : quantile_sorted(samples, (static_cast<double>(i) + 0.5) / static_cast<double>(kept))));
  for (const auto& [level, field] : {std::pair(0.5, "p50"), std::pair(0.95, "p95"), std::pair(0.99, "p99")})
    json[field] = samples.empty() ? Json(nullptr) : number_or_null(quantile_sorted(samples, level));
  const std::string& why = measured.point.failure.empty() ? measured.point.latency.reason : measured.point.failure;
  json["reason"] = samples.empty() ? Json(why) : Json(nullptr);
  return json;
}

// One file, or none where points come from several.
std::size_t source_of(const CurveGroup& group) {
  for (const Curve& curve : group.curves)
    for (const Measured* point : curve.points)
      if (point->source != group.first().source) return Page::kNoSource;
  return group.first().source;
}

// "size 4096, order alternating, precision fp32": what was measured, so that it can be repeated.
std::string key_words(const Measured& measured) {
  std::string words;
  for (const auto& [name, value] : measured.point.key)
    if (name != "workload" && !is_of_curve(name))
      words += fmt::format("{}{} {}", words.empty() ? "" : ", ", plain_name(name), value);
  return words;
}

Json notes_of(const CurveGroup& group) {
  std::vector<std::string> notes;
  if (const std::string words = key_words(group.first()); !words.empty()) notes.push_back("Measured with " + words);
  std::set<std::string> seen(notes.begin(), notes.end());
  std::set<std::string> files;
  for (const Curve& curve : group.curves)
    for (const Measured* point : curve.points) {
      files.insert(point->path);
      for (const std::string& note : point->point.notes)
        if (notes.size() < kMaxCurveNotes && seen.insert(note).second) notes.push_back(note);
    }
  if (files.size() > 1)
    notes.push_back(fmt::format("Put together from {} files, {} to {}", files.size(), *files.begin(), *files.rbegin()));
  return notes;
}

}  // namespace

std::vector<CurveGroup> group_measured(const Page& page, std::span<const Measured> all) {
  std::vector<CurveGroup> groups;
  std::map<Key, std::size_t> group_of;
  using Name = std::pair<std::size_t, std::string>;  // of a curve in a group
  std::map<Name, std::size_t> curve_of;
  std::map<Name, std::map<int, int>> measurements;  // by streams
  for (const Measured& measured : all) {
    const auto [group, is_first] = group_of.try_emplace(common_key(measured), groups.size());
    if (is_first) groups.emplace_back();
    std::vector<Curve>& curves = groups[group->second].curves;
    // The same point from another file must not be averaged away, so it gets a separate curve.
    const int nth = ++measurements[{group->second, measured.curve}][measured.streams];
    const std::string name = nth == 1 ? measured.curve : fmt::format("{} (again, {})", measured.curve, nth);
    const auto [curve, is_new] = curve_of.try_emplace({group->second, name}, curves.size());
    if (is_new) curves.push_back({name, {}, {}});
    curves[curve->second].points.push_back(&measured);
  }
  for (CurveGroup& group : groups)
    for (Curve& curve : group.curves) {
      std::sort(curve.points.begin(), curve.points.end(),
                [](const Measured* a, const Measured* b) { return a->streams < b->streams; });
      curve.analysis = analysed(curve);
    }
  set_titles(page, groups);
  return groups;
}

void add_group(Page& page, CurveGroup& group, std::size_t max_values) {
  const Measured& first = group.first();
  const std::size_t source = source_of(group);
  Json scaling = page.item("scaling", group.title, source, first.environment);
  scaling["notes"] = notes_of(group);
  scaling["workload"] = first.name("workload");
  scaling["unit"] = first.unit;
  scaling["meaning"] = "";
  scaling["curves"] = Json::array();
  Json distribution = page.item("distributions", group.title, source, first.environment);
  distribution["unit"] = "ns";
  distribution["series"] = Json::array();
  for (const Curve& curve : group.curves) {
    scaling["curves"].push_back(curve_json(curve));
    if (const Json& meaning = fields::at(curve.analysis, {"meaning"}); meaning.is_string())
      scaling["meaning"] = meaning;
    for (const Measured* point : curve.points) {
      const std::string name =
          fmt::format("{}, {} stream{}", curve.name, point->streams, point->streams == 1 ? "" : "s");
      distribution["series"].push_back(series_json(*point, name, max_values));
      if (const std::string processes = processes_text(point->document);
          !processes.empty() && distribution["notes"].size() < kMaxCurveNotes)
        distribution["notes"].push_back(fmt::format("{}: {}", name, processes));
    }
  }
  group.id = page.add("scaling", std::move(scaling));
  page.add("distributions", std::move(distribution));
}

}  // namespace weir::page
