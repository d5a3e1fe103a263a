#include "amd/ftrace/spans.h"

#include <algorithm>
#include <functional>

namespace weir::ftrace {
namespace {

constexpr std::size_t kDeepest = 256;   // function_graph itself stops at 50
constexpr std::size_t kThreads = 4096;  // threads with open calls at the same time
constexpr std::size_t kNameless = 4096;
// Allowed difference between a stamp and a graph's duration, because an interrupt may come in between.
constexpr std::int64_t kStampSlack = 20'000;
constexpr std::int64_t kLongestSpanNs = INT64_MAX / 4;  // keeps sums of hostile durations from overflowing

bool is_eviction(const KfdFunction& function) {
  return function.verb == KfdVerb::evict || function.verb == KfdVerb::restore;
}

// Whether `open` must have ended when its thread enters `function`, according to KFD's call chain.
bool ends(const KfdFunction& function, const KfdFunction& open) {
  // Memory pressure can evict from within any allocating function, so an eviction ends only other evictions.
  const bool is_anywhere = is_eviction(function) && function.level < 40;
  return open.level >= function.level && (!is_anywhere || is_eviction(open));
}

}  // namespace

KfdSpan SpanBuilder::span_of(const TraceLine& line, KfdVerb verb) const {
  KfdSpan span;
  span.verb = verb;
  span.pid = line.pid;
  span.process = line.tgid;
  span.cpu = line.cpu;
  span.started_ns = line.at_ns;
  span.line = number_;
  return span;
}

// Threads are identified by pid. Idle tasks share pid 0, and a graph without tasks has only CPUs; both go by CPU.
std::int64_t SpanBuilder::key_of(const TraceLine& line) const {
  return line.pid > 0 ? line.pid : -2 - static_cast<std::int64_t>(line.cpu);
}

void SpanBuilder::take(const TraceLine& read, std::uint64_t number) {
  number_ = number;
  if (read.kind == LineKind::task_switch) return on_task_switch(read);
  TraceLine line = read;
  if (line.is_graph && line.pid < 0)
    if (const auto task = task_of_cpu_.find(line.cpu); task != task_of_cpu_.end()) line.pid = task->second;
  if (line.pid < 0) ++counters_.without_pid;

  const bool is_call = line.kind == LineKind::function || line.kind == LineKind::call || line.kind == LineKind::leaf ||
                       (line.kind == LineKind::probe && line.offset <= 16);
  const std::int64_t key = key_of(line);
  const auto known = threads_.find(key);
  KfdFunction function;
  if (is_call) {
    function = functions_.of(line.name);
    if (known != threads_.end() && is_repeated(known->second, line)) {
      Frame& top = known->second.frames.back();
      Frame* const span = top.function.verb ? open_span(known->second, *top.function.verb) : nullptr;
      return annotate(span ? span->span : top.span, line.text);
    }
    // Most lines are functions without a role, in threads that do nothing in KFD.
    const bool matters = function.level >= 0 || known != threads_.end();
    counts_.calls().known_verbs += function.verb ? 1 : 0;
    counts_.count(line.name, function.part, known != threads_.end() && is_in_system_call(known->second));
    if (!matters || line.is_interrupt) return;
  } else if (known == threads_.end() && (line.kind == LineKind::close || line.kind == LineKind::probe_return ||
                                         line.kind == LineKind::syscall_return)) {
    const std::string_view name = line.kind == LineKind::syscall_return ? std::string_view{} : line.name;
    if (!name.empty() && function_of(name).verb) ++counters_.unmatched_returns;
    return;
  }
  if (known == threads_.end() && threads_.size() >= kThreads) lose();
  Thread& thread = threads_[key];
  switch (line.kind) {
    case LineKind::function:
      on_function(thread, line, function);
      break;
    case LineKind::call:
    case LineKind::leaf:
      on_graph_call(thread, line, function);
      break;
    case LineKind::close:
      on_graph_close(thread, line);
      break;
    case LineKind::probe:
      if (is_call) on_probe(thread, line, function);
      break;
    case LineKind::probe_return:
      on_probe_return(thread, line, line.name);
      break;
    case LineKind::event:
      if (!on_text(thread, line)) on_event(thread, line);
      break;
    case LineKind::syscall:
      on_system_call(thread, line);
      break;
    case LineKind::syscall_return:
      on_system_call_return(thread, line);
      break;
    default:
      break;
  }
  if (thread.frames.empty() && !thread.preempt && !thread.sent) threads_.erase(key);
}

void SpanBuilder::emit(const KfdSpan& span) {
  if (span.pid < 0 && span.cpu >= 0 && nameless_.size() < kNameless)
    nameless_.push_back(span);
  else
    sink_.on(span);
}

void SpanBuilder::on_task_switch(const TraceLine& line) {
  // The first switch on a CPU shows which task ran there before it.
  if (!task_of_cpu_.contains(line.cpu)) {
    TraceLine nameless;
    nameless.cpu = line.cpu;
    if (const auto found = threads_.find(key_of(nameless)); found != threads_.end() && line.pid > 0) {
      Thread thread = std::move(found->second);
      threads_.erase(found);
      for (Frame& frame : thread.frames) frame.span.pid = line.pid;
      threads_[line.pid] = std::move(thread);
    }
    std::vector<KfdSpan> others;
    for (KfdSpan& span : nameless_) {
      if (span.cpu == line.cpu) {
        span.pid = line.pid;
        sink_.on(span);
      } else {
        others.push_back(span);
      }
    }
    nameless_ = std::move(others);
  }
  if (task_of_cpu_.size() < kThreads || task_of_cpu_.contains(line.cpu)) task_of_cpu_[line.cpu] = line.next_pid;
}

SpanBuilder::Frame& SpanBuilder::push(Thread& thread, const TraceLine& line, std::string_view name,
                                      const KfdFunction& function, Style style) {
  if (thread.frames.size() >= kDeepest) pop_to(thread, 0, kNoTime);
  Frame frame;
  frame.name = std::hash<std::string_view>{}(name);
  frame.function = function;
  frame.style = style;
  frame.indent = line.indent;
  frame.resolution_ns = line.resolution_ns;
  frame.entered_ns = frame.sure_ns = line.at_ns;
  frame.span = span_of(line, function.verb.value_or(KfdVerb::ioctl));
  // Workers evict on behalf of other processes, which only texts name; this applies to all calls below the eviction.
  if (!open_span(thread, KfdVerb::ioctl)) {
    const Frame* eviction = open_span(thread, KfdVerb::evict);
    if (!eviction) eviction = open_span(thread, KfdVerb::restore);
    if (eviction) frame.span.process = eviction->span.process;
    if (function.verb == KfdVerb::evict || function.verb == KfdVerb::restore) frame.span.process.reset();
  }
  // The outermost function of a verb becomes the span; those below it are its parts.
  frame.has_span = function.verb && !open_span(thread, *function.verb);
  if (frame.has_span && !cut_.empty() && continues_cut(key_of(line), function)) frame.has_span = false;
  if (function.part == KfdPart::unmap) thread.sent.reset();
  if (function.part == KfdPart::unmap_sent)
    thread.sent = UnmapSent{line.at_ns, thread.frames.empty() ? 0 : thread.frames.back().below_ns};
  if (function.part == KfdPart::fence_wait) {
    begin_preempt(thread, frame, line);
    thread.sent.reset();
  }
  if (!thread.frames.empty()) thread.frames.back().is_fresh = false;
  thread.frames.push_back(std::move(frame));
  return thread.frames.back();
}

// The wait for the fence carries the preemption's span, which began when the unmap was sent. If the trace lacks that
// call, the span began between the unmap and the wait.
void SpanBuilder::begin_preempt(Thread& thread, Frame& frame, const TraceLine& line) {
  const auto unmap = std::find_if(thread.frames.rbegin(), thread.frames.rend(),
                                  [](const Frame& open) { return open.function.part == KfdPart::unmap; });
  thread.sent_below_ns = thread.sent ? thread.sent->below_ns : -1;
  if (!thread.sent && unmap == thread.frames.rend()) return;
  frame.has_span = true;
  frame.span.verb = KfdVerb::preempt;
  frame.span.started_ns = thread.sent ? thread.sent->at_ns : unmap->span.started_ns;
  frame.sure_ns = thread.sent ? frame.span.started_ns : line.at_ns;
  frame.has_below = thread.sent && line.at_ns != kNoTime;
  frame.seen_ns = line.at_ns;
}

std::size_t SpanBuilder::first_ended(const Thread& thread, const KfdFunction& function) {
  const auto found = std::find_if(thread.frames.begin(), thread.frames.end(),
                                  [&](const Frame& frame) { return ends(function, frame.function); });
  return static_cast<std::size_t>(found - thread.frames.begin());
}

SpanBuilder::Frame& SpanBuilder::push_apart(Thread& thread, const TraceLine& line, std::string_view name,
                                            const KfdFunction& function, Style style) {
  pop_to(thread, first_ended(thread, function), line.at_ns);
  if (function.verb)
    if (const Frame* const outer = open_span(thread, *function.verb))
      touch(thread, static_cast<std::size_t>(outer - thread.frames.data()) + 1, line.at_ns);
  Frame& frame = push(thread, line, name, function, style);
  frame.is_apart = true;
  return frame;
}

bool SpanBuilder::is_repeated(const Thread& thread, const TraceLine& line) {
  if (thread.frames.empty()) return false;
  const Frame& top = thread.frames.back();
  const Style style = line.kind == LineKind::function ? Style::function
                      : line.kind == LineKind::probe  ? Style::probe
                                                      : Style::graph;
  return top.is_fresh && top.style != style && top.name == std::hash<std::string_view>{}(line.name);
}

SpanBuilder::Frame* SpanBuilder::open_span(Thread& thread, KfdVerb verb) {
  for (Frame& frame : thread.frames)
    if (frame.has_span && frame.span.verb == verb) return &frame;
  return nullptr;
}

bool SpanBuilder::is_in_system_call(const Thread& thread) {
  return !thread.frames.empty() && thread.frames[0].style == Style::system_call;
}

void SpanBuilder::touch(Thread& thread, std::size_t count, std::int64_t now) {
  for (std::size_t i = count; i-- > 0;) {
    Frame& frame = thread.frames[i];
    frame.is_fresh = false;
    frame.has_below = true;
    frame.seen_ns = now;
    if (frame.is_apart) break;
  }
}

void SpanBuilder::note_part(Thread& thread, const TraceLine& line, const KfdFunction& function) {
  Frame* const create = open_span(thread, KfdVerb::create);
  if (!create) return;
  KfdSpan& span = create->span;
  const auto add = [](std::uint16_t& count) { count = static_cast<std::uint16_t>(std::min(count + 1, 0xffff)); };
  if (function.part == KfdPart::mqd_allocate) add(span.mqd_allocations);
  if (function.part == KfdPart::mqd_init) add(span.mqd_inits);
  if (function.part == KfdPart::doorbell_allocate) add(span.doorbell_allocations);
  if (function.part >= KfdPart::mqd_allocate && function.part <= KfdPart::doorbell_allocate) annotate(span, line.text);
}

void SpanBuilder::pop_to(Thread& thread, std::size_t index, std::int64_t now) {
  while (thread.frames.size() > index) {
    Frame frame = std::move(thread.frames.back());
    thread.frames.pop_back();
    end_bounded(thread, frame, now);
  }
}

void SpanBuilder::end_unmap(Thread& thread, std::int64_t duration_ns) {
  thread.sent.reset();
  if (!thread.preempt) return;
  if (duration_ns >= thread.preempt->duration_ns) thread.preempt->longest_ns = duration_ns;
  emit(*thread.preempt);
  thread.preempt.reset();
}

void SpanBuilder::end_bounded(Thread& thread, Frame& frame, std::int64_t now) {
  if (frame.function.part == KfdPart::unmap) end_unmap(thread, -1);
  if (!frame.has_span) return;
  KfdSpan& span = frame.span;
  const std::int64_t start = span.started_ns;
  const bool is_ordered = start != kNoTime && (!frame.has_below || frame.seen_ns >= std::max(start, frame.sure_ns));
  if (start == kNoTime) {
    if (frame.below_ns > 0) span.duration_ns = frame.below_ns;
  } else if (frame.has_below && is_ordered && frame.sure_ns != kNoTime) {
    span.ended_ns = frame.seen_ns;
    // Stamps are rounded, so the bound is reduced by the resolution to hold.
    span.duration_ns = std::max<std::int64_t>(0, frame.seen_ns - frame.sure_ns - frame.resolution_ns);
  }
  span.end = span.duration_ns >= 0 ? EndKind::at_least : EndKind::unknown;
  const std::int64_t last = frame.has_below ? frame.seen_ns : std::max(start, frame.sure_ns);
  if (now != kNoTime && start != kNoTime && is_ordered && now >= last)
    span.longest_ns = now - start + frame.resolution_ns;
  emit(span);
}

void SpanBuilder::set_result(Thread& thread, Frame& frame, std::optional<std::int64_t> result) {
  if (!result) return;
  const int value = static_cast<int>(static_cast<std::uint32_t>(*result));  // an int, whatever the register's width
  if (frame.has_span) {
    frame.span.result = value;
  } else if (frame.function.verb && value != 0) {
    // A failure of the inner function is a failure of the outer one; a success proves nothing.
    Frame* const outer = open_span(thread, *frame.function.verb);
    if (outer && outer != &frame && !outer->span.result && outer->span.verb == KfdVerb::create)
      outer->span.result = value;
  }
}

void SpanBuilder::end_exact(Thread& thread, std::size_t index, const TraceLine& line, std::int64_t duration_ns) {
  pop_to(thread, index + 1, line.at_ns);
  Frame frame = std::move(thread.frames.back());
  thread.frames.pop_back();
  counters_.has_returns = true;
  // If a graph's duration does not reach back to the entry, it belongs to another call (whose entry was lost), or it
  // excludes sleep (options/sleep-time). Either way this call has ended by now, but its duration is unknown.
  const bool has_both = line.kind == LineKind::close && line.at_ns != kNoTime && frame.entered_ns != kNoTime;
  if (has_both && duration_ns >= 0 && line.at_ns - frame.entered_ns > duration_ns + duration_ns / 64 + kStampSlack)
    return end_bounded(thread, frame, line.at_ns);
  set_result(thread, frame, line.result);
  if (!frame.is_apart) touch(thread, thread.frames.size(), line.at_ns);
  if (duration_ns >= 0 && !thread.frames.empty()) {
    std::int64_t& below_ns = thread.frames.back().below_ns;
    below_ns = std::min(below_ns + duration_ns, kLongestSpanNs);
  }
  if (frame.function.part == KfdPart::unmap) end_unmap(thread, duration_ns);
  if (!frame.has_span) return;
  KfdSpan& span = frame.span;
  if (span.verb == KfdVerb::preempt) return end_preempt(thread, frame, line, duration_ns);
  span.end = EndKind::exact;
  if (duration_ns >= 0) {
    span.duration_ns = duration_ns;
    if (span.started_ns != kNoTime) span.ended_ns = span.started_ns + duration_ns;
  } else if (line.at_ns != kNoTime && span.started_ns != kNoTime) {
    span.ended_ns = line.at_ns;
    if (line.at_ns >= span.started_ns) span.duration_ns = line.at_ns - span.started_ns;
  }
  emit(span);
}

void SpanBuilder::end_preempt(Thread& thread, Frame& frame, const TraceLine& line, std::int64_t duration_ns) {
  KfdSpan& span = frame.span;
  const bool was_sent = thread.sent_below_ns >= 0;
  span.end = was_sent ? EndKind::exact : EndKind::at_least;
  if (span.started_ns == kNoTime) {
    // A graph without times has only the durations of the calls below the unmap; the unmap itself is an upper bound.
    if (thread.preempt) emit(*thread.preempt);
    const std::int64_t below_ns = thread.frames.empty() ? 0 : thread.frames.back().below_ns;
    span.end = EndKind::at_least;
    span.duration_ns = was_sent ? std::max(duration_ns, below_ns - thread.sent_below_ns) : duration_ns;
    thread.preempt = span;
    return;
  }
  // The graph's duration is finer than its stamps.
  const bool has_length = duration_ns >= 0 && frame.entered_ns != kNoTime;
  span.ended_ns = has_length ? frame.entered_ns + duration_ns : line.at_ns;
  if (span.ended_ns >= std::max(span.started_ns, frame.sure_ns)) {
    const std::int64_t whole = span.ended_ns - span.started_ns;
    if (was_sent) {
      span.duration_ns = whole;
    } else {
      span.longest_ns = whole + frame.resolution_ns;
      if (has_length || frame.sure_ns != kNoTime)
        span.duration_ns =
            has_length ? duration_ns : std::max<std::int64_t>(0, span.ended_ns - frame.sure_ns - frame.resolution_ns);
    }
  }
  if (!was_sent && span.duration_ns < 0) span.end = EndKind::unknown;
  emit(span);
}

void SpanBuilder::lose() {
  if (threads_.size() >= kThreads) cut_.clear();
  for (auto& [key, thread] : threads_) {
    for (const Frame& frame : thread.frames) {
      if (!frame.has_span) continue;
      ++counters_.given_up;
      if (frame.span.verb == KfdVerb::preempt) continue;  // its wait is entered only once
      if (cut_.size() < kThreads || cut_.contains(key)) cut_[key].push_back({frame.span.verb, frame.function.level});
    }
    pop_to(thread, 0, kNoTime);
  }
  threads_.clear();
}

bool SpanBuilder::continues_cut(std::int64_t key, const KfdFunction& function) {
  const auto found = cut_.find(key);
  if (found == cut_.end()) return false;
  std::vector<Cut>& cuts = found->second;
  std::erase_if(cuts, [&](const Cut& cut) { return ends(function, {KfdPart::none, cut.verb, cut.level}); });
  const bool continues =
      std::any_of(cuts.begin(), cuts.end(), [&](const Cut& cut) { return cut.verb == function.verb; });
  if (cuts.empty()) cut_.erase(found);
  return continues;
}

void SpanBuilder::finish() {
  for (auto& [key, thread] : threads_) pop_to(thread, 0, kNoTime);
  threads_.clear();
  for (const KfdSpan& span : nameless_) sink_.on(span);
  nameless_.clear();
  counters_.calls = counts_.finish();
}

}  // namespace weir::ftrace
