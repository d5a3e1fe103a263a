#include "lab/kernels/disturbance.h"

#include <algorithm>

#include "base/named_values.h"
#include "measure/statistics.h"

namespace weir::bench {
namespace {

// With fewer, a median of clocks is a guess.
constexpr std::size_t kMinClocks = 3;

bool has_grown(const std::optional<std::uint64_t>& from, const std::optional<std::uint64_t>& to) {
  return from && to && *to > *from;
}

}  // namespace

bool lost_the_core(const HostCounters& before, const HostCounters& after, double ns) {
  if (!before.waited_ns || !after.waited_ns) return after.switches > before.switches;
  // The waiting time is known, and a switch without one does not count.
  const auto waited = static_cast<double>(*after.waited_ns - std::min(*before.waited_ns, *after.waited_ns));
  return waited > kMissingCore * ns;
}

DisturbanceWatch::DisturbanceWatch(package::ReadyKernel& kernel, const Surroundings& surroundings, bool is_ours)
    : kernel_(kernel), surroundings_(surroundings), is_ours_(is_ours) {
  looked_ = surroundings_.counters(true);
  const Telemetry telemetry = kernel_.telemetry();
  // CPU clocks come from a governor that reports one core at another moment, so they are not used for verdicts.
  has_clocks_ = !kernel_.device_name().starts_with("cpu") && (telemetry.clock_mhz || !telemetry.throttle.empty());
  if (has_clocks_ && telemetry.clock_mhz) clocks_mhz_.push_back(*telemetry.clock_mhz);
}

void DisturbanceWatch::before() {
  if (is_ours_) before_ = surroundings_.counters(false);
}

std::string DisturbanceWatch::after(double sample_ns) {
  since_look_ns_ += sample_ns;
  if (!is_ours_) return {};
  return lost_the_core(before_, surroundings_.counters(false), sample_ns) ? "others had the core" : "";
}

std::string DisturbanceWatch::look() {
  since_look_ns_ = 0;
  const HostCounters now = surroundings_.counters(true);
  const HostCounters since = std::exchange(looked_, now);
  if (is_ours_ && has_grown(since.throttles, now.throttles)) return "the control group's share was used up";
  if (is_ours_ && has_grown(since.stolen_ticks, now.stolen_ticks)) return "the hypervisor took time";
  if (!has_clocks_) return {};
  const Telemetry telemetry = kernel_.telemetry();
  if (telemetry.clock_mhz) clocks_mhz_.push_back(*telemetry.clock_mhz);
  if (!telemetry.throttle.empty()) return "throttled: " + telemetry.throttle.front();
  if (telemetry.clock_mhz && clocks_mhz_.size() >= kMinClocks &&
      *telemetry.clock_mhz < (1 - kLowClock) * median(clocks_mhz_))
    return "low clock";
  return {};
}

Json DisturbanceWatch::clocks_block() const {
  if (clocks_mhz_.empty()) return nullptr;
  const auto [low, high] = std::minmax_element(clocks_mhz_.begin(), clocks_mhz_.end());
  return {{"p50", median(clocks_mhz_)}, {"low", *low}, {"high", *high}, {"readings", clocks_mhz_.size()}};
}

void DisturbanceTally::count(const std::string& reason) {
  ++judged_;
  for (auto& [words, times] : reasons_)
    if (words == reason) {
      ++times;
      return;
    }
  reasons_.emplace_back(reason, 1);
}

void DisturbanceTally::redone(const std::string& reason, double sample_ns) {
  count(reason);
  thrown_ns_.push_back(sample_ns);
}

void DisturbanceTally::kept(const std::string& reason) {
  count(reason);
  ++kept_;
}

Json DisturbanceTally::block() const {
  Json block = {{"count", disturbed()}, {"redone", thrown_ns_.size()}, {"kept", kept_},
                {"reasons", reasons_},  {"samples_ns", thrown_ns_},    {"note", nullptr}};
  if (is_usual())
    block["note"] = "nearly all samples were disturbed: that is how this machine was, so later ones were kept";
  else if (kept_ > 0)
    block["note"] = "some disturbed samples were kept: as many had been redone as there are samples, or time was up";
  return block;
}

}  // namespace weir::bench
