// What a set of entries shows, and what to do about it. Each rule has its figures from entries alone; a rule whose data
// is missing says nothing.
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

constexpr double kFarBelow = 0.5;       // of a ceiling: worth a look
constexpr double kNearCeiling = 0.85;   // little is left to gain
constexpr double kNoisy = 1.5;          // p99 / p50, as of measure/statistics.h
constexpr double kNotFaster = 0.95;     // of fp32's time
constexpr double kRoundsDiffer = 0.10;  // medians of processes, relative
constexpr double kDisturbed = 0.10;     // of all samples had to be redone
constexpr std::size_t kMostNamed = 3;

using Entries = std::vector<const Json*>;

std::string text_at(const Json& entry, std::initializer_list<const char*> path) {
  const Json& value = value_at(entry, path);
  return value.is_string() ? value.get<std::string>() : "";
}
std::string key_of(const Json& entry) { return text_at(entry, {"key"}); }
std::optional<double> p50_of(const Json& entry) { return number_at(entry, {"timing", "latency_ms_p50"}); }
bool is_ok(const Json& entry) { return is_set(entry, {"success"}) && p50_of(entry).value_or(0) > 0; }
bool is_gpu(const Json& entry) { return text_at(entry, {"backend"}) != "cpu"; }

Entries those(std::span<const Json> entries, const std::function<bool(const Json&)>& holds) {
  Entries found;
  for (const Json& entry : entries)
    if (holds(entry)) found.push_back(&entry);
  return found;
}
Entries measured(std::span<const Json> entries, const std::function<bool(const Json&)>& holds) {
  return those(entries, [&](const Json& entry) { return is_ok(entry) && holds(entry); });
}

// "a (1.9x), b (1.7x), c (1.6x) and 4 more"
std::string named(const Entries& entries, const std::function<std::string(const Json&)>& figure) {
  std::string text;
  for (std::size_t i = 0; i < std::min(entries.size(), kMostNamed); ++i) {
    const std::string shown = figure ? figure(*entries[i]) : "";
    text += (i == 0 ? "" : ", ") + key_of(*entries[i]) + (shown.empty() ? "" : " (" + shown + ")");
  }
  if (entries.size() > kMostNamed) text += fmt::format(" and {} more", entries.size() - kMostNamed);
  return text;
}

void sort_by(Entries& entries, const std::function<double(const Json&)>& value) {
  std::stable_sort(entries.begin(), entries.end(),
                   [&](const Json* one, const Json* two) { return value(*one) > value(*two); });
}

std::string percent(double share) { return fmt::format("{:.0f} %", share * 100); }
double of_ceiling(const Json& entry) { return number_at(entry, {"roofline", "of_ceiling"}).value_or(0); }

double noise_of(const Json& entry) {
  const auto p50 = p50_of(entry), p99 = number_at(entry, {"timing", "latency_ms_p99"});
  return p50 && p99 && *p50 > 0 ? *p99 / *p50 : 0;
}

// Largest over smallest median of the processes, less 1.
double round_spread(const Json& entry) {
  const Json& samples = value_at(entry, {"timing", "samples_ms"});
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
  Entries found = measured(entries, [&](const Json& entry) {
    // A launch that takes longer than the kernel says nothing about its memory accesses.
    return stands_at(entry, bound) && of_ceiling(entry) > 0 && of_ceiling(entry) < kFarBelow &&
           !is_set(entry, {"timing", "is_launch_bound"});
  });
  sort_by(found, [](const Json& entry) { return -of_ceiling(entry); });
  return found;
}
Entries launch_bound(std::span<const Json> entries) {
  return measured(entries, [](const Json& entry) { return is_set(entry, {"timing", "is_launch_bound"}); });
}
Entries noisy(std::span<const Json> entries) {
  Entries found = measured(entries, [](const Json& entry) { return noise_of(entry) > kNoisy; });
  sort_by(found, noise_of);
  return found;
}
Entries unsteady(std::span<const Json> entries) {
  return measured(entries, [](const Json& entry) {
    const Json& steady = value_at(entry, {"timing", "is_steady"});
    return steady.is_boolean() && !steady.get<bool>();
  });
}
Entries differing(std::span<const Json> entries) {
  Entries found = measured(entries, [](const Json& entry) { return round_spread(entry) > kRoundsDiffer; });
  sort_by(found, round_spread);
  return found;
}
Entries disturbed(std::span<const Json> entries) {
  Entries found = measured(entries, [](const Json& entry) { return disturbed_share(entry) > kDisturbed; });
  sort_by(found, disturbed_share);
  return found;
}

// Half precisions that gain nothing over fp32: the slower one and its time over fp32's.
struct NotFaster {
  const Json* half;
  double ratio;
};
std::vector<NotFaster> not_faster(std::span<const Json> entries) {
  std::map<std::string, double> full;  // p50 of fp32 by what else is the same
  const auto rest_of = [](const Json& entry) {
    return fmt::format("{}\n{}\n{}", text_at(entry, {"kernel_name"}), text_at(entry, {"backend"}),
                       value_at(entry, {"problem_size"}).dump());
  };
  for (const Json& entry : entries)
    if (is_ok(entry) && text_at(entry, {"precision"}) == "fp32") full[rest_of(entry)] = *p50_of(entry);
  std::vector<NotFaster> found;
  for (const Json& entry : entries) {
    const std::string precision = text_at(entry, {"precision"});
    if (!is_ok(entry) || (precision != "fp16" && precision != "bf16")) continue;
    const auto other = full.find(rest_of(entry));
    if (other != full.end() && *p50_of(entry) > kNotFaster * other->second)
      found.push_back({&entry, *p50_of(entry) / other->second});
  }
  return found;
}

// Cases of one kernel and problem, whatever backend and precision.
std::map<std::string, Entries> by_problem(std::span<const Json> entries) {
  std::map<std::string, Entries> groups;
  for (const Json& entry : entries)
    if (is_ok(entry))
      groups[text_at(entry, {"kernel_name"}) + "\n" + value_at(entry, {"problem_size"}).dump()].push_back(&entry);
  return groups;
}

double fastest_ms(const Entries& group) {
  double least = HUGE_VAL;
  for (const Json* entry : group) least = std::min(least, *p50_of(*entry));
  return least;
}

// Of each kernel the problem that takes longest: small ones measure the launch as well.
void add_best(std::span<const Json> entries, std::vector<std::string>& found) {
  std::map<std::string, Entries> largest;
  for (const auto& [name, group] : by_problem(entries)) {
    Entries& kept = largest[text_at(*group.front(), {"kernel_name"})];
    if (group.size() >= 2 && (kept.empty() || fastest_ms(group) > fastest_ms(kept))) kept = group;
  }
  for (const auto& [kernel, group] : largest) {
    if (group.empty()) continue;
    const auto by_time = std::minmax_element(
        group.begin(), group.end(), [](const Json* one, const Json* two) { return *p50_of(*one) < *p50_of(*two); });
    const Json &fastest = **by_time.first, &slowest = **by_time.second;
    found.push_back(fmt::format("Fastest of {}: {} at {}, {:.1f} times as fast as {}.", kernel, key_of(fastest),
                                format_duration(*p50_of(fastest) * 1e6), *p50_of(slowest) / *p50_of(fastest),
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

// Cases of one kernel on one backend have one cause mostly: the worst of them stands for all.
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
// "12 for 30 samples, mostly: another process had the core"
// The reason that samples were most often redone for.
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
  if (!bad.empty())
    found.push_back(fmt::format("{} of {} cases did not succeed: {}.", bad.size(), entries.size(),
                                named(bad, [](const Json& entry) { return text_at(entry, {"status"}); })));
  add_best(entries, found);
  for (const char* bound : {"memory", "compute"}) {
    const char* const what = bound == std::string_view("memory") ? "bandwidth" : "arithmetic rate";
    for (const FarBelow& one : far_below_by_kernel(entries, bound))
      found.push_back(fmt::format("{} is {}-bound at {} of the {} measured on this device{}.", key_of(*one.worst),
                                  bound, percent(of_ceiling(*one.worst)), what, others_text(one)));
  }
  Entries near = measured(
      entries, [](const Json& entry) { return of_ceiling(entry) >= kNearCeiling && of_ceiling(entry) <= 1.05; });
  sort_by(near, of_ceiling);
  if (!near.empty())
    found.push_back(fmt::format("Close to what the device can do: {}.", named(near, share_of_ceiling)));
  Entries above = measured(entries, [](const Json& entry) { return of_ceiling(entry) > 1.05; });
  sort_by(above, of_ceiling);
  if (!above.empty())
    found.push_back(
        fmt::format("Faster than the measured ceiling, so its data stays in a cache or it does less than it told: {}.",
                    named(above, share_of_ceiling)));
  if (const Entries these = launch_bound(entries); !these.empty())
    found.push_back(fmt::format("The launch takes longer than the kernel: {}.", named(these, {})));
  if (const std::vector<NotFaster> these = not_faster(entries); !these.empty()) {
    std::string text;
    for (std::size_t i = 0; i < std::min(these.size(), kMostNamed); ++i)
      text += fmt::format("{}{} ({})", i == 0 ? "" : ", ", key_of(*these[i].half), percent(these[i].ratio));
    if (these.size() > kMostNamed) text += fmt::format(" and {} more", these.size() - kMostNamed);
    found.push_back(fmt::format("Half the bytes gain nothing; of fp32's time: {}.", text));
  }
  if (const Entries these = noisy(entries); !these.empty())
    found.push_back(fmt::format("Noisy, p99 over p50: {}.", named(these, noise_text)));
  if (const Entries these = differing(entries); !these.empty())
    found.push_back(fmt::format("Medians differ from process to process: {}.",
                                named(these, [](const Json& entry) { return "by " + percent(round_spread(entry)); })));
  if (const Entries these = unsteady(entries); !these.empty())
    found.push_back(fmt::format("Not seen to be steady when warm-up ended: {}.", named(these, {})));
  if (const Entries these = disturbed(entries); !these.empty())
    found.push_back(fmt::format("Disturbed: {}.", named(these, disturbance_text)));
  if (const Entries these = measured(entries, is_unchecked); !these.empty())
    found.push_back(fmt::format(
        "Not checked: {}.", named(these, [](const Json& entry) { return text_at(entry, {"accuracy", "reason"}); })));
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
  if (const Entries these = launch_bound(entries); !these.empty())
    advice.push_back(fmt::format(
        "Give each launch more work, or fuse launches: {}.", named(these, [](const Json& entry) {
          const auto launches = number_at(entry, {"launches_per_run"});
          return launches ? fmt::format("{:.0f} {} a run", *launches, *launches == 1 ? "launch" : "launches")
                          : std::string();
        })));
  const std::vector<NotFaster> slow_halves = not_faster(entries);
  Entries halves;
  for (const NotFaster& one : slow_halves) halves.push_back(one.half);
  if (!halves.empty())
    advice.push_back(fmt::format(
        "Keep fp32 unless memory is short, or use packed arithmetic (half2, vector types): {}.", named(halves, {})));
  Entries uncertain = noisy(entries);
  Entries shaken = differing(entries), throttled;
  for (const Json* entry : disturbed(entries)) (is_throttled(*entry) ? throttled : shaken).push_back(entry);
  for (const Json* entry : shaken)
    if (std::find(uncertain.begin(), uncertain.end(), entry) == uncertain.end()) uncertain.push_back(entry);
  if (!uncertain.empty())
    advice.push_back(fmt::format("Measure again on a quieter machine, or with more --rounds and --iters: {}.",
                                 named(uncertain, {})));
  if (const Entries these = unsteady(entries); !these.empty())
    advice.push_back(
        fmt::format("Use a larger --warmup, or a larger --budget, of which a fifth is for it: {}.", named(these, {})));
  if (!throttled.empty())
    advice.push_back(
        fmt::format("Lock clocks or cool the device before numbers are compared: {}.", named(throttled, {})));
  if (const Entries these = measured(entries, is_unchecked); !these.empty())
    advice.push_back(fmt::format("Add reference(), so that results are checked: {}.", named(these, {})));
  for (const Json& entry : entries) {
    const std::string hint = text_at(entry, {"error", "hint"}), status = text_at(entry, {"status"});
    if (!hint.empty() && status != "skipped" && status != "ok")
      advice.push_back(fmt::format("{}: {}", key_of(entry), hint));
  }
  return advice;
}

}  // namespace weir::bench
