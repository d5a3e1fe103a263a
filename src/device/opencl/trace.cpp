#include "device/opencl/trace.h"

#if WEIR_HAVE_OPENCL
#include <algorithm>
#include <cstdlib>
#include <limits>

namespace weir {
namespace {

constexpr std::size_t kMaxEvents = 100'000;

}  // namespace

OpenclTrace::OpenclTrace(const OpenclContext& context, std::size_t commands, int iterations)
    : context_(context),
      api_(context.api()),
      commands_(commands),
      slots_(std::clamp(kMaxEvents / std::max<std::size_t>(commands, 1), std::size_t{1},
                        static_cast<std::size_t>(std::max(iterations, 1)))),
      entries_(slots_ * commands),
      first_fix_(take_fix()) {}

OpenclTrace::~OpenclTrace() {
  for (Entry& entry : entries_) forget(entry);
}

void OpenclTrace::forget(Entry& entry) noexcept {
  if (entry.begin != nullptr) api_.release_event(entry.begin);
  if (entry.end != nullptr) api_.release_event(entry.end);
  entry = {};
}

void OpenclTrace::begin() noexcept {
  first_ = begun_++ % slots_ * commands_;
  for (std::size_t i = first_; i < first_ + commands_; ++i) forget(entries_[i]);
}

std::optional<ClockFix> OpenclTrace::take_fix() const noexcept {
  if (context_.facts().version < 21 || api_.device_timer == nullptr) return std::nullopt;
  std::optional<ClockFix> best;
  for (int i = 0; i < 16; ++i) {
    cl_ulong device_ns = 0, host = 0;
    const std::int64_t before_ns = now_ns();
    if (api_.device_timer(context_.device(), &device_ns, &host) != CL_SUCCESS) return std::nullopt;
    const std::int64_t after_ns = now_ns();
    const double error_ns = static_cast<double>(after_ns - before_ns) / 2;
    if (!best || error_ns < best->error_ns)
      best = {static_cast<std::int64_t>(device_ns), before_ns + (after_ns - before_ns) / 2, error_ns};
  }
  return best;
}

ClockMap OpenclTrace::clock_map() const {
  if (first_fix_)
    if (const auto last = take_fix()) return {*first_fix_, *last};
  // The driver stamps a command as queued during the host's call, so each command bounds the offset between the clocks.
  std::int64_t least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
  for (const Entry& entry : entries_) {
    const std::int64_t queued =
        opencl_time(api_, entry.begin != nullptr ? entry.begin : entry.end, CL_PROFILING_COMMAND_QUEUED);
    if (queued == kNoTime || entry.accepted_ns == kNoTime) continue;
    least = std::max(least, queued - entry.accepted_ns);
    most = std::min(most, queued - entry.submitted_ns);
  }
  if (most == std::numeric_limits<std::int64_t>::max()) least = most = 0;  // nothing was traced
  const std::int64_t near_ns = now_ns();  // a map through a distant point would lose nanoseconds
  // If the clocks drift, the bounds may cross: then the middle is off by the same amount on both sides.
  const std::int64_t difference = least + (most - least) / 2;
  const ClockFix fix{near_ns + difference, near_ns, static_cast<double>(std::abs(most - least)) / 2};
  return {fix, fix};
}

Timeline OpenclTrace::timeline(const Step& step, const Placement& placement, const OpenclCommands& commands,
                               const OpenclHostCalls* hosts) {
  Timeline timeline;
  const ClockMap map = clock_map();
  timeline.source = first_fix_ ? "OpenCL's profiling, placed on the host's clock by the device's timer"
                               : "OpenCL's profiling, placed on the host's clock by when commands were queued";
  timeline.clock_error_ns = map.error_ns();
  timeline.has_exact_gaps = true;
  const auto on_host = [&](std::int64_t time) { return time == kNoTime ? kNoTime : map.host_time(time); };
  const std::uint64_t kept = std::min<std::uint64_t>(begun_, slots_);
  timeline.spans.reserve(kept * commands_);
  for (std::uint64_t iteration = begun_ - kept; iteration < begun_; ++iteration) {
    for (CommandId id = 0; id < commands_; ++id) {
      const Entry& entry = entries_[iteration % slots_ * commands_ + id];
      if (entry.accepted_ns == kNoTime) continue;  // never submitted
      Span span = untimed_span(step, placement, id, iteration);
      span.submitted_ns = entry.submitted_ns;
      span.accepted_ns = entry.accepted_ns;
      if (commands.record(id).kind == OpenclRecord::Kind::host) {
        // The markers around it include the host's response time; its own times are exact.
        timeline.has_exact_gaps = false;
        const HostBody& body = hosts->body(id);
        const std::uint64_t left = begun_ - iteration;  // runs from this one to the last, inclusive
        const HostBody::Run run = left <= body.run_count ? body.run_at(body.run_count - left) : HostBody::Run{};
        span.started_ns = run.started_ns;
        span.ended_ns = run.ended_ns;
      } else {
        const bool has_marker = commands.begins_by_marker(id);
        if (has_marker) timeline.has_exact_gaps = false;
        span.launched_ns =
            on_host(opencl_time(api_, has_marker ? entry.begin : entry.end, CL_PROFILING_COMMAND_SUBMIT));
        span.started_ns = on_host(has_marker ? opencl_time(api_, entry.begin, CL_PROFILING_COMMAND_END)
                                             : opencl_time(api_, entry.end, CL_PROFILING_COMMAND_START));
        span.ended_ns = on_host(opencl_time(api_, entry.end, CL_PROFILING_COMMAND_END));
        if (span.started_ns == kNoTime || span.ended_ns == kNoTime)
          span.launched_ns = span.started_ns = span.ended_ns = kNoTime;
        // A driver may pass a command on, and even run it, before the call returns: it was accepted by then.
        if (span.launched_ns != kNoTime)
          span.accepted_ns = std::max(span.submitted_ns, std::min(span.accepted_ns, span.launched_ns));
      }
      timeline.spans.push_back(span);
    }
  }
  return timeline;
}

}  // namespace weir
#endif
