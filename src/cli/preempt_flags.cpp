#include "cli/preempt_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "base/options.h"
#include "base/plain_text.h"
#include "base/units.h"
#include "cli/flag_values.h"

namespace weir::cli {
namespace {

using preempt::Mechanism;
using preempt::Plan;
using preempt::Victim;
using preempt::VictimKind;

constexpr std::int64_t kShortestBlockNs = 10'000, kLongestBlockNs = 10'000'000;
constexpr int kMostWaves = 256;
constexpr std::size_t kMostVictims = 1000;

// "10us", "1.5ms", "2s", "500ns"
std::int64_t time_of(const std::string& flag, const std::string& whole, std::string_view word) {
  if (const auto ns = time_in(word, {"ns", "us", "ms", "s"}); ns && *ns >= 0 && *ns <= 1e15) return std::llround(*ns);
  reject(fmt::format("{} {}: '{}' is not a time", flag, without_controls(whole, ' '), without_controls(word, ' ')),
         "Give times like 10us, 1.5ms or 2s, lists like 10us,1ms, or ranges like 10us..10ms.");
}

std::int64_t one_time(const char* flag, const std::string& text, std::int64_t lowest_ns, std::int64_t highest_ns) {
  const std::vector<std::int64_t> times = parse_times(flag, text, lowest_ns, highest_ns);
  if (times.size() != 1) reject(fmt::format("{} {}: one time is needed here", flag, text));
  return times[0];
}

std::vector<VictimKind> kinds_of(const std::string& text) {
  constexpr VictimKind kAll[] = {VictimKind::waves, VictimKind::persistent, VictimKind::memory};
  if (text.empty()) return {kAll, kAll + 3};
  std::vector<std::string> names;
  for (const VictimKind kind : kAll) names.emplace_back(name_of(kind));
  std::vector<VictimKind> kinds;
  for (const std::string& name : parse_names("--victims", text)) {
    const auto kind = preempt::victim_kind_named(name);
    if (!kind) reject(fmt::format("--victims {}: unknown victim '{}'", text, name), suggestion(name, names));
    if (std::find(kinds.begin(), kinds.end(), *kind) == kinds.end()) kinds.push_back(*kind);
  }
  return kinds;
}

// A cross instead of a grid: block times at four waves, waves at one block time, and one victim of each other kind.
std::vector<Victim> usual_victims(const std::vector<VictimKind>& kinds, bool is_quick) {
  std::vector<Victim> all = {
      {VictimKind::waves, 4, 10'000}, {VictimKind::waves, 4, 100'000}, {VictimKind::waves, 4, 1'000'000}};
  if (!is_quick) {
    all.push_back({VictimKind::waves, 4, 10'000'000});
    all.push_back({VictimKind::waves, kMostWaves, 100'000});
  }
  all.push_back({VictimKind::persistent, 4, 100'000});
  all.push_back({VictimKind::memory, 4, 100'000});
  std::erase_if(all, [&](const Victim& one) { return std::find(kinds.begin(), kinds.end(), one.kind) == kinds.end(); });
  return all;
}

std::vector<Victim> victims_of(const PreemptFlags& flags) {
  const std::vector<VictimKind> kinds = kinds_of(flags.victims);
  if (flags.waves.empty() && flags.block_times.empty()) return usual_victims(kinds, flags.is_quick);
  const std::vector<int> waves =
      flags.waves.empty() ? std::vector{4} : parse_counts("--waves", flags.waves, 1, kMostWaves);
  const std::vector<std::int64_t> blocks =
      flags.block_times.empty() ? std::vector<std::int64_t>{100'000}
                                : parse_times("--block-times", flags.block_times, kShortestBlockNs, kLongestBlockNs);
  std::vector<Victim> victims;
  for (const VictimKind kind : kinds)
    for (const int wave : kind == VictimKind::persistent ? std::vector{4} : waves)
      for (const std::int64_t block : blocks) victims.push_back({kind, wave, block});
  if (victims.size() > kMostVictims)
    reject(fmt::format("--waves and --block-times make {} victims", victims.size()),
           fmt::format("{} are the most; give fewer.", kMostVictims));
  return victims;
}

}  // namespace

std::vector<std::int64_t> parse_times(const std::string& flag, const std::string& text, std::int64_t lowest_ns,
                                      std::int64_t highest_ns) {
  const auto checked = [&](std::string_view word) {
    const std::int64_t ns = time_of(flag, text, word);
    if (ns < lowest_ns || ns > highest_ns)
      reject(fmt::format("{} {}: {} is out of range", flag, text, word),
             fmt::format("Use {} to {}.", format_duration(static_cast<double>(lowest_ns)),
                         format_duration(static_cast<double>(highest_ns))));
    return ns;
  };
  std::vector<std::int64_t> times;
  for (const std::string& item : parse_names(flag, text)) {
    const std::size_t dots = item.find("..");
    if (dots == std::string::npos) {
      times.push_back(checked(item));
      continue;
    }
    std::string_view last = std::string_view(item).substr(dots + 2);
    double factor = 10;
    if (const std::size_t colon = last.find(":x"); colon != std::string_view::npos) {
      factor = parse_number(last.substr(colon + 2)).value_or(0);
      if (factor < 1.1 || factor > 1e6)
        reject(fmt::format("{} {}: '{}' is not a step", flag, text, last.substr(colon)), "Use :x2 to double.");
      last = last.substr(0, colon);
    }
    const std::int64_t from = checked(std::string_view(item).substr(0, dots)), to = checked(last);
    if (from > to || from == 0)
      reject(fmt::format("{} {}: {} is not a range", flag, text, item), "The shorter time comes first.");
    for (double at = static_cast<double>(from); at <= static_cast<double>(to) * 1.0001; at *= factor)
      times.push_back(std::llround(at));
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  return times;
}

void PreemptFlags::add_to(CommandSyntax syntax) {
  syntax.add("--device", device, "auto, cpu, cuda:0, hip:0, sim:h200 (auto: the first GPU, else cpu)");
  std::string names;
  for (const Mechanism& mechanism : preempt::mechanisms())
    names += (names.empty() ? "" : ", ") + std::string(mechanism.name);
  syntax.add("--mechanisms", mechanisms, "all, or a list of: " + names);
  syntax.add("--victims", victims, "kinds of long kernels: waves, persistent, memory (default: all)");
  syntax.add("--waves,--blocks", waves, "how often a kernel's blocks fill the device, 1 to 256: 4 or 1..256:x4");
  syntax.add("--block-times", block_times, "how long a block runs, 10us to 10ms: 100us,1ms or 10us..10ms");
  syntax.add("--requests,--iterations", requests,
             "of the urgent command, per mechanism and victim (default: 1000, fewer for long ones)");
  syntax.add("--interval", interval, "between them on average (default: 2ms, or 1.25 kernels of the victim)");
  syntax.add("--intruder-time", intruder, "how long the urgent command runs (default: as short as can be)");
  syntax.add("--in-flight", in_flight, "commands in flight that the launch gate allows");
  syntax.add("--queued-ahead", queued_ahead, "kernels that the victim keeps queued where nothing bounds them");
  syntax.add("--alone", alone, "how often the urgent command is timed alone, spread over the run");
  syntax.add("--seed", seed, "of the moments at which requests are due");
  syntax.add("--hw-queues", hardware_queues, "hardware queues of the devices cpu and sim");
  syntax.add("--sim", sim, "name=value, repeatable: a setting of the simulated device (docs/sim.md)");
  syntax.add("--quick", is_quick, "200 requests and fewer victims: no p99.9, a first look");
  syntax.add("--svg FILE", svg, "draw latency over block time into this file");
  document_output.add_to(syntax);
  syntax.add("--child", child).hidden();
}

Plan PreemptFlags::plan() const {
  Plan plan;
  plan.victims = victims_of(*this);
  plan.requests = requests.empty() ? (is_quick ? 200 : 1000) : one_count("--requests", requests, 10, 1'000'000);
  plan.interval_ns = interval.empty() ? 2'000'000 : one_time("--interval", interval, 100'000, 10'000'000'000);
  plan.intruder_ns = intruder.empty() ? 0 : one_time("--intruder-time", intruder, 0, 100'000'000);
  plan.alone_repeats = one_count("--alone", alone, 1, 100);
  plan.in_flight = static_cast<std::uint32_t>(one_count("--in-flight", in_flight, 1, 64));
  plan.queued_ahead = static_cast<std::uint32_t>(one_count("--queued-ahead", queued_ahead, 1, 64));
  const auto number = parse_integer(seed);
  if (!number || *number < 0)
    reject(fmt::format("--seed {}: not a whole number from 0 on", without_controls(seed, ' ')));
  plan.seed = static_cast<std::uint64_t>(*number);
  plan.undisturbed_ns = is_quick ? 200'000'000 : 300'000'000;
  if (plan.intruder_ns >= plan.interval_ns)
    reject(fmt::format("--intruder-time {}: the urgent command would run all the time", intruder),
           "It has to be shorter than --interval.");
  return plan;
}

// Behind a kernel only one request passes at a time, so faster requests would queue up without end. They are therefore
// sent at most once per kernel; where that would take long there are fewer of them, but enough for a p99.
Plan PreemptFlags::paced(const Plan& plan, const Victim& victim) const {
  constexpr double kKernels = 1.25;
  Plan paced = plan;
  if (interval.empty()) {
    const std::int64_t kernel_ns = victim.kind == VictimKind::persistent
                                       ? std::max(preempt::kPersistentNs, preempt::kPersistentBlocks * victim.block_ns)
                                       : victim.waves * victim.block_ns;
    paced.interval_ns =
        std::max<std::int64_t>(plan.interval_ns, std::llround(kKernels * static_cast<double>(kernel_ns)));
  }
  if (requests.empty()) {
    const std::int64_t most_ns = is_quick ? 1'000'000'000 : 3'000'000'000;
    paced.requests = static_cast<int>(std::clamp<std::int64_t>(most_ns / paced.interval_ns, 100, plan.requests));
  }
  return paced;
}

std::vector<const Mechanism*> PreemptFlags::chosen() const {
  std::vector<const Mechanism*> found;
  if (mechanisms == "all") {
    for (const Mechanism& mechanism : preempt::mechanisms()) found.push_back(&mechanism);
    return found;
  }
  for (const std::string& name : parse_names("--mechanisms", mechanisms)) {
    const Mechanism* const mechanism = &preempt::mechanism_named(name);
    if (std::find(found.begin(), found.end(), mechanism) == found.end()) found.push_back(mechanism);
  }
  return found;
}

}  // namespace weir::cli
