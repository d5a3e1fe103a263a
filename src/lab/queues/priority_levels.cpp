// Measures which priorities make a difference, by the order in which blocks start. Ignores times.
#include <fmt/format.h>

#include <algorithm>

#include "lab/queues/limits.h"
#include "lab/queues/stamps.h"
#include "measure/statistics.h"

namespace weir {
namespace {

constexpr int kPriorityRepetitions = 5;
constexpr int kWaves = 6;  // waves of the large kernel
constexpr std::int64_t kBlockNs = 200'000;

// Everything is queued behind a held kernel, and the small kernel follows a delay on its own stream. So it arrives when
// the large one is already running, however late the host is.
double passed_share(Device& device, int victim_priority, int small_priority, std::uint32_t blocks) {
  enum : std::uint32_t { kHold, kDelay, kSmall, kVictims };  // moments
  const Lane large_lane{.stream = 0, .priority = static_cast<std::int8_t>(victim_priority)};
  const Lane small_lane{.stream = 1, .priority = static_cast<std::int8_t>(small_priority)};
  StampStep step(1, kVictims + blocks);
  step.hold({.stream = 2}, 0, kHold, kVictims + blocks);
  step.stamp(large_lane, kBlockNs, kVictims, blocks);
  step.stamp(small_lane, kBlockNs / 2, kDelay);
  step.stamp(small_lane, 0, kSmall);
  StampSession session(device, std::move(step), 3);
  std::vector<double> shares;
  for (int i = 0; i <= kPriorityRepetitions; ++i) {
    session.begin();
    session.submit_all();
    session.release(0);
    session.finish();
    const std::int64_t started_ns = session.moment(kSmall).started_ns;
    const std::vector<Moment> victims = session.moments(kVictims, blocks);
    const auto before = std::count_if(victims.begin(), victims.end(),
                                      [&](const Moment& victim) { return victim.started_ns < started_ns; });
    if (i > 0) shares.push_back(static_cast<double>(before) / blocks);  // the first one is warm-up
  }
  return median(shares);
}

}  // namespace

Known<bool> priorities_differ(double passed_equal, double passed_higher) {
  constexpr double kWaits = 0.6;   // share of the large kernel's blocks; from it on the small kernel had to wait
  constexpr double kSooner = 0.7;  // share of the wait of an equal priority
  if (passed_equal < kWaits)
    return {std::nullopt, "the small kernel does not wait for the large one even at equal priority"};
  return {passed_higher < kSooner * passed_equal, "by experiment"};
}

Known<int> count_levels(const std::vector<PriorityLevels::Pair>& pairs) {
  int levels = 1;
  for (const PriorityLevels::Pair& pair : pairs) {
    if (!pair.differs.value)
      return {std::nullopt, fmt::format("priorities {} and {}: {}", pair.lower, pair.higher, pair.differs.reason)};
    levels += *pair.differs.value ? 1 : 0;
  }
  return {levels, "by experiment"};
}

PriorityLevels measure_priority_levels(Device& device) {
  const DeviceInfo info = device.info();
  PriorityLevels found;
  found.lowest = info.lowest_priority;
  found.highest = info.highest_priority;
  if (found.lowest == found.highest) {
    found.levels = {1, "the device offers no other"};
    return found;
  }
  const ConcurrentBlocks room = count_concurrent_blocks(device);
  found.blocks_at_once = room.blocks;
  if (room.is_more) {
    found.levels.reason = fmt::format("{} blocks ran at once, so nothing was found that fills the device", room.blocks);
    return found;
  }
  found.victim_blocks = kWaves * room.blocks;
  const auto blocks = static_cast<std::uint32_t>(found.victim_blocks);
  for (int lower = found.lowest; lower < found.highest; ++lower) {
    PriorityLevels::Pair pair{.lower = lower, .higher = lower + 1, .differs = {}};
    pair.passed_equal = passed_share(device, lower, lower, blocks);
    pair.passed_higher = passed_share(device, lower, lower + 1, blocks);
    pair.differs = priorities_differ(pair.passed_equal, pair.passed_higher);
    found.pairs.push_back(pair);
  }
  found.levels = count_levels(found.pairs);
  return found;
}

}  // namespace weir
