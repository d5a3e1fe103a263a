#include "device/gpu/clock.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"

namespace weir {
namespace {

constexpr std::int64_t kBaseAge_ns = 1'000'000'000;
constexpr std::size_t kBases = 256;  // room for minutes without reallocation
constexpr int kTries = 16;           // the tightest of these is the fix

}  // namespace

DeviceClock::DeviceClock(const GpuApi& api, GpuStream stream) : api_(api), stream_(stream) {
  bases_.reserve(kBases);
  bases_.push_back({make_event(api, kGpuEventTiming), 0, 0});
  // The base event must not change once others are measured against it, so the first fix uses the base itself.
  std::int64_t best = INT64_MAX;
  for (int i = 0; i < kTries; ++i) {
    const bool is_last = i + 1 == kTries;
    const std::int64_t before = now_ns();
    check(api_, api_.event_record(bases_[0].event.get(), stream_), "recording an event");
    check(api_, api_.event_synchronize(bases_[0].event.get()), "waiting for an event");
    const std::int64_t after = now_ns();
    best = std::min(best, after - before);
    // Good enough, or the last try: this recording is the base.
    if ((i >= kTries / 2 && after - before <= best + best / 8) || is_last) {
      const std::int64_t middle = before + (after - before) / 2;
      first_ = {middle, middle, static_cast<double>(after - before) / 2};
      bases_[0].device_ns = middle;
      bases_[0].recorded_ns = after;
      return;
    }
  }
}

bool DeviceClock::add_base() noexcept {
  try {
    bases_.push_back({make_event(api_, kGpuEventTiming), kNoTime, now_ns()});
  } catch (...) {
    return false;
  }
  if (api_.event_record(bases_.back().event.get(), stream_) == 0) return true;
  bases_.pop_back();
  return false;
}

std::uint32_t DeviceClock::base() noexcept {
  // Without a new base the old one still works, only less precisely.
  if (now_ns() - bases_.back().recorded_ns > kBaseAge_ns) add_base();
  return static_cast<std::uint32_t>(bases_.size() - 1);
}

std::int64_t DeviceClock::device_time(std::uint32_t base) noexcept {
  std::uint32_t known = base;
  while (bases_[known].device_ns == kNoTime) --known;  // the first base's time is always known
  for (; known < base; ++known) {
    float milliseconds = 0;
    if (api_.event_synchronize(bases_[known + 1].event.get()) != 0) return kNoTime;
    if (api_.event_elapsed(&milliseconds, bases_[known].event.get(), bases_[known + 1].event.get()) != 0)
      return kNoTime;
    bases_[known + 1].device_ns = bases_[known].device_ns + std::llround(static_cast<double>(milliseconds) * 1e6);
  }
  return bases_[base].device_ns;
}

std::int64_t DeviceClock::time_of(GpuEvent event, std::uint32_t base) noexcept {
  const std::int64_t origin = device_time(base);
  float milliseconds = 0;
  if (origin == kNoTime || api_.event_elapsed(&milliseconds, bases_[base].event.get(), event) != 0) return kNoTime;
  return origin + std::llround(static_cast<double>(milliseconds) * 1e6);
}

ClockFix DeviceClock::take_fix() {
  const GpuEventOwner event = make_event(api_, kGpuEventTiming);
  const std::uint32_t near = base();
  ClockFix best;
  best.error_ns = INFINITY;
  for (int i = 0; i < kTries; ++i) {
    const std::int64_t before = now_ns();
    check(api_, api_.event_record(event.get(), stream_), "recording an event");
    check(api_, api_.event_synchronize(event.get()), "waiting for an event");
    const std::int64_t after = now_ns();
    const double error = static_cast<double>(after - before) / 2;
    if (error >= best.error_ns) continue;
    const std::int64_t device = time_of(event.get(), near);
    if (device != kNoTime) best = {device, before + (after - before) / 2, error};
  }
  return std::isinf(best.error_ns) ? first_ : best;
}

}  // namespace weir
