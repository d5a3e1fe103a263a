#include "lab/overlap/overlap_compare.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "base/schemas.h"
#include "lab/overlap/overlap.h"
#include "measure/statistics.h"

namespace weir {
namespace {

namespace fs = std::filesystem;

struct Metric {
  const char* name;
  const char* unit;
  const std::vector<double> OverlapPointFile::* samples;
  const std::vector<std::size_t> OverlapPointFile::* processes;
  bool is_less_better;
};
constexpr Metric kMetrics[] = {
    {"step", "ns", &OverlapPointFile::step_ns, &OverlapPointFile::step_processes, true},
    {"exposed", "ns", &OverlapPointFile::exposed_ns, &OverlapPointFile::traced_processes, true},
    {"efficiency", "", &OverlapPointFile::efficiency, &OverlapPointFile::efficiency_processes, false}};

std::vector<double> numbers(const Json& list) {
  std::vector<double> found;
  if (list.is_array())
    for (const Json& each : list)
      if (each.is_number()) found.push_back(each.get<double>());
  return found;
}

// Empty unless the processes' samples are exactly those of the document.
std::vector<std::size_t> process_sizes(const Json& summary, const char* member, std::size_t samples) {
  std::vector<std::size_t> sizes;
  std::size_t sum = 0;
  if (const Json& processes = at_path(summary, {"processes"}); processes.is_array())
    for (const Json& process : processes) {
      const Json& size = at_path(process, {member});
      if (!size.is_number_integer() || size < 0 || size > samples) return {};
      sum += sizes.emplace_back(size.get<std::size_t>());
    }
  return sum == samples ? sizes : std::vector<std::size_t>();
}

std::string word(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.is_null() ? "" : value.dump();
}

OverlapPointFile point_of(const Json& summary, const std::string& origin) {
  if (word(at_path(summary, {"schema"})) != schemas::overlap)
    reject(fmt::format("{}: not a summary of `weir overlap` ({})", origin, schemas::overlap),
           "Name a summary.json, or the folder that it is in.");
  OverlapPointFile point;
  point.origin = origin;
  if (const Json& config = at_path(summary, {"config"}); config.is_object())
    for (const auto& [key, value] : config.items()) point.config[key] = word(value);
  if (const Json& variables = at_path(summary, {"set_variables"}); variables.is_object())
    for (const auto& [name, value] : variables.items())
      point.config["env." + name] = value.is_null() ? "unset" : word(value);
  point.config["ranks"] = word(at_path(summary, {"ranks", "count"}));
  point.is_virtual = word(at_path(summary, {"device", "backend"})) == "sim";
  point.settings = {{"device", word(at_path(summary, {"device", "model"}))},
                    {"collectives", word(at_path(summary, {"ranks", "collectives"}))},
                    {"driver", word(at_path(summary, {"device", "driver"}))}};
  if (const std::string status = word(at_path(summary, {"status"})); status != "complete")
    point.failure = status == "failed" ? word(at_path(summary, {"failure"})) : fmt::format("the run is {}", status);
  point.step_ns = numbers(at_path(summary, {"step_ns", "overlapped", "samples_ns"}));
  point.exposed_ns = numbers(at_path(summary, {"overlap", "samples", "exposed_ns"}));
  point.efficiency = numbers(at_path(summary, {"overlap", "samples", "efficiency"}));
  point.step_processes = process_sizes(summary, "samples", point.step_ns.size());
  point.traced_processes = process_sizes(summary, "traced", point.exposed_ns.size());
  point.efficiency_processes = process_sizes(summary, "traced", point.efficiency.size());
  return point;
}

// Settings that differ between two configs, except those that only say where and for how long to run.
std::vector<std::string> differences(const OverlapPointFile& a, const OverlapPointFile& b) {
  std::vector<std::string> notes;
  const auto compare = [&](const auto& before, const auto& after) {
    for (const auto& [key, value] : before) {
      const auto found = after.find(key);
      const std::string other = found == after.end() ? "not set" : found->second;
      if (other != value) notes.push_back(fmt::format("{} differs: {} vs {}", key, value, other));
    }
    for (const auto& [key, value] : after)
      if (!before.contains(key)) notes.push_back(fmt::format("{} differs: not set vs {}", key, value));
  };
  compare(a.config, b.config);
  compare(a.settings, b.settings);
  return notes;
}

PairComparison pair_of(const OverlapPointFile& before, const OverlapPointFile& after, const CompareOptions& options) {
  PairComparison pair;
  pair.label = before.label.empty() ? "overlap" : before.label;
  pair.key = before.config;
  pair.notes = differences(before, after);
  if (settle_failure(before.failure, after.failure, pair)) return pair;
  std::optional<Spread> spread;
  if (before.is_virtual && after.is_virtual) spread = Spread{0, 0, "virtual time"};
  if (!spread && (before.step_processes.size() < 2 || after.step_processes.size() < 2))
    pair.notes.push_back("one process on a side says little about the next: run `weir overlap` with --processes 5");
  for (const Metric& metric : kMetrics) {
    MetricComparison& result = pair.metrics.emplace_back();
    result.metric = metric.name;
    result.unit = metric.unit;
    result.is_less_better = metric.is_less_better;
    measure_sides(by_process(before.*metric.samples, before.*metric.processes),
                  by_process(after.*metric.samples, after.*metric.processes), spread, options, result);
  }
  return pair;
}

}  // namespace

OverlapFile load_overlap(const fs::path& path) {
  OverlapFile file;
  file.name = path.string();
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    file.points.push_back(point_of(read_json(path), path.string()));
    return file;
  }
  if (fs::is_regular_file(path / "summary.json", ignored)) {
    file.points.push_back(point_of(read_json(path / "summary.json"), (path / "summary.json").string()));
    return file;
  }
  std::vector<fs::path> folders;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, ignored))
    if (entry.is_directory(ignored) && fs::is_regular_file(entry.path() / "summary.json", ignored))
      folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  for (const fs::path& folder : folders) {
    OverlapPointFile& point =
        file.points.emplace_back(point_of(read_json(folder / "summary.json"), (folder / "summary.json").string()));
    point.label = folder.filename().string();
  }
  if (file.points.empty())
    reject(fmt::format("{}: has no summary.json", path.string()), "Name a folder of `weir overlap -o`.");
  return file;
}

Comparison compare_overlap(const OverlapFile& baseline, const OverlapFile& test, const CompareOptions& options) {
  Comparison comparison{baseline.name, options, {}, 0};
  TestComparison& result = comparison.tests.emplace_back();
  result.name = test.name;
  const bool is_one = baseline.points.size() == 1 && test.points.size() == 1;
  for (const OverlapPointFile& before : baseline.points) {
    const auto after = std::find_if(test.points.begin(), test.points.end(), [&](const OverlapPointFile& other) {
      return is_one || other.label == before.label;
    });
    if (after == test.points.end()) {
      result.baseline_only.push_back({before.label, before.origin, "the test has no such point"});
    } else {
      result.pairs.push_back(pair_of(before, *after, options));
    }
  }
  for (const OverlapPointFile& after : test.points) {
    const bool has_partner = is_one || std::any_of(baseline.points.begin(), baseline.points.end(),
                                                   [&](const auto& other) { return other.label == after.label; });
    if (!has_partner) result.test_only.push_back({after.label, after.origin, "the baseline has no such point"});
  }
  if (result.pairs.empty())
    reject(fmt::format("{}: no point has a partner in {}", test.name, baseline.name),
           "Compare sweeps over the same values, or single runs.");
  decide_all(comparison);
  return comparison;
}

}  // namespace weir
