#include "run/pairing.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace weir {
namespace {

constexpr const char* kParameter = "param.";

bool is_same_device(const ResultPoint& left, const ResultPoint& right) {
  return left.device.empty() || right.device.empty() || left.device == right.device;
}

// Nothing runs on the null device, so its times are comparable only with its own.
bool can_share_pair(const ResultPoint& left, const ResultPoint& right) {
  return (left.device == "null") == (right.device == "null");
}

void append_missing(std::vector<std::string>& into, const std::vector<std::string>& notes) {
  for (const std::string& note : notes)
    if (std::find(into.begin(), into.end(), note) == into.end()) into.push_back(note);
}

// Each run has processes of its own: as one series they would look alike, and hide what differs between runs.
void append_samples(SampleSeries& into, const SampleSeries& from) {
  if (into.processes.empty()) into.processes = {into.samples.size()};
  if (from.processes.empty())
    into.processes.push_back(from.samples.size());
  else
    into.processes.insert(into.processes.end(), from.processes.begin(), from.processes.end());
  into.samples.insert(into.samples.end(), from.samples.begin(), from.samples.end());
  if (into.unit.empty()) into.unit = from.unit;
  if (!into.samples.empty()) into.reason.clear();
}

bool is_same_run(const ResultPoint& left, const ResultPoint& right) {
  const bool has_samples = !left.latency.samples.empty() || !left.throughput.samples.empty();
  return has_samples && left.failure == right.failure && left.latency.samples == right.latency.samples &&
         left.throughput.samples == right.throughput.samples;
}

std::string plain_name(const std::string& name) {
  if (name.starts_with(kVariable)) return name.substr(std::string_view(kVariable).size());
  return name.starts_with(kParameter) ? "param " + name.substr(std::string_view(kParameter).size()) : name;
}

std::string describe(const std::vector<KeyDifference>& differences) {
  std::string text = "differs in ";
  for (std::size_t i = 0; i < differences.size() && i < 3; ++i)
    text += fmt::format("{}{}: {} vs {}", i == 0 ? "" : ", ", plain_name(differences[i].name), differences[i].left,
                        differences[i].right);
  if (differences.size() > 3) text += fmt::format(" and {} more", differences.size() - 3);
  return text;
}

std::string nearest_to(const ResultPoint& point, std::span<const ResultPoint> others) {
  std::vector<KeyDifference> least;
  std::size_t min_weight = 0;
  std::size_t fitting = 0;
  bool is_first = true;
  for (const ResultPoint& other : others) {
    if (!can_share_pair(point, other)) continue;
    std::vector<KeyDifference> differences = key_differences(point, other);
    if (differences.empty()) ++fitting;
    std::size_t weight = differences.size();
    // Points of different workloads are never near, however similar otherwise.
    for (const KeyDifference& difference : differences) weight += difference.name == "workload" ? 1'000 : 0;
    if (!is_first && weight >= min_weight) continue;
    least = std::move(differences);
    min_weight = weight;
    is_first = false;
  }
  if (is_first) return "the other side has nothing on this device";
  if (fitting > 0)
    return fmt::format(
        "fits {} point{} of the other side equally well, because one of the files does not record "
        "everything that tells them apart",
        fitting, fitting == 1 ? " or more" : "s");
  if (min_weight >= 1'000) return "the other side has no result of this workload";
  return "nearest " + describe(least);
}

}  // namespace

std::vector<KeyDifference> key_differences(const ResultPoint& left, const ResultPoint& right) {
  std::vector<KeyDifference> differences;
  for (const auto& [name, value] : left.key) {
    const auto found = right.key.find(name);
    if (found == right.key.end()) {
      if (left.is_key_complete && right.is_key_complete) differences.push_back({name, value, "(none)"});
    } else if (found->second != value) {
      differences.push_back({name, value, found->second});
    }
  }
  if (left.is_key_complete && right.is_key_complete)
    for (const auto& [name, value] : right.key)
      if (!left.key.contains(name)) differences.push_back({name, "(none)", value});
  return differences;
}

std::vector<ResultPoint> pool_repeats(std::span<const ResultPoint> points) {
  std::vector<ResultPoint> pooled;
  std::map<std::tuple<std::map<std::string, std::string>, std::string, bool>, std::vector<std::size_t>> runs;
  std::vector<decltype(runs)::const_iterator> order;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto [entry, is_new] = runs.try_emplace({points[i].key, points[i].device, points[i].is_key_complete});
    if (is_new) order.emplace_back(entry);
    entry->second.push_back(i);
  }
  for (const auto& entry : order) {
    const std::vector<std::size_t>& members = entry->second;
    ResultPoint whole = points[members.front()];
    std::vector<std::size_t> counted{members.front()};
    for (auto member = members.begin() + 1; member != members.end(); ++member) {
      const ResultPoint& run = points[*member];
      if (std::any_of(counted.begin(), counted.end(),
                      [&](std::size_t earlier) { return is_same_run(points[earlier], run); }))
        continue;
      counted.push_back(*member);
      append_samples(whole.latency, run.latency);
      append_samples(whole.throughput, run.throughput);
      append_missing(whole.notes, run.notes);
      if (whole.failure.empty()) whole.failure = run.failure;
    }
    if (counted.size() > 1)
      whole.notes.push_back(
          fmt::format("{} runs of one configuration are pooled, first {}", counted.size(), whole.origin));
    if (counted.size() < members.size())
      whole.notes.push_back(fmt::format("the run in {} is there {} times and counts once", whole.origin,
                                        members.size() - counted.size() + 1));
    pooled.push_back(std::move(whole));
  }
  return pooled;
}

Pairing pair_points(std::span<const ResultPoint> baseline, std::span<const ResultPoint> test) {
  Pairing pairing;
  std::vector<bool> is_baseline_taken(baseline.size());
  std::vector<bool> is_test_taken(test.size());
  for (const bool wants_same_device : {true, false}) {
    std::vector<std::vector<std::size_t>> fits(baseline.size());
    std::vector<std::size_t> claims(test.size());
    for (std::size_t i = 0; i < baseline.size(); ++i) {
      if (is_baseline_taken[i]) continue;
      for (std::size_t j = 0; j < test.size(); ++j) {
        if (is_test_taken[j] || !can_share_pair(baseline[i], test[j])) continue;
        if (wants_same_device && !is_same_device(baseline[i], test[j])) continue;
        if (!key_differences(baseline[i], test[j]).empty()) continue;
        fits[i].push_back(j);
        ++claims[j];
      }
    }
    for (std::size_t i = 0; i < baseline.size(); ++i) {
      if (fits[i].size() != 1 || claims[fits[i].front()] != 1) continue;
      pairing.pairs.emplace_back(i, fits[i].front());
      is_baseline_taken[i] = true;
      is_test_taken[fits[i].front()] = true;
    }
  }
  std::sort(pairing.pairs.begin(), pairing.pairs.end());
  for (std::size_t i = 0; i < baseline.size(); ++i)
    if (!is_baseline_taken[i]) pairing.baseline_only.push_back({i, nearest_to(baseline[i], test)});
  for (std::size_t j = 0; j < test.size(); ++j)
    if (!is_test_taken[j]) pairing.test_only.push_back({j, nearest_to(test[j], baseline)});
  return pairing;
}

std::set<std::string> varying_fields(std::span<const ResultPoint> points) {
  std::map<std::string, std::set<std::string>> values;
  for (const ResultPoint& point : points) {
    for (const auto& [name, value] : point.key) values[name].insert(value);
    if (!point.device.empty()) values["device"].insert(point.device);
  }
  std::set<std::string> fields;
  for (const auto& [name, seen] : values)
    if (seen.size() > 1) fields.insert(name);
  return fields;
}

std::string label_of(const ResultPoint& point, const std::set<std::string>& fields) {
  const std::string& streams = point.key.at("streams");
  std::string label = fmt::format("{}, {} stream{}", point.key.at("workload"), streams, streams == "1" ? "" : "s");
  for (const auto& [name, value] : point.key) {
    if (name == "workload" || name == "streams") continue;
    if (name == "ranks") {
      if (fields.contains(name) || value != "1") label += fmt::format(", {} rank{}", value, value == "1" ? "" : "s");
      continue;
    }
    if (name.starts_with(kVariable)) {
      if (fields.contains(name))
        label += fmt::format(", {}{}{}", plain_name(name), value == "unset" ? " " : "=", value);
      continue;
    }
    if (name.starts_with(kParameter) && fields.contains(name)) label += fmt::format(", {} {}", plain_name(name), value);
    // These values need no name: "graph", "round_robin", "end_only", "bf16".
    if (!name.starts_with(kParameter) && (name == "submit" || fields.contains(name))) label += ", " + value;
  }
  if (fields.contains("device") && !point.device.empty()) label += fmt::format(", on {}", point.device);
  return label;
}

}  // namespace weir
