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
constexpr double kMostOverhead = 0.2;  // share of a copy's time that is not its bytes; beyond it, copies are enlarged
constexpr std::uint64_t kMostGrowth = 16;  // by at most this factor
constexpr double kShortNs = 200'000;       // what a longer copy has besides its bytes is noise, not latency

using PerDirection = std::array<std::uint64_t, kCopyDirections>;

CopyDirection direction_of(int lane) { return static_cast<CopyDirection>(lane % kCopyDirections); }

// Lanes of stamp, copies, stamp, all queued behind one held kernel so that all start together.
class CopyLanes {
 public:
  CopyLanes(Device& device, const PerDirection& sizes, const PerDirection& repeats) {
    constexpr std::uint32_t kMoments = 1 + 2 * kLanes;
    StampStep step(1, kMoments);
    hold_ = step.hold({.stream = kLanes}, 0, 0, kMoments);
    for (int lane = 0; lane < kLanes; ++lane) {
      const CopyDirection direction = direction_of(lane);
      const std::uint64_t elements = sizes[static_cast<std::size_t>(direction)] / 4;
      const auto host = [&] { return step.builder().host(ElementType::f32, elements, Init::constant); };
      const auto device_memory = [&] { return step.builder().constant(ElementType::f32, elements, 0); };
      const BufferId from = direction == CopyDirection::to_device ? host() : device_memory();
      const BufferId to = direction == CopyDirection::to_host ? host() : device_memory();
      const Lane where{.stream = static_cast<StreamId>(lane)};
      auto& commands = commands_[static_cast<std::size_t>(lane)];
      commands.push_back(step.stamp(where, 0, before(lane)));
      for (std::uint64_t i = 0; i < repeats[static_cast<std::size_t>(direction)]; ++i)
        commands.push_back(step.builder().copy(where, {from}, {to}));
      commands.push_back(step.stamp(where, 0, before(lane) + 1));
    }
    session_.emplace(device, std::move(step), kLanes + 1);
  }

  struct NotQueuedAhead {};
  // The median time from the first lane's start to the last lane's end, over some repetitions. Throws if the host could
  // not queue all of them ahead: then it is the host that would be measured.
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
      const bool is_queued_ahead = session_->moment(0).ended_ns == 0;
      session_->release(0);
      session_->finish();
      if (!is_queued_ahead) throw NotQueuedAhead{};
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

std::optional<double> overlap_of(std::span<const CopyTime> alone, double together_ns) {
  double transfers_ns = 0, longest_ns = 0;
  for (const CopyTime& copy : alone) {
    transfers_ns += copy.transfer_ns;
    longest_ns = std::max(longest_ns, copy.time_ns);
  }
  if (transfers_ns <= longest_ns) return std::nullopt;
  return std::clamp((transfers_ns - together_ns) / (transfers_ns - longest_ns), 0.0, 1.0);
}

int engines_at_least(std::span<const CopyOverlap::Together> together) {
  std::size_t most = 1;
  for (const CopyOverlap::Together& set : together)
    if (set.overlap.value_or(0) > 0.5) most = std::max(most, set.directions.size());
  return static_cast<int>(most);
}

namespace {

CopyOverlap measure_lanes(Device& device, std::uint64_t size_bytes, int max_repeats) {
  PerDirection sizes, repeats;
  sizes.fill(size_bytes);
  std::vector<CopyOverlap::Alone> alone;
  std::optional<CopyLanes> lanes;
  // One set of lanes at a time: each allocates the memory of all its copies.
  const auto times = [&](const PerDirection& of_sizes) {
    lanes.reset();
    lanes.emplace(device, of_sizes, repeats);
    std::array<double, kCopyDirections> found;
    for (int i = 0; i < kCopyDirections; ++i) found[static_cast<std::size_t>(i)] = lanes->time_ns({{i}});
    return found;
  };
  for (bool is_large_enough = false; !is_large_enough;) {
    repeats.fill(1);
    const auto once = times(sizes);
    for (std::size_t i = 0; i < kCopyDirections; ++i)
      repeats[i] = static_cast<std::uint64_t>(
          std::clamp(kLongEnoughNs / std::max(1.0, once[i]) + 1, 1.0, static_cast<double>(max_repeats)));
    PerDirection halves = sizes;
    for (std::uint64_t& size : halves) size /= 2;
    const auto half = times(halves);
    const auto full = times(sizes);
    is_large_enough = true;
    alone.clear();
    for (std::size_t i = 0; i < kCopyDirections; ++i) {
      CopyOverlap::Alone copy{static_cast<CopyDirection>(i), sizes[i] * repeats[i], full[i], std::nullopt};
      const double bytes = static_cast<double>((sizes[i] - halves[i]) * repeats[i]);
      if (full[i] > half[i]) copy.bytes_per_s = bytes / (full[i] - half[i]) * 1e9;
      const bool is_short = copy.time_ns < kShortNs * static_cast<double>(repeats[i]);
      if (is_short && copy.time_ns - copy.transfer_ns() > kMostOverhead * copy.time_ns &&
          sizes[i] < kMostGrowth * size_bytes) {
        sizes[i] *= 4;
        is_large_enough = false;
      }
      alone.push_back(copy);
    }
  }

  CopyOverlap found;
  found.alone = std::move(alone);
  const auto together = [&](std::vector<int> chosen) {
    CopyOverlap::Together set;
    std::vector<CopyTime> parts;
    for (const int lane : chosen) {
      const CopyOverlap::Alone& copy = found.alone[static_cast<std::size_t>(direction_of(lane))];
      set.directions.push_back(copy.direction);
      parts.push_back({copy.time_ns, copy.transfer_ns()});
    }
    set.time_ns = lanes->time_ns(chosen);
    set.overlap = overlap_of(parts, set.time_ns);
    found.together.push_back(std::move(set));
  };
  for (int first = 0; first < kCopyDirections; ++first)
    for (int second = first; second < kCopyDirections; ++second)
      together({first, second == first ? first + kCopyDirections : second});
  together({0, 1, 2});
  found.engines_at_least = engines_at_least(found.together);
  return found;
}

}  // namespace

CopyOverlap measure_copy_overlap(Device& device, std::uint64_t size_bytes) {
  for (int max_repeats = kMaxRepeats; max_repeats > 0; max_repeats /= 4) {
    try {
      return measure_lanes(device, size_bytes, max_repeats);
    } catch (const CopyLanes::NotQueuedAhead&) {
      // Fewer copies may fit.
    }
  }
  CopyOverlap none;
  none.reason =
      "the host could not queue copies ahead, so its own time would be measured: the queues are too shallow, or the "
      "host "
      "is too slow";
  return none;
}

}  // namespace weir
