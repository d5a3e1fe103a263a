// Measures which copies overlap, and how many engines that implies. Runs copies between stamps; knows no driver.
#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "lab/queues/limits.h"
#include "lab/queues/stamps.h"
#include "measure/statistics.h"

namespace weir {
namespace {

constexpr int kLanes = 2 * kCopyDirections;  // two of each direction: lane i copies in direction i % kCopyDirections
constexpr int kCopyRepetitions = 5;
constexpr double kLongEnoughNs = 1'200'000;
constexpr int kMaxRepeats = 128;

CopyDirection direction_of(int lane) { return static_cast<CopyDirection>(lane % kCopyDirections); }

// Lanes of stamp, copies, stamp, all queued behind one held kernel so that all start together.
class CopyLanes {
 public:
  CopyLanes(Device& device, std::uint64_t size_bytes, std::array<int, kCopyDirections> repeats) {
    constexpr std::uint32_t kMoments = 1 + 2 * kLanes;
    StampStep step(1, kMoments);
    const auto host = [&] { return step.builder().host(ElementType::f32, size_bytes / 4, Init::constant); };
    const auto device_memory = [&] { return step.builder().constant(ElementType::f32, size_bytes / 4, 0); };
    hold_ = step.hold({.stream = kLanes}, 0, 0, kMoments);
    for (int lane = 0; lane < kLanes; ++lane) {
      const CopyDirection direction = direction_of(lane);
      const BufferId from = direction == CopyDirection::to_device ? host() : device_memory();
      const BufferId to = direction == CopyDirection::to_host ? host() : device_memory();
      const Lane where{.stream = static_cast<StreamId>(lane)};
      auto& commands = commands_[static_cast<std::size_t>(lane)];
      commands.push_back(step.stamp(where, 0, before(lane)));
      for (int i = 0; i < repeats[static_cast<std::size_t>(direction)]; ++i)
        commands.push_back(step.builder().copy(where, {from}, {to}));
      commands.push_back(step.stamp(where, 0, before(lane) + 1));
    }
    session_.emplace(device, std::move(step), kLanes + 1);
  }

  // The median time from the first lane's start to the last lane's end, over some repetitions.
  double time_ns(std::span<const int> lanes) {
    std::vector<double> times;
    for (int i = 0; i <= kCopyRepetitions; ++i) {
      session_->begin();
      session_->submit(hold_);
      // Lanes alternate: copies of one lane wait for each other and would block a queue that the next lane shares.
      std::vector<CommandId> order;
      for (std::size_t rank = 0, left = lanes.size(); left > 0; ++rank) {
        left = 0;
        for (const int lane : lanes) {
          const auto& commands = commands_[static_cast<std::size_t>(lane)];
          if (rank >= commands.size()) continue;
          order.push_back(commands[rank]);
          ++left;
        }
      }
      session_->submit(order);
      session_->release(0);
      session_->finish();
      std::int64_t first = INT64_MAX, last = INT64_MIN;
      for (const int lane : lanes) {
        first = std::min(first, session_->moment(before(lane)).ended_ns);
        last = std::max(last, session_->moment(before(lane) + 1).started_ns);
      }
      if (i > 0) times.push_back(static_cast<double>(last - first));  // the first one is warm-up
    }
    return median(times);
  }

 private:
  static std::uint32_t before(int lane) { return static_cast<std::uint32_t>(1 + 2 * lane); }
  std::optional<StampSession> session_;
  CommandId hold_ = 0;
  std::array<std::vector<CommandId>, kLanes> commands_;
};

}  // namespace

std::string_view name_of(CopyDirection direction) {
  constexpr std::string_view kNames[] = {"host_to_device", "device_to_host", "device_to_device"};
  return kNames[static_cast<int>(direction)];
}

double overlap_of(std::span<const double> alone_ns, double together_ns) {
  const double sum = std::accumulate(alone_ns.begin(), alone_ns.end(), 0.0);
  const double longest = *std::max_element(alone_ns.begin(), alone_ns.end());
  return sum > longest ? std::clamp((sum - together_ns) / (sum - longest), 0.0, 1.0) : 0;
}

int engines_at_least(std::span<const CopyOverlap::Together> together) {
  std::size_t most = 1;
  for (const CopyOverlap::Together& set : together)
    if (set.overlap > 0.5) most = std::max(most, set.directions.size());
  return static_cast<int>(most);
}

CopyOverlap measure_copy_overlap(Device& device, std::uint64_t size_bytes) {
  std::array<int, kCopyDirections> repeats;
  repeats.fill(1);
  std::optional<CopyLanes> lanes(std::in_place, device, size_bytes, repeats);
  for (int i = 0; i < kCopyDirections; ++i) {
    const double once_ns = std::max(1.0, lanes->time_ns({{i}}));
    repeats[static_cast<std::size_t>(i)] =
        static_cast<int>(std::clamp(kLongEnoughNs / once_ns + 1, 1.0, static_cast<double>(kMaxRepeats)));
  }
  if (std::any_of(repeats.begin(), repeats.end(), [](int count) { return count > 1; })) {
    lanes.reset();  // before the next one allocates as much memory
    lanes.emplace(device, size_bytes, repeats);
  }

  CopyOverlap found;
  for (int i = 0; i < kCopyDirections; ++i)
    found.alone.push_back({static_cast<CopyDirection>(i),
                           size_bytes * static_cast<std::uint64_t>(repeats[static_cast<std::size_t>(i)]),
                           lanes->time_ns({{i}})});
  const auto together = [&](std::vector<int> chosen) {
    CopyOverlap::Together set;
    std::vector<double> alone;
    for (const int lane : chosen) {
      set.directions.push_back(direction_of(lane));
      alone.push_back(found.alone[static_cast<std::size_t>(direction_of(lane))].time_ns);
    }
    set.time_ns = lanes->time_ns(chosen);
    set.overlap = overlap_of(alone, set.time_ns);
    found.together.push_back(std::move(set));
  };
  for (int first = 0; first < kCopyDirections; ++first)
    for (int second = first; second < kCopyDirections; ++second)
      together({first, second == first ? first + kCopyDirections : second});
  together({0, 1, 2});
  found.engines_at_least = engines_at_least(found.together);
  return found;
}

}  // namespace weir
