// Small random timelines that have everything that is awkward: commands without times or without length, equal times,
// submissions that are missing or too late, unknown queues, copy engines, host functions. Times lie within kHorizon, so
// that a test can look at every nanosecond.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>

#include "measure/timeline.h"

namespace weir::test {

inline constexpr std::int64_t kHorizon = 300;

class RandomTimeline {
 public:
  explicit RandomTimeline(std::uint64_t seed) : random_(seed) {}

  std::int64_t below(std::int64_t end) { return std::uniform_int_distribution<std::int64_t>(0, end - 1)(random_); }
  bool one_in(std::int64_t count) { return below(count) == 0; }

  Span span(std::int64_t longest) {
    Span made;
    made.stream = static_cast<std::uint16_t>(below(4));
    made.kind = static_cast<SpanKind>(below(5));
    made.name = one_in(8) ? kNoName : static_cast<std::uint32_t>(below(4));
    made.queue = one_in(5)                                  ? kNoQueue
                 : made.kind == SpanKind::copy && one_in(2) ? kCopyQueues + static_cast<std::int32_t>(below(2))
                                                            : static_cast<std::int32_t>(below(3));
    if (one_in(15)) return made;
    made.started_ns = below(kHorizon - longest);
    made.ended_ns = made.started_ns + below(longest);
    if (!one_in(4)) made.submitted_ns = made.started_ns - below(60) + (one_in(9) ? 30 : 0);
    if (one_in(2)) made.accepted_ns = made.started_ns - below(30) + (one_in(9) ? 20 : 0);
    if (one_in(5)) made.enqueued_ns = made.started_ns - below(80);
    if (one_in(3)) made.launched_ns = made.started_ns - below(9);
    if (!one_in(3)) made.seen_ns = made.ended_ns + below(40);
    return made;
  }

  // Sorted by start as importers give it in half of the cases.
  Timeline timeline(std::int64_t most, std::int64_t longest) {
    Timeline made;
    made.source = "random";
    const std::int64_t count = below(most + 1);
    for (std::int64_t i = 0; i < count; ++i) made.spans.push_back(span(longest));
    if (one_in(2))
      std::sort(made.spans.begin(), made.spans.end(),
                [](const Span& a, const Span& b) { return a.started_ns < b.started_ns; });
    return made;
  }

 private:
  std::mt19937_64 random_;
};

// A command with what most tests say of one.
inline Span command(SpanKind kind, std::uint16_t stream, std::int64_t started, std::int64_t ended,
                    std::int32_t queue = kNoQueue, std::int64_t submitted = kNoTime) {
  Span made;
  made.kind = kind;
  made.stream = stream;
  made.queue = queue;
  made.submitted_ns = submitted;
  made.started_ns = started;
  made.ended_ns = ended;
  return made;
}

// Whether it runs in the nanosecond that begins at `ns`.
inline bool runs_at(const Span& span, std::int64_t ns) {
  return span.started_ns != kNoTime && span.started_ns <= ns && ns < span.ended_ns;
}

}  // namespace weir::test
