// Determines the best queue count for each stream count from the samples of a sweep's points. Runs nothing.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "lab/queues/queues_sweep.h"
#include "measure/comparison.h"
#include "measure/result.h"
#include "measure/statistics.h"

namespace weir {
namespace {

constexpr CompareOptions kOptions{.threshold = 0.02, .significance = 0.05, .bootstrap = {}};

std::vector<double> samples_of(const Json& point) {
  std::vector<double> samples;
  for (const Json& run : point["runs"])
    for (const Json& sample : run["samples_ns"]) samples.push_back(sample.get<double>());
  return samples;
}

// The medians of the slowest and the fastest process.
Interval range_of(const Json& runs) {
  Interval range{runs[0]["latency_ns"]["p50"].get<double>(), runs[0]["latency_ns"]["p50"].get<double>()};
  for (const Json& run : runs) {
    range.low = std::min(range.low, run["latency_ns"]["p50"].get<double>());
    range.high = std::max(range.high, run["latency_ns"]["p50"].get<double>());
  }
  return range;
}

// All processes together; null if none reported it.
Json throughput_of(const Json& runs) {
  std::vector<double> values;
  std::string unit;
  for (const Json& run : runs) {
    if (!run["throughput"].is_object() || !run["throughput"]["value"].is_number()) return nullptr;
    values.push_back(run["throughput"]["value"].get<double>());
    unit = run["throughput"]["unit"].get<std::string>();
  }
  const auto [lowest, highest] = std::minmax_element(values.begin(), values.end());
  return {{"value", mean(values)}, {"unit", unit}, {"lowest", *lowest}, {"highest", *highest}};
}

// Points that differ only in the queue count, by index.
std::vector<std::vector<std::size_t>> groups_of(const Json& points) {
  std::vector<std::vector<std::size_t>> groups;
  const auto is_same = [&](const Json& a, const Json& b) {
    return a["streams"] == b["streams"] && a["scale"] == b["scale"] && a["params"] == b["params"];
  };
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto group = std::find_if(groups.begin(), groups.end(),
                                    [&](const auto& members) { return is_same(points[members[0]], points[i]); });
    if (group == groups.end()) {
      groups.push_back({i});
    } else {
      group->push_back(i);
    }
  }
  for (auto& group : groups)
    std::sort(group.begin(), group.end(), [&](std::size_t a, std::size_t b) {
      return points[a]["queues"].get<int>() < points[b]["queues"].get<int>();
    });
  return groups;
}

std::string counted(const std::vector<int>& queues) {
  return fmt::format("{} {}", fmt::join(queues, ", "), queues.size() == 1 && queues[0] == 1 ? "queue" : "queues");
}

std::string sentence_of(const Json& best, const std::vector<int>& same, const std::vector<int>& unknown,
                        const std::vector<std::pair<double, int>>& slower) {
  const int queues = best["queues"].get<int>();
  std::string text;
  if (slower.empty() && unknown.empty()) {
    if (same.empty()) return "only one queue count was measured";
    std::vector<int> all = same;
    all.insert(std::upper_bound(all.begin(), all.end(), queues), queues);
    return fmt::format("no difference beyond noise between {}", counted(all));
  }
  text = fmt::format("best with {} ({})", counted({queues}), format_duration(best["latency_ns"]["p50"].get<double>()));
  if (!same.empty()) text += fmt::format("; no difference beyond noise to {}", counted(same));
  if (!slower.empty()) {
    const auto [ratio, worst] = *std::max_element(slower.begin(), slower.end());
    text += fmt::format("; slowest with {}: {:.2f} times as long", counted({worst}), ratio);
  }
  if (!unknown.empty()) text += fmt::format("; too few samples to judge {}", counted(unknown));
  return text;
}

}  // namespace

void judge_points(Json& sweep) {
  sweep["best"] = Json::array();
  Json& points = sweep["points"];  // after the insertion above, which moves members
  // The p-values of all comparisons share one significance level (Holm), across groups.
  struct Test {
    std::size_t index, best;
    Change change;
  };
  std::vector<Test> tests;
  struct Group {
    std::vector<std::size_t> members;
    std::size_t best;
  };
  std::vector<Group> groups;
  for (std::vector<std::size_t>& members : groups_of(points)) {
    std::erase_if(members, [&](std::size_t i) { return points[i]["status"] != "complete"; });
    if (members.empty()) continue;
    std::map<std::size_t, std::vector<double>> samples;
    for (const std::size_t i : members) {
      samples[i] = samples_of(points[i]);
      points[i]["latency_ns"] = to_json(*summarise(samples[i]));
      points[i]["throughput"] = throughput_of(points[i]["runs"]);
    }
    const std::size_t best = *std::min_element(members.begin(), members.end(), [&](std::size_t a, std::size_t b) {
      return median(samples[a]) < median(samples[b]);
    });
    for (const std::size_t i : members) {
      Change change;
      measure_samples(samples[best], samples[i], kOptions, change);
      points[i]["ratio"] = number_or_null(change.ratio);
      points[i]["ratio_interval"] = points[i]["p"] = points[i]["verdict"] = nullptr;
      if (i == best) {
        points[i]["verdict"] = "best";
        continue;
      }
      if (change.interval) points[i]["ratio_interval"] = {change.interval->low, change.interval->high};
      tests.push_back({i, best, change});
    }
    groups.push_back({members, best});
  }
  std::vector<Change*> changes;
  for (Test& test : tests) changes.push_back(&test.change);
  decide(changes, kOptions);
  for (const auto& [index, best, change] : tests) {
    if (!change.adjusted_p) continue;
    points[index]["p"] = *change.adjusted_p;
    const bool is_apart = range_of(points[index]["runs"]).low > range_of(points[best]["runs"]).high;
    points[index]["verdict"] = is_apart && change.verdict == Verdict::slower ? "slower" : "same";
  }
  for (const Group& group : groups) {
    const Json& best = points[group.best];
    std::vector<int> same, unknown;
    std::vector<std::pair<double, int>> slower;
    for (const std::size_t i : group.members) {
      const int queues = points[i]["queues"].get<int>();
      if (points[i]["verdict"].is_null()) unknown.push_back(queues);
      if (points[i]["verdict"] == "same") same.push_back(queues);
      if (points[i]["verdict"] == "slower") slower.emplace_back(points[i]["ratio"].get<double>(), queues);
    }
    Json entry = Json::object();
    entry["streams"] = best["streams"];
    entry["scale"] = best["scale"];
    entry["params"] = best["params"];
    entry["queues"] = best["queues"];
    entry["latency_ns"] = {{"p50", best["latency_ns"]["p50"]}};
    entry["same"] = same;
    entry["is_clear"] = !slower.empty() && same.empty() && unknown.empty();
    entry["sentence"] = sentence_of(entry, same, unknown, slower);
    sweep["best"].push_back(std::move(entry));
  }
}

}  // namespace weir
