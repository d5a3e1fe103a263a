#include "device/opencl/spans.h"

#if WEIR_HAVE_OPENCL
#include <algorithm>
#include <utility>

namespace weir {
namespace {

constexpr std::size_t kMaxSlots = 64;
// PoCL 3.1 ties the end of a command buffer to everything in flight on its queue, so the time grows with the square of
// that: 200 iterations of 50 commands took 10 s and more with 64 in flight and 0.3 s with 4 (2 cores, 2026-11).
constexpr std::size_t kMaxGraphs = 4;
constexpr std::size_t kMaxLanes = 4096;  // in all slots together
constexpr std::size_t kSpans = 1 << 16;  // room for a long pass without reallocation

}  // namespace

std::size_t OpenclIterations::max_in_flight(std::size_t lanes, bool has_graphs) noexcept {
  if (has_graphs) return kMaxGraphs;
  return std::clamp(kMaxLanes / std::max<std::size_t>(lanes, 1), std::size_t{2}, kMaxSlots);
}

OpenclIterations::OpenclIterations(const OpenclApi& api, std::size_t lanes, std::size_t max_in_flight, bool is_marked)
    : api_(api), lane_count_(lanes), is_marked_(is_marked), slots_(max_in_flight), lanes_(slots_ * lanes) {
  if (is_marked_) spans_.reserve(kSpans);
}

void OpenclIterations::begin() noexcept {
  if (begun_ - retired_ == slots_) retire_oldest();
  first_ = begun_++ % slots_ * lane_count_;
}

void OpenclIterations::retire_oldest() noexcept {
  Lane* const lanes = &lanes_[retired_++ % slots_ * lane_count_];
  IterationSpan span;
  bool is_complete = true;
  for (std::size_t i = 0; i < lane_count_; ++i) {
    const Lane lane = std::exchange(lanes[i], {});
    if (lane.ended != nullptr) {
      if (api_.wait_for_events(1, &lane.ended) != CL_SUCCESS && failure_ == CL_SUCCESS) {
        cl_int status = CL_COMPLETE;
        api_.event_info(lane.ended, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
        failure_ = status < 0 ? status : CL_OUT_OF_RESOURCES;
      }
      if (is_marked_) {
        const std::int64_t started = opencl_time(
            api_, lane.started, lane.starts_by_marker ? CL_PROFILING_COMMAND_END : CL_PROFILING_COMMAND_START);
        const std::int64_t ended = opencl_time(api_, lane.ended, CL_PROFILING_COMMAND_END);
        is_complete = is_complete && started != kNoTime && ended != kNoTime;
        span.started_ns = span.started_ns == kNoTime ? started : std::min(span.started_ns, started);
        span.ended_ns = std::max(span.ended_ns, ended);  // kNoTime is the smallest value
      }
      api_.release_event(lane.ended);
    }
    if (lane.started != nullptr) api_.release_event(lane.started);
  }
  if (is_marked_) spans_.push_back(is_complete ? span : IterationSpan{});
}

cl_int OpenclIterations::drain() noexcept {
  while (retired_ < begun_) retire_oldest();
  return std::exchange(failure_, CL_SUCCESS);
}

std::vector<IterationSpan> OpenclIterations::take() {
  std::vector<IterationSpan> spans;
  if (is_marked_) spans.reserve(kSpans);
  spans.swap(spans_);
  return spans;
}

}  // namespace weir
#endif
