#include "device/cpu/times.h"

#include <algorithm>

#include "device/cpu/queue.h"

namespace weir::cpu {

Times::Times(const Step& step, const Placement& placement, const SessionOptions& options,
             std::span<const std::uint8_t> queue_of_stream)
    : command_count_(static_cast<std::uint32_t>(step.commands().size())),
      traced_iterations_(options.is_traced ? static_cast<std::uint32_t>(std::max(options.trace_iterations, 0)) : 0),
      segments_(step.segments()) {
  if (options.mode == SubmitMode::graph) segment_count_ = static_cast<std::uint32_t>(segments_.size()) - 1;
  constexpr std::size_t kSpansAhead = 1 << 14;  // allocated ahead, so that no sample has to; 256 KiB, touched when used
  iterations_.reserve(kSpansAhead);
  spans_.resize(static_cast<std::size_t>(traced_iterations_) * command_count_);
  for (std::uint32_t iteration = 0; iteration < traced_iterations_; ++iteration) {
    for (CommandId id = 0; id < command_count_; ++id) {
      Span& mine = span(id, iteration);
      mine = untimed_span(step, placement, id, iteration);
      mine.queue = segment_count_ != 0 ? kNoQueue : queue_of_stream[mine.stream];
    }
  }
  graphs_.resize(static_cast<std::size_t>(traced_iterations_) * segment_count_);
}

void Times::take_oldest() {
  Place& oldest = place(taken_++);
  // Acquire: pairs with the store in ended(), which also orders started_ns, perhaps of another thread, through `ended`.
  const std::int64_t ended_ns = oldest.ended_ns.load(std::memory_order_acquire);
  iterations_.push_back({oldest.started_ns.load(std::memory_order_relaxed), ended_ns});
}

void Times::begin() {
  if (begun_ - taken_ == kWindow) take_oldest();
  // Relaxed: workers learn of this place from packets that are pushed later.
  Place& mine = place(begun_++);
  mine.started_ns.store(kNoTime, std::memory_order_relaxed);
  mine.ended_ns.store(kNoTime, std::memory_order_relaxed);
  mine.ended.store(0, std::memory_order_relaxed);
}

std::vector<IterationSpan> Times::take_spans() {
  while (taken_ != begun_) take_oldest();
  std::vector<IterationSpan> taken(iterations_.begin(), iterations_.end());
  iterations_.clear();
  return taken;
}

Timeline Times::timeline() const {
  Timeline timeline;
  timeline.source = "clock of the cpu device's workers";
  timeline.has_exact_gaps = true;
  for (Span span : spans_) {
    if (segment_count_ != 0) {
      const auto after = std::upper_bound(segments_.begin(), segments_.end(), span.command);
      const auto segment = static_cast<std::size_t>(after - segments_.begin()) - 1;
      const GraphCall& call = graphs_[static_cast<std::size_t>(span.iteration) * segment_count_ + segment];
      span.submitted_ns = call.submitted_ns;
      span.accepted_ns = call.accepted_ns;
    }
    if (span.submitted_ns != kNoTime) timeline.spans.push_back(span);
  }
  return timeline;
}

std::uint64_t Times::size_bytes() const noexcept {
  return sizeof(*this) + iterations_.capacity() * sizeof(IterationSpan) + spans_.capacity() * sizeof(Span) +
         graphs_.capacity() * sizeof(GraphCall);
}

}  // namespace weir::cpu
