#include "device/gpu/spans.h"

#include <algorithm>

namespace weir {
namespace {

constexpr std::size_t kMaxSlots = 256;   // iterations in flight
constexpr std::size_t kMaxPairs = 4096;  // 64 streams: 64 iterations in flight
constexpr std::size_t kSpans = 1 << 16;  // room for a long pass without reallocation

}  // namespace

IterationEvents::IterationEvents(const GpuApi& api, DeviceClock& clock, std::size_t lanes)
    : api_(api),
      clock_(clock),
      lanes_(lanes),
      slots_(std::clamp(kMaxPairs / std::max<std::size_t>(lanes, 1), std::size_t{2}, kMaxSlots)) {
  const std::size_t count = slots_ * lanes_ * 2;
  events_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    events_.push_back(make_event(api, kGpuEventTiming));
    handles_.push_back(events_.back().get());
  }
  is_marked_.resize(count, 0);
  base_.resize(slots_, 0);
  if (lanes > 0) spans_.reserve(kSpans);
}

void IterationEvents::begin() noexcept {
  if (lanes_ == 0) return;
  if (begun_ - read_ == slots_) read_oldest();
  const std::size_t slot = begun_++ % slots_;
  first_ = slot * lanes_ * 2;
  std::fill_n(is_marked_.begin() + static_cast<std::ptrdiff_t>(first_), lanes_ * 2, std::uint8_t{0});
  base_[slot] = clock_.base();
}

void IterationEvents::read_oldest() noexcept {
  const std::size_t slot = read_++ % slots_;
  const std::size_t first = slot * lanes_ * 2;
  IterationSpan span;
  bool is_complete = true;
  for (std::size_t i = first; i < first + lanes_ * 2; i += 2) {
    if (!is_marked_[i] || !is_marked_[i + 1]) continue;  // a stream without commands
    std::int64_t started = kNoTime, ended = kNoTime;
    if (api_.event_synchronize(handles_[i + 1]) == 0) {
      started = clock_.time_of(handles_[i], base_[slot]);
      ended = clock_.time_of(handles_[i + 1], base_[slot]);
    }
    if (started == kNoTime || ended == kNoTime) {
      is_complete = false;
      break;
    }
    span.started_ns = span.started_ns == kNoTime ? started : std::min(span.started_ns, started);
    span.ended_ns = std::max(span.ended_ns, ended);  // kNoTime is the smallest value
  }
  spans_.push_back(is_complete ? span : IterationSpan{});
}

std::vector<IterationSpan> IterationEvents::take() {
  while (read_ < begun_) read_oldest();
  std::vector<IterationSpan> spans;
  spans.reserve(kSpans);
  spans.swap(spans_);
  return spans;
}

}  // namespace weir
