#include "device/gpu/trace.h"

#include <unistd.h>

#include <algorithm>

namespace weir {
namespace {

constexpr std::size_t kMaxEvents = 100'000;
constexpr std::size_t kMaxSpans = 500'000;  // where there are no events

bool is_outside = false;

}  // namespace

void trace_from_outside() noexcept { is_outside = true; }
bool is_traced_from_outside() noexcept { return is_outside; }

CommandEvents::CommandEvents(const GpuApi& api, DeviceClock& clock, std::size_t commands, int iterations)
    : api_(api),
      clock_(clock),
      commands_(commands),
      slots_(std::clamp(kMaxEvents / (2 * std::max<std::size_t>(commands, 1)), std::size_t{1},
                        static_cast<std::size_t>(std::max(iterations, 1)))) {
  events_.reserve(slots_ * commands_ * 2);
  for (std::size_t i = 0; i < slots_ * commands_ * 2; ++i) events_.push_back(make_event(api, kGpuEventTiming));
  submitted_ns_.resize(slots_ * commands_, kNoTime);
  accepted_ns_.resize(slots_ * commands_, kNoTime);
  base_.resize(slots_, 0);
}

CommandEvents::CommandEvents(const GpuApi& api, DeviceClock& clock, GpuCommands& commands, std::size_t count,
                             int iterations)
    : api_(api),
      clock_(clock),
      host_(&commands),
      commands_(count),
      slots_(std::clamp(kMaxSpans / std::max<std::size_t>(count, 1), std::size_t{1},
                        static_cast<std::size_t>(std::max(iterations, 1)))),
      submitted_ns_(slots_ * count, kNoTime),
      accepted_ns_(slots_ * count, kNoTime),
      thread_(slots_ * count) {
  commands.note_host_runs(slots_);
}

// The kernel's number of this thread, which profilers record too.
std::uint32_t CommandEvents::own_thread() noexcept {
  static thread_local const auto kThread = static_cast<std::uint32_t>(::gettid());
  return kThread;
}

void CommandEvents::add_host_times(Timeline& timeline, std::size_t index) const {
  Span& span = timeline.spans.back();
  HostCall call;
  call.thread = thread_[index];
  call.started_ns = submitted_ns_[index];
  call.ended_ns = accepted_ns_[index];
  span.call = static_cast<std::uint32_t>(timeline.calls.size());
  timeline.calls.push_back(call);
  const HostBody* const body = host_->host_body(span.command);
  if (body == nullptr) return;
  const HostBody::Run run = body->run_at(span.iteration);
  span.started_ns = run.started_ns;
  span.ended_ns = run.ended_ns;
}

void CommandEvents::begin() noexcept {
  const std::size_t slot = begun_++ % slots_;
  first_ = slot * commands_;
  std::fill_n(submitted_ns_.begin() + static_cast<std::ptrdiff_t>(first_), commands_, kNoTime);
  if (host_ == nullptr) base_[slot] = clock_.base();
}

Timeline CommandEvents::timeline(const Step& step, const Placement& placement) {
  Timeline timeline;
  timeline.source = host_ == nullptr ? "device events around each command, which add gaps of their own"
                                     : "the host's own times alone: a profiler around this process has the device's";
  timeline.has_exact_gaps = false;
  const ClockMap map(clock_.first_fix(), host_ == nullptr ? clock_.take_fix() : clock_.first_fix());
  if (host_ == nullptr) timeline.clock_error_ns = map.error_ns();
  const std::uint64_t kept = std::min<std::uint64_t>(begun_, slots_);
  timeline.spans.reserve(kept * commands_);
  for (std::uint64_t iteration = begun_ - kept; iteration < begun_; ++iteration) {
    const std::size_t slot = iteration % slots_;
    for (CommandId id = 0; id < commands_; ++id) {
      const std::size_t index = slot * commands_ + id;
      if (submitted_ns_[index] == kNoTime) continue;  // never submitted
      Span span = untimed_span(step, placement, id, iteration);
      span.submitted_ns = submitted_ns_[index];
      span.accepted_ns = accepted_ns_[index];
      if (host_ != nullptr) {
        timeline.spans.push_back(span);
        add_host_times(timeline, index);
        continue;
      }
      const std::int64_t started = clock_.time_of(events_[2 * index].get(), base_[slot]);
      const std::int64_t ended = clock_.time_of(events_[2 * index + 1].get(), base_[slot]);
      if (started != kNoTime && ended != kNoTime) {
        span.started_ns = map.host_time(started);
        span.ended_ns = map.host_time(ended);
      }
      timeline.spans.push_back(span);
    }
  }
  return timeline;
}

}  // namespace weir
