// Findings from a set of entries, and advice. Each rule takes its figures from entries alone; a rule without data stays
// silent.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "base/units.h"
#include "lab/kernels/document.h"
#include "measure/statistics.h"

namespace weir::bench {
namespace {

constexpr double kFarBelow = 0.5;       // fraction of a ceiling: worth a look
constexpr double kNearCeiling = 0.85;   // little is left to gain
constexpr double kNoisy = 1.5;          // p99 / p50, as in measure/statistics.h
constexpr double kNotFaster = 0.95;     // fraction of fp32's time
constexpr double kRoundsDiffer = 0.10;  // medians of processes, relative
constexpr double kDisturbed = 0.10;     // fraction of all samples that had to be redone
constexpr std::size_t kMaxNamed = 3;

using Entries = std::vector<const Json*>;
using Figure = std::function<std::string(const Json&)>;
using Value = std::function<double(const Json&)>;

std::string text_at(const Json& entry, std::initializer_list<const char*> path) {
  const Json& value = value_at(entry, path);
  return value.is_string() ? value.get<std::string>() : "";
}
std::string key_of(const Json& entry) { return text_at(entry, {"key"}); }
std::optional<double> p50_of(const Json& entry) { return number_at(entry, {"timing", "latency_ns", "p50"}); }
bool is_ok(const Json& entry) { return is_set(entry, {"success"}) && p50_of(entry).value_or(0) > 0; }
bool is_gpu(const Json& entry) { return text_at(entry, {"backend"}) != "cpu"; }

Entries those(std::span<const Json> entries, const std::function<bool(const Json&)>& holds) {
  Entries found;
  for (const Json& entry : entries)
    if (holds(entry)) found.push_back(&entry);
  return found;
}
void sort_by(Entries& entries, const Value& value) {
  std::stable_sort(entries.begin(), entries.end(),
                   [&](const Json* one, const Json* two) { return value(*one) > value(*two); });
}
// The entries that succeeded and for which `holds` is true; the largest first if `by` is given.
Entries measured(std::span<const Json> entries, const std::function<bool(const Json&)>& holds, const Value& by = {}) {
  Entries found = those(entries, [&](const Json& entry) { return is_ok(entry) && holds(entry); });
  if (by) sort_by(found, by);
  return found;
}

// "a (1.9x), b (1.7x), c (1.6x) and 4 more"
std::string named_entries(const Entries& entries, const Figure& figure) {
  std::string text;
  for (std::size_t i = 0; i < std::min(entries.size(), kMaxNamed); ++i) {
    const std::string shown = figure ? figure(*entries[i]) : "";
    text += (i == 0 ? "" : ", ") + key_of(*entries[i]) + (shown.empty() ? "" : " (" + shown + ")");
  }
  if (entries.size() > kMaxNamed) text += fmt::format(" and {} more", entries.size() - kMaxNamed);
  return text;
}

// "Noisy: a (1.9x), b (1.7x)." if there are any.
void add_sentence(std::vector<std::string>& sentences, std::string_view what, const Entries& entries,
                  const Figure& figure = {}) {
  if (!entries.empty()) sentences.push_back(fmt::format("{}: {}.", what, named_entries(entries, figure)));
}

std::string percent(double share) { return fmt::format("{:.0f} %", share * 100); }
double of_ceiling(const Json& entry) { return number_at(entry, {"roofline", "of_ceiling"}).value_or(0); }

double noise_of(const Json& entry) {
  const auto p50 = p50_of(entry), p99 = number_at(entry, {"timing", "latency_ns", "p99"});
  return p50 && p99 && *p50 > 0 ? *p99 / *p50 : 0;
}

// Largest over smallest median of the processes, minus 1.
double round_spread(const Json& entry) {
  const Json& samples = value_at(entry, {"timing", "samples_ns"});
  double least = 0, most = 0;
  std::size_t next = 0;
  for (const Json& count : value_at(entry, {"timing", "rounds"})) {
    std::vector<double> mine;
    for (std::size_t left = count.is_number_unsigned() ? count.get<std::size_t>() : 0;
         left > 0 && next < samples.size(); --left, ++next)
      if (samples[next].is_number()) mine.push_back(samples[next].get<double>());
    if (mine.size() < 3) continue;
    const double middle = median(mine);
    least = least == 0 ? middle : std::min(least, middle);
    most = std::max(most, middle);
  }
  return least > 0 ? most / least - 1 : 0;
}

double disturbed_share(const Json& entry) {
  const auto count = number_at(entry, {"timing", "disturbed", "count"}),
             of = number_at(entry, {"timing", "iterations"});
  return count && of && *of > 0 ? *count / *of : 0;
}

bool is_unchecked(const Json& entry) {
  return value_at(entry, {"accuracy"}).is_object() && value_at(entry, {"accuracy", "is_within"}).is_null() &&
         !number_at(entry, {"accuracy", "rmse"});
}

bool stands_at(const Json& entry, const char* bound) { return text_at(entry, {"roofline", "bound"}) == bound; }
Entries far_below(std::span<const Json> entries, const char* bound) {
  const auto holds = [&](const Json& entry) {
    // If the launch takes longer than the kernel, its time says nothing about memory accesses.
    return stands_at(entry, bound) && of_ceiling(entry) > 0 && of_ceiling(entry) < kFarBelow &&
           !is_set(entry, {"timing", "is_launch_bound"});
  };
  return measured(entries, holds, [](const Json& entry) { return -of_ceiling(entry); });
}
Entries launch_bound(std::span<const Json> entries) {
  return measured(entries, [](const Json& entry) { return is_set(entry, {"timing", "is_launch_bound"}); });
}
Entries noisy(std::span<const Json> entries) {
  return measured(entries, [](const Json& entry) { return noise_of(entry) > kNoisy; }, noise_of);
}
Entries unsteady(std::span<const Json> entries) {
  return measured(entries, [](const Json& entry) {
    const Json& steady = value_at(entry, {"timing", "is_steady"});
    return steady.is_boolean() && !steady.get<bool>();
  });
}
Entries differing(std::span<const Json> entries) {
  return measured(entries, [](const Json& entry) { return round_spread(entry) > kRoundsDiffer; }, round_spread);
}
Entries disturbed(std::span<const Json> entries) {
  return measured(entries, [](const Json& entry) { return disturbed_share(entry) > kDisturbed; }, disturbed_share);
}

// Half precisions that are not faster than fp32, and their time relative to fp32's.
struct NotFaster {
  Entries halves;
  std::map<const Json*, double> ratios;
};
NotFaster not_faster(std::span<const Json> entries) {
  std::map<std::string, double> full;  // p50 of fp32, by everything else
  const auto rest_of = [](const Json& entry) {
    return fmt::format("{}\n{}\n{}", text_at(entry, {"kernel_name"}), text_at(entry, {"backend"}),
                       value_at(entry, {"problem_size"}).dump());
  };
  for (const Json& entry : entries)
    if (is_ok(entry) && text_at(entry, {"precision"}) == "fp32") full[rest_of(entry)] = *p50_of(entry);
  NotFaster found;
  for (const Json& entry : entries) {
    const std::string precision = text_at(entry, {"precision"});
    if (!is_ok(entry) || (precision != "fp16" && precision != "bf16")) continue;
    const auto other = full.find(rest_of(entry));
    if (other == full.end() || !(*p50_of(entry) > kNotFaster * other->second)) continue;
    found.halves.push_back(&entry);
    found.ratios[&entry] = *p50_of(entry) / other->second;
  }
  return found;
}

// Cases of one kernel and problem, over all backends and precisions.
std::map<std::string, Entries> by_problem(std::span<const Json> entries) {
  std::map<std::string, Entries> groups;
  for (const Json& entry : entries)
    if (is_ok(entry))
      groups[text_at(entry, {"kernel_name"}) + "\n" + value_at(entry, {"problem_size"}).dump()].push_back(&entry);
  return groups;
}

double fastest_ns(const Entries& group) {
  double least = HUGE_VAL;
  for (const Json* entry : group) least = std::min(least, *p50_of(*entry));
  return least;
}

// For each kernel, the problem that takes longest: small ones also measure the launch.
void add_best(std::span<const Json> entries, std::vector<std::string>& found) {
  std::map<std::string, Entries> largest;
  for (const auto& [name, group] : by_problem(entries)) {
    Entries& kept = largest[text_at(*group.front(), {"kernel_name"})];
    if (group.size() >= 2 && (kept.empty() || fastest_ns(group) > fastest_ns(kept))) kept = group;
  }
  for (const auto& [kernel, group] : largest) {
    if (group.empty()) continue;
    const auto by_time = std::minmax_element(
        group.begin(), group.end(), [](const Json* one, const Json* two) { return *p50_of(*one) < *p50_of(*two); });
    const Json &fastest = **by_time.first, &slowest = **by_time.second;
    found.push_back(fmt::format("Fastest of {}: {} at {}, {:.1f} times as fast as {}.", kernel, key_of(fastest),
                                format_duration(*p50_of(fastest)), *p50_of(slowest) / *p50_of(fastest),
                                key_of(slowest)));
    Entries with_energy;
    for (const Json* entry : group)
      if (number_at(*entry, {"energy", "energy_j"})) with_energy.push_back(entry);
    if (with_energy.size() < 2) continue;
    sort_by(with_energy, [](const Json& entry) { return -*number_at(entry, {"energy", "energy_j"}); });
    found.push_back(fmt::format("Least energy of {}: {} with {:.3g} J a run; {} takes {:.3g} J.", kernel,
                                key_of(*with_energy.front()), *number_at(*with_energy.front(), {"energy", "energy_j"}),
                                key_of(*with_energy.back()), *number_at(*with_energy.back(), {"energy", "energy_j"})));
  }
}

// Cases of one kernel on one backend mostly have one cause, so only the worst is listed.
struct FarBelow {
  const Json* worst;
  std::size_t others = 0;
};
std::vector<FarBelow> far_below_by_kernel(std::span<const Json> entries, const char* bound) {
  std::vector<FarBelow> found;
  for (const Json* entry : far_below(entries, bound)) {
    const auto same = std::find_if(found.begin(), found.end(), [&](const FarBelow& one) {
      return (*one.worst)["kernel_name"] == (*entry)["kernel_name"] && (*one.worst)["backend"] == (*entry)["backend"];
    });
    if (same == found.end()) {
      found.push_back({entry});
    } else {
      ++same->others;
    }
  }
  return found;
}
std::string others_text(const FarBelow& one) {
  return one.others == 0 ? "" : fmt::format(" (and {} more of its cases below {})", one.others, percent(kFarBelow));
}

std::string share_of_ceiling(const Json& entry) { return percent(of_ceiling(entry)); }
// The most frequent reason for redone samples.
std::string disturber_of(const Json& entry) {
  std::string most;
  double times = 0;
  for (const auto& [reason, count] : value_at(entry, {"timing", "disturbed", "reasons"}).items()) {
    if (!count.is_number() || count.get<double>() <= times) continue;
    times = count.get<double>();
    most = reason;
  }
  return most;
}
bool is_throttled(const Json& entry) {
  const std::string reason = disturber_of(entry);
  return reason.starts_with("throttled") || reason.find("clock") != std::string::npos;
}
// "12 for 30 samples, mostly: another process had the core"
std::string disturbance_text(const Json& entry) {
  const std::string most = disturber_of(entry);
  return fmt::format("{:.0f} for {:.0f} samples{}{}", number_at(entry, {"timing", "disturbed", "count"}).value_or(0),
                     number_at(entry, {"timing", "iterations"}).value_or(0), most.empty() ? "" : ", mostly: ", most);
}
std::string noise_text(const Json& entry) { return fmt::format("{:.1f}x", noise_of(entry)); }

}  // namespace

std::vector<std::string> findings(std::span<const Json> entries) {
  std::vector<std::string> found;
  const Entries bad = those(entries, [](const Json& entry) {
    return !is_set(entry, {"success"}) && text_at(entry, {"status"}) != "skipped";
  });
  add_sentence(found, fmt::format("{} of {} cases did not succeed", bad.size(), entries.size()), bad,
               [](const Json& entry) { return text_at(entry, {"status"}); });
  add_best(entries, found);
  for (const char* bound : {"memory", "compute"}) {
    const char* const what = bound == std::string_view("memory") ? "bandwidth" : "arithmetic rate";
    for (const FarBelow& one : far_below_by_kernel(entries, bound))
      found.push_back(fmt::format("{} is {}-bound at {} of the {} measured on this device{}.", key_of(*one.worst),
                                  bound, percent(of_ceiling(*one.worst)), what, others_text(one)));
  }
  const auto is_near = [](const Json& entry) { return of_ceiling(entry) >= kNearCeiling && of_ceiling(entry) <= 1.05; };
  add_sentence(found, "Close to what the device can do", measured(entries, is_near, of_ceiling), share_of_ceiling);
  add_sentence(
      found, "Faster than the measured ceiling, so its data stays in a cache or it does less work than it reports",
      measured(entries, [](const Json& entry) { return of_ceiling(entry) > 1.05; }, of_ceiling), share_of_ceiling);
  add_sentence(found, "The launch takes longer than the kernel", launch_bound(entries));
  const NotFaster slow = not_faster(entries);
  add_sentence(found, "Half the bytes gain nothing; of fp32's time", slow.halves,
               [&](const Json& entry) { return percent(slow.ratios.at(&entry)); });
  add_sentence(found, "Noisy, p99 over p50", noisy(entries), noise_text);
  add_sentence(found, "Medians differ from process to process", differing(entries),
               [](const Json& entry) { return "by " + percent(round_spread(entry)); });
  add_sentence(found, "Not seen to be steady when warm-up ended", unsteady(entries));
  add_sentence(found, "Disturbed", disturbed(entries), disturbance_text);
  add_sentence(found, "Not checked", measured(entries, is_unchecked),
               [](const Json& entry) { return text_at(entry, {"accuracy", "reason"}); });
  return found;
}

std::vector<std::string> recommendations(std::span<const Json> entries) {
  std::vector<std::string> advice;
  for (const FarBelow& one : far_below_by_kernel(entries, "memory"))
    advice.push_back(fmt::format(
        "{}: memory-bound at {} of bandwidth: {}", key_of(*one.worst), percent(of_ceiling(*one.worst)),
        is_gpu(*one.worst) ? "uncoalesced? Neighbouring threads should read neighbouring addresses, in wide loads, "
                             "with enough blocks to fill the device."
                           : "does it use all threads and walk memory in order? Strides and random accesses fetch "
                             "lines that are used in part."));
  for (const FarBelow& one : far_below_by_kernel(entries, "compute"))
    advice.push_back(fmt::format(
        "{}: compute-bound at {} of the arithmetic rate: {}", key_of(*one.worst), percent(of_ceiling(*one.worst)),
        is_gpu(*one.worst) ? "look at occupancy, divergence and the precision of its arithmetic."
                           : "is its inner loop vectorised (-O3, -march=native)?"));
  add_sentence(advice, "Give each launch more work, or fuse launches", launch_bound(entries), [](const Json& entry) {
    const auto launches = number_at(entry, {"launches_per_run"});
    return launches ? fmt::format("{:.0f} {} a run", *launches, *launches == 1 ? "launch" : "launches") : std::string();
  });
  add_sentence(advice, "Keep fp32 unless memory is short, or use packed arithmetic (half2, vector types)",
               not_faster(entries).halves);
  Entries uncertain = noisy(entries);
  Entries disturbed_or_differing = differing(entries), throttled;
  for (const Json* entry : disturbed(entries))
    (is_throttled(*entry) ? throttled : disturbed_or_differing).push_back(entry);
  for (const Json* entry : disturbed_or_differing)
    if (std::find(uncertain.begin(), uncertain.end(), entry) == uncertain.end()) uncertain.push_back(entry);
  add_sentence(advice, "Measure again on a quieter machine, or with more --processes and --iterations", uncertain);
  add_sentence(advice, "Use a larger --warmup, or a larger --budget, of which a fifth is for it", unsteady(entries));
  add_sentence(advice, "Lock clocks or cool the device before numbers are compared", throttled);
  add_sentence(advice, "Add reference(), so that results are checked", measured(entries, is_unchecked));
  for (const Json& entry : entries) {
    const std::string hint = text_at(entry, {"error", "hint"}), status = text_at(entry, {"status"});
    if (!hint.empty() && status != "skipped" && status != "ok")
      advice.push_back(fmt::format("{}: {}", key_of(entry), hint));
  }
  return advice;
}

}  // namespace weir::bench
