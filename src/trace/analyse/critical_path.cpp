#include "trace/analyse/critical_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "trace/device_spans.h"
#include "trace/intervals.h"

namespace weir {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;
// Queues and events hand over within this time; a command that starts later was not held by the one that ended before.
constexpr std::uint64_t kHandover = 20'000;
// A thread that was outside the driver for longer may have been woken by another thread.
constexpr std::uint64_t kThreadHandover = 50'000;
// Commands of one stream should not overlap. They may where a source reports a hardware queue as a stream; the one that
// held the next is then a few places back.
constexpr int kMaxBack = 8;

PathResource resource_of(SpanKind kind) {
  switch (kind) {
    case SpanKind::kernel:
      return PathResource::compute;
    case SpanKind::collective:
      return PathResource::communication;
    case SpanKind::copy:
    case SpanKind::memset:
      return PathResource::copy;
    case SpanKind::host:
      break;
  }
  return PathResource::host;
}

struct Moment {
  std::int64_t ns = 0;
  std::int64_t ended_ns = 0;  // of the command
  std::uint32_t index = 0;
};

void sort_moments(std::vector<Moment>& moments) {
  std::sort(moments.begin(), moments.end(), [](const Moment& a, const Moment& b) {
    return a.ns != b.ns ? a.ns < b.ns : a.ended_ns != b.ended_ns ? a.ended_ns < b.ended_ns : a.index < b.index;
  });
}

// The last moment at or before `ns`.
const Moment* last_until(const std::vector<Moment>& moments, std::int64_t ns) {
  const auto after =
      std::upper_bound(moments.begin(), moments.end(), ns, [](std::int64_t t, const Moment& m) { return t < m.ns; });
  return after == moments.begin() ? nullptr : &*(after - 1);
}

// Finds the last element at or before a position that is not done, where what is done stays so. Remembers how far it
// came: where all elements have the same time, each search would otherwise pass all that are done.
class LastLeft {
 public:
  explicit LastLeft(std::size_t count = 0) : before_(count + 1) { std::iota(before_.begin(), before_.end(), 0U); }

  // Of the first `end` elements; kNone where all are done.
  template <class IsDone>
  std::uint32_t find(std::size_t end, const IsDone& is_done) {
    std::size_t found = end;
    while (found > 0 && (before_[found] != found || is_done(found - 1))) found = step(found);
    while (end > found) {
      const std::size_t next = step(end);
      before_[end] = static_cast<std::uint32_t>(found);
      end = next;
    }
    return found == 0 ? kNone : static_cast<std::uint32_t>(found - 1);
  }

 private:
  std::size_t step(std::size_t at) const { return before_[at] != at ? before_[at] : at - 1; }
  std::vector<std::uint32_t> before_;  // of each count of elements, a smaller one to go on with; itself: not known
};

class Walk {
 public:
  explicit Walk(const Timeline& timeline) : timeline_(timeline), order_(timed_by_start(timeline)) {}

  std::optional<CriticalPath> path() {
    if (order_.empty()) return std::nullopt;
    index();
    first_ns_ = timeline_.spans[order_.front()].started_ns;
    std::uint32_t last = order_.front();
    for (const std::uint32_t i : order_)
      if (timeline_.spans[i].ended_ns > timeline_.spans[last].ended_ns) last = i;
    cursor_ = timeline_.spans[last].ended_ns;
    path_.span_ns = length_between(first_ns_, cursor_);
    // Each round ends on a command, call or submission that has not been visited, so the number of rounds is bounded by
    // theirs.
    span_ = last;
    while (cursor_ > first_ns_ && (span_ != kNone || call_ != kNoCall || submission_ != kNone)) {
      if (span_ != kNone)
        leave_span();
      else if (call_ != kNoCall)
        leave_call();
      else
        leave_submission();
    }
    spend(PathResource::unknown, first_ns_, kNone, kNoCall);
    finish();
    return std::move(path_);
  }

 private:
  void index() {
    const std::size_t count = timeline_.spans.size();
    before_on_stream_.assign(count, kNone);
    before_on_queue_.assign(count, kNone);
    is_span_visited_.assign(count, false);
    is_submission_visited_.assign(count, false);
    is_call_visited_.assign(timeline_.calls.size(), false);
    last_of_call_.assign(timeline_.calls.size(), kNone);
    std::vector<std::uint32_t> last_on_stream(std::size_t{UINT16_MAX} + 1, kNone), on_queues;
    for (const std::uint32_t i : order_) {
      const Span& span = timeline_.spans[i];
      before_on_stream_[i] = std::exchange(last_on_stream[span.stream], i);
      if (span.queue != kNoQueue) on_queues.push_back(i);
      ends_.push_back({span.ended_ns, span.ended_ns, i});
      if (span.seen_ns != kNoTime) seen_.push_back({span.seen_ns, span.ended_ns, i});
      if (span.submitted_ns != kNoTime) submissions_.push_back({span.submitted_ns, span.ended_ns, i});
      if (span.call < last_of_call_.size()) last_of_call_[span.call] = i;
    }
    // Queues are in order, so commands left theirs in the order in which they had entered it.
    std::stable_sort(on_queues.begin(), on_queues.end(), [&](std::uint32_t a, std::uint32_t b) {
      const auto key = [&](const Span& span) {
        return std::tuple(span.queue, left_queue_ns(span), handed_over_ns(span));
      };
      return key(timeline_.spans[a]) < key(timeline_.spans[b]);
    });
    for (std::size_t i = 1; i < on_queues.size(); ++i)
      if (timeline_.spans[on_queues[i - 1]].queue == timeline_.spans[on_queues[i]].queue)
        before_on_queue_[on_queues[i]] = on_queues[i - 1];
    usual_gap_ns_ = usual_gap();
    for (std::uint32_t i = 0; i < timeline_.calls.size(); ++i)
      if (is_timed(timeline_.calls[i])) call_ends_.push_back({timeline_.calls[i].ended_ns, 0, i});
    for (std::vector<Moment>* moments : {&ends_, &seen_, &submissions_, &call_ends_}) sort_moments(*moments);
    calls_left_ = LastLeft(timeline_.calls.size());
    submissions_left_ = LastLeft(submissions_.size());
    dependencies_ = timeline_.dependencies;
    std::stable_sort(dependencies_.begin(), dependencies_.end(),
                     [](const Dependency& a, const Dependency& b) { return a.after < b.after; });
  }

  // What starts later than this after all that is known to hold it was held by something else. Where gaps are exact,
  // four times the least time that a command took to start after its submission and the end of the one before it on
  // its stream. Empty where waits are recorded and gaps are not exact: nothing can be concluded then.
  std::optional<std::uint64_t> usual_gap() const {
    if (!timeline_.has_dependencies) return kHandover;
    if (!timeline_.has_exact_gaps) return std::nullopt;
    std::uint64_t least = kHandover;
    for (const std::uint32_t i : order_) {
      const Span& span = timeline_.spans[i];
      std::int64_t ready = handed_over_ns(span);
      if (before_on_stream_[i] != kNone) ready = std::max(ready, timeline_.spans[before_on_stream_[i]].ended_ns);
      if (ready != kNoTime && ready <= span.started_ns) least = std::min(least, distance_ns(ready, span.started_ns));
    }
    return std::min(kHandover, 4 * least);
  }

  // Assigns the path from `from` to the cursor to `resource`, and moves the cursor back.
  void spend(PathResource resource, std::int64_t from, std::uint32_t span, std::uint32_t call) {
    from = std::max(from, first_ns_);
    if (from >= cursor_) return;
    const auto took = length_between(from, cursor_);
    path_.ns[static_cast<std::size_t>(resource)] += took;
    if (call != kNoCall && resource == PathResource::host) {
      path_.in_calls_ns += took;
      add_name(calls_, timeline_.calls[call].name, resource, took);
    } else if (span != kNone && resource == resource_of(timeline_.spans[span].kind)) {
      add_name(names_, timeline_.spans[span].name, resource, took);
    }
    keep_worst(path_.longest, {resource, from, cursor_, span, call}, kMaxPathSteps,
               [](const PathStep& a, const PathStep& b) {
                 return distance_ns(a.from_ns, a.to_ns) > distance_ns(b.from_ns, b.to_ns);
               });
    cursor_ = from;
  }

  using Names = std::unordered_map<std::uint64_t, PathName>;
  static void add_name(Names& names, std::uint32_t name, PathResource resource, double took) {
    PathName& entry = names[std::uint64_t{name} << 8 | static_cast<std::uint64_t>(resource)];
    entry.name = name;
    entry.resource = resource;
    ++entry.steps;
    entry.total_ns += took;
  }

  bool can_visit(std::uint32_t span) const {
    return span < is_span_visited_.size() && !is_span_visited_[span] && is_timed(timeline_.spans[span]) &&
           timeline_.spans[span].started_ns <= cursor_;
  }

  // The command that the stream had to finish before the one that starts at the cursor.
  std::uint32_t stream_predecessor(std::uint32_t span) const {
    const std::uint32_t nearest = before_on_stream_[span];
    std::uint32_t at = nearest;
    for (int back = 0; at != kNone && back < kMaxBack; ++back, at = before_on_stream_[at])
      if (timeline_.spans[at].ended_ns <= cursor_) return at;
    return nearest;
  }

  // Something that had to happen before a command could start.
  struct Release {
    std::uint32_t span = kNone;
    std::int64_t ns = INT64_MIN;
    bool is_queue = false;
  };

  // The last of what is known to have held the command: its stream, its dependencies, its queue.
  Release last_release(std::uint32_t current) const {
    const Span& span = timeline_.spans[current];
    Release last;
    const auto offer = [&](std::uint32_t candidate, std::int64_t ns, bool is_queue) {
      ns = std::min(ns, cursor_);
      if (last.span == kNone || ns > last.ns) last = {candidate, ns, is_queue};
    };
    const auto offer_end = [&](std::uint32_t candidate, bool is_queue) {
      if (can_visit(candidate)) offer(candidate, timeline_.spans[candidate].ended_ns, is_queue);
    };
    offer_end(stream_predecessor(current), false);
    auto dependency = std::lower_bound(dependencies_.begin(), dependencies_.end(), current,
                                       [](const Dependency& a, std::uint32_t after) { return a.after < after; });
    for (; dependency != dependencies_.end() && dependency->after == current; ++dependency)
      offer_end(dependency->before, false);
    const std::uint32_t queued = before_on_queue_[current];
    if (queued == kNone || is_span_visited_[queued] || timeline_.spans[queued].stream == span.stream) return last;
    const Span& before = timeline_.spans[queued];
    const auto has_just_passed = [&](std::int64_t ns, std::int64_t until) {
      return ns <= until && distance_ns(ns, until) <= kHandover &&
             (span.submitted_ns == kNoTime || span.submitted_ns <= ns);
    };
    // Some devices keep a queue until its command has ended. Others let the next one pass as soon as it was launched,
    // and what it was launched for is what both of them waited for.
    if (has_just_passed(before.ended_ns, cursor_)) return offer_end(queued, true), last;
    const std::int64_t left = left_queue_ns(before);
    if (left <= cursor_ && has_just_passed(left, std::min(cursor_, left_queue_ns(span)))) offer(queued, left, true);
    return last;
  }

  void leave_span() {
    const std::uint32_t current = std::exchange(span_, kNone);
    const Span& span = timeline_.spans[current];
    is_span_visited_[current] = true;
    const bool has_run = cursor_ >= span.ended_ns || cursor_ > span.started_ns;  // otherwise the path met its launch
    path_.steps += has_run ? 1 : 0;
    path_.commands += has_run ? 1 : 0;
    spend(resource_of(span.kind), span.started_ns, current, kNoCall);
    if (cursor_ <= first_ns_) return;
    const Release last = last_release(current);
    // The call had returned, or at least begun, before the command started.
    const std::int64_t released =
        span.accepted_ns != kNoTime && span.accepted_ns <= cursor_ ? span.accepted_ns : span.submitted_ns;
    const bool is_submission_known = released != kNoTime && !is_submission_visited_[current];
    const bool is_submission_last =
        is_submission_known && (last.span == kNone || std::min(released, cursor_) > last.ns);
    const std::int64_t ready = is_submission_last ? released : last.ns;
    if (const std::uint32_t guess = unrecorded_wait(span, ready); guess != kNone) {
      ++path_.inferred_steps;
      spend(PathResource::waiting, timeline_.spans[guess].ended_ns, current, kNoCall);
      span_ = guess;
      return;
    }
    if (is_submission_last) {
      spend(PathResource::launch, released, current, kNoCall);
      is_submission_visited_[current] = true;
      if (span.call >= timeline_.calls.size() || !is_timed(timeline_.calls[span.call]))
        submission_ = current;
      else if (is_call_visited_[span.call])
        go_before(span.call);  // a copy whose call waited for it: the path came from that call
      else
        call_ = span.call;
      return;
    }
    if (last.span == kNone) return;
    path_.queue_steps += last.is_queue ? 1 : 0;
    spend(PathResource::waiting, last.ns, current, kNoCall);
    span_ = last.span;
  }

  // For a command that had left its queue and then waited for room: blocks of a command that still runs had ended.
  std::uint32_t made_room(const Span& span) const {
    constexpr int kMaxRunning = 256;
    if (!timeline_.has_exact_gaps || span.launched_ns == kNoTime || cursor_ < span.started_ns ||
        distance_ns(span.launched_ns, cursor_) <= *usual_gap_ns_)
      return kNone;
    auto at = std::lower_bound(order_.begin(), order_.end(), cursor_,
                               [&](std::uint32_t i, std::int64_t ns) { return timeline_.spans[i].started_ns < ns; });
    std::uint32_t longest = kNone;
    for (int back = 0; at != order_.begin() && back < kMaxRunning; ++back) {
      const Span& other = timeline_.spans[*--at];
      if (other.ended_ns > cursor_ && other.kind == span.kind && can_visit(*at)) longest = *at;
    }
    return longest;
  }

  // If a command had been ready for long, as far as is known, and one of another stream ended right before it started,
  // it waited for that one: because of an event that the source does not record, or for room on the device.
  std::uint32_t unrecorded_wait(const Span& span, std::int64_t ready_ns) const {
    if (!usual_gap_ns_ || distance_ns(ready_ns, cursor_) <= *usual_gap_ns_) return kNone;
    const Moment* ended = last_until(ends_, cursor_);
    for (int back = 0; ended != nullptr && back < kMaxBack; ++back) {
      if (ended->ns <= ready_ns || distance_ns(ended->ns, cursor_) > *usual_gap_ns_) break;
      if (timeline_.spans[ended->index].stream != span.stream && can_visit(ended->index)) return ended->index;
      ended = ended == ends_.data() ? nullptr : ended - 1;
    }
    return made_room(span);
  }

  // The command that a call waited for, if it waited.
  std::uint32_t waited_for(std::uint32_t index) const {
    const HostCall& call = timeline_.calls[index];
    const auto is_within = [&](std::uint32_t span) {
      return can_visit(span) && timeline_.spans[span].ended_ns > call.started_ns &&
             timeline_.spans[span].ended_ns <= call.ended_ns;
    };
    if (call.kind == CallKind::copy) {
      const std::uint32_t own = last_of_call_[index];
      return own != kNone && is_within(own) ? own : kNone;
    }
    if (call.kind != CallKind::synchronize) return kNone;
    if (const Moment* seen = last_until(seen_, call.ended_ns); seen != nullptr && is_within(seen->index))
      return seen->index;
    const Moment* ended = last_until(ends_, call.ended_ns);
    return ended != nullptr && is_within(ended->index) ? ended->index : kNone;
  }

  void leave_call() {
    const std::uint32_t current = std::exchange(call_, kNoCall);
    const HostCall& call = timeline_.calls[current];
    is_call_visited_[current] = true;
    ++path_.steps;
    if (call.ended_ns <= cursor_) {
      if (const std::uint32_t target = waited_for(current); target != kNone) {
        spend(PathResource::host, timeline_.spans[target].ended_ns, kNone, current);
        span_ = target;
        return;
      }
    }
    spend(PathResource::host, call.started_ns, kNone, current);
    go_before(current);
  }

  // What the host did before a call: the thread's previous call, or another thread's that may have woken it.
  void go_before(std::uint32_t current) {
    const HostCall& call = timeline_.calls[current];
    std::uint32_t before = kNoCall;
    const std::uint32_t left =
        calls_left_.find(current, [&](std::size_t i) { return !is_timed(timeline_.calls[i]) || is_call_visited_[i]; });
    if (left != kNone && timeline_.calls[left].process == call.process && timeline_.calls[left].thread == call.thread)
      before = left;
    const std::int64_t idle_from = before == kNoCall ? INT64_MIN : timeline_.calls[before].ended_ns;
    if (idle_from < cursor_ && distance_ns(idle_from, cursor_) > kThreadHandover) {
      const Moment* other = last_until(call_ends_, cursor_);
      for (int back = 0; other != nullptr && other->ns > idle_from && back < kMaxBack; ++back) {
        const HostCall& waker = timeline_.calls[other->index];
        if (waker.process == call.process && waker.thread != call.thread && !is_call_visited_[other->index]) {
          before = other->index;
          break;
        }
        other = other == call_ends_.data() ? nullptr : other - 1;
      }
    }
    // Time before the host's first call in the trace is the host's.
    if (before == kNoCall) return spend(PathResource::host, first_ns_, kNone, kNoCall);
    spend(PathResource::host, timeline_.calls[before].ended_ns, kNone, kNoCall);
    call_ = before;
  }

  // For sources without calls: the host came from its previous submission, or from seeing a command end.
  void leave_submission() {
    const std::uint32_t current = std::exchange(submission_, kNone);
    is_submission_visited_[current] = true;
    spend(PathResource::host, timeline_.spans[current].submitted_ns, kNone, kNoCall);
    if (cursor_ <= first_ns_) return;
    const Moment* submitted = last_until(submissions_, cursor_);
    if (submitted != nullptr) {
      const std::uint32_t left =
          submissions_left_.find(static_cast<std::size_t>(submitted - submissions_.data()) + 1,
                                 [&](std::size_t i) { return is_submission_visited_[submissions_[i].index]; });
      submitted = left == kNone ? nullptr : &submissions_[left];
    }
    const Moment* seen = last_until(seen_, cursor_);
    if (seen != nullptr && can_visit(seen->index) && (submitted == nullptr || seen->ns >= submitted->ns)) {
      spend(PathResource::host, seen->ended_ns, kNone, kNoCall);
      span_ = seen->index;
    } else if (submitted != nullptr) {
      submission_ = submitted->index;
    } else {
      spend(PathResource::host, first_ns_, kNone, kNoCall);
    }
  }

  static std::vector<PathName> largest(const Names& names) {
    std::vector<PathName> list;
    for (const auto& [key, entry] : names) list.push_back(entry);
    std::sort(list.begin(), list.end(), [](const PathName& a, const PathName& b) {
      return a.total_ns != b.total_ns ? a.total_ns > b.total_ns : a.name < b.name;
    });
    if (list.size() > kMaxPathNames) list.resize(kMaxPathNames);
    return list;
  }

  void finish() {
    path_.names = largest(names_);
    path_.calls = largest(calls_);
    if (path_.span_ns > 0)
      for (std::size_t i = 0; i < kPathResources; ++i) path_.share[i] = path_.ns[i] / path_.span_ns;
    path_.known = "order within streams";
    if (timeline_.has_dependencies) path_.known += ", event waits between streams";
    if (!before_on_queue_.empty() && std::any_of(before_on_queue_.begin(), before_on_queue_.end(),
                                                 [](std::uint32_t before) { return before != kNone; }))
      path_.known += ", order on hardware queues";
    if (!timeline_.calls.empty())
      path_.known += ", the host's calls";
    else if (!submissions_.empty())
      path_.known += ", times of submission";
    else
      path_.known += "; nothing of the host";
    if (!timeline_.has_dependencies) path_.known += "; waits between streams are not in the source";
    if (path_.inferred_steps > 0)
      path_.known +=
          fmt::format("{} {} were inferred from what ended right before",
                      timeline_.has_dependencies ? "; waits for room on the device:" : ",", path_.inferred_steps);
  }

  const Timeline& timeline_;
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> before_on_stream_, before_on_queue_, last_of_call_;
  std::vector<Moment> ends_, seen_, submissions_, call_ends_;
  std::vector<Dependency> dependencies_;    // by after
  LastLeft calls_left_, submissions_left_;  // not visited
  std::vector<bool> is_span_visited_, is_submission_visited_, is_call_visited_;
  Names names_, calls_;
  CriticalPath path_;
  std::int64_t first_ns_ = 0, cursor_ = 0;
  std::optional<std::uint64_t> usual_gap_ns_;
  // The current position of the walk: one of these.
  std::uint32_t span_ = kNone, call_ = kNoCall, submission_ = kNone;
};

}  // namespace

const char* to_string(PathResource resource) noexcept {
  constexpr std::array kNames{"compute", "communication", "copy", "host", "launch", "waiting", "unknown"};
  static_assert(kNames.size() == kPathResources);
  return kNames[static_cast<std::size_t>(resource)];
}

std::optional<CriticalPath> critical_path(const Timeline& timeline) { return Walk(timeline).path(); }

}  // namespace weir
