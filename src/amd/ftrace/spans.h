// Builds KFD's spans from the lines of a trace: which call is below which, per thread, and what is known about its end.
// Knows KFD's call chains and what each form of trace can prove; reads no file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "amd/ftrace/kfd_functions.h"
#include "amd/ftrace/line.h"
#include "amd/ftrace/read.h"

namespace weir::ftrace {

// Counts KFD's calls by the evidence they give, in bounded memory for any names. Knows no times and no threads.
class CallCounts {
 public:
  // `is_in_system_call`: the ioctl was already counted when its system call began.
  void count(std::string_view name, KfdPart part, bool is_in_system_call);
  // A system call with KFD's number: "create_queue".
  void count_system_call(std::string_view ioctl);
  KfdCalls& calls() { return calls_; }
  // Includes names, most frequent first.
  KfdCalls finish();

 private:
  using Names = std::unordered_map<std::string, std::uint64_t>;
  static void count_name(Names& names, std::string_view name);

  KfdCalls calls_;
  Names ioctls_, kcq_names_, unknown_kfd_;
};

class SpanBuilder {
 public:
  SpanBuilder(KfdSink& sink, FtraceCounters& counters) : sink_(sink), counters_(counters) {}

  // Takes any line that belongs to a task. `number`: the line number, from 1.
  void take(const TraceLine& line, std::uint64_t number);
  // Events are missing here: open calls may have ended and begun again unseen, so they are given up.
  void lose();
  // Ends the trace: open calls have no end, and the counters receive their calls.
  void finish();

 private:
  enum class Style : std::uint8_t { function, graph, probe, text, system_call };

  struct Frame {
    std::size_t name = 0;  // hash
    KfdFunction function;
    Style style = Style::function;
    bool has_span = false;
    bool has_below = false;  // a call below it was seen, at seen_ns
    bool is_fresh = true;    // nothing was seen since it was entered
    bool is_apart = false;   // it is not known to be below the frames before it
    int indent = 0;          // graph
    // When it was entered. Its span also starts there, except for a preemption, which starts earlier.
    std::int64_t entered_ns = kNoTime;
    std::int64_t sure_ns = kNoTime;  // its span has started by this time
    std::int64_t seen_ns = kNoTime;
    std::int64_t below_ns = 0;  // graph: how long the calls directly below took
    std::int64_t resolution_ns = 0;
    KfdSpan span;
  };

  // The entry of pm_send_unmap_queue.
  struct UnmapSent {
    std::int64_t at_ns = kNoTime;
    std::int64_t below_ns = 0;  // graph: the duration of its caller's earlier calls
  };

  // A span cut short by lost events: the next function of its verb at a deeper level may belong to the same call.
  struct Cut {
    KfdVerb verb = KfdVerb::ioctl;
    int level = -1;
  };

  struct Thread {
    std::vector<Frame> frames;        // includes frames without a role once one with a role is open
    std::optional<UnmapSent> sent;    // until the wait for its fence
    std::int64_t sent_below_ns = -1;  // for the open wait; -1: no unmap was seen
    std::optional<KfdSpan> preempt;   // in a graph without times: bounded when its unmap closes
  };

  // span_forms.cpp: one per form of trace.
  void on_function(Thread& thread, const TraceLine& line, const KfdFunction& function);
  void on_graph_call(Thread& thread, const TraceLine& line, const KfdFunction& function);
  void on_graph_close(Thread& thread, const TraceLine& line);
  void on_probe(Thread& thread, const TraceLine& line, const KfdFunction& function);
  void on_probe_return(Thread& thread, const TraceLine& line, std::string_view name);
  void on_event(Thread& thread, const TraceLine& line);
  void on_system_call(Thread& thread, const TraceLine& line);
  void on_system_call_return(Thread& thread, const TraceLine& line);
  // span_texts.cpp
  bool on_text(Thread& thread, const TraceLine& line);

  std::int64_t key_of(const TraceLine& line) const;
  void on_task_switch(const TraceLine& line);
  Frame& push(Thread& thread, const TraceLine& line, std::string_view name, const KfdFunction& function, Style style);
  static void begin_preempt(Thread& thread, Frame& frame, const TraceLine& line);
  // Ends the frames from `index` on, innermost first; they ended by `now` (kNoTime: unknown).
  void pop_to(Thread& thread, std::size_t index, std::int64_t now);
  void end_bounded(Thread& thread, Frame& frame, std::int64_t now);
  // Frame `index` returned at `line`; the frames above it have ended by then.
  void end_exact(Thread& thread, std::size_t index, const TraceLine& line, std::int64_t duration_ns);
  // The wait for the fence returned.
  void end_preempt(Thread& thread, Frame& frame, const TraceLine& line, std::int64_t duration_ns);
  // The unmap is over, and so are its sent request and the preemption that waits for its duration.
  void end_unmap(Thread& thread, std::int64_t duration_ns);
  void set_result(Thread& thread, Frame& frame, std::optional<std::int64_t> result);
  // Notes that the line is below frames 0 to `count` - 1.
  static void touch(Thread& thread, std::size_t count, std::int64_t now);
  // Whether another form of trace shows the same entry again.
  static bool is_repeated(const Thread& thread, const TraceLine& line);
  // The first frame that must have ended when `function` is entered without a visible caller; the frames before it may
  // be its callers.
  static std::size_t first_ended(const Thread& thread, const KfdFunction& function);
  // For a function entered without a known caller: a frame apart from the others, but below a span of the same verb.
  Frame& push_apart(Thread& thread, const TraceLine& line, std::string_view name, const KfdFunction& function,
                    Style style);
  // Counts a part of a create with that create, and adds the part's arguments to it.
  static void note_part(Thread& thread, const TraceLine& line, const KfdFunction& function);
  static Frame* open_span(Thread& thread, KfdVerb verb);
  static bool is_in_system_call(const Thread& thread);
  // Whether this may continue a call that was given up, which is already counted; forgets calls that have ended.
  bool continues_cut(std::int64_t key, const KfdFunction& function);
  KfdSpan span_of(const TraceLine& line, KfdVerb verb) const;
  void emit(const KfdSpan& span);

  KfdSink& sink_;
  FtraceCounters& counters_;
  CallCounts counts_;
  KnownFunctions functions_;
  std::unordered_map<std::int64_t, Thread> threads_;        // those with open calls
  std::unordered_map<std::int64_t, std::vector<Cut>> cut_;  // by thread
  std::unordered_map<int, int> task_of_cpu_;                // from the task switches of graphs
  std::vector<KfdSpan> nameless_;  // until the first task switch of their CPU identifies the task
  std::uint64_t number_ = 0;
};

// Sets values from `text` that the span does not have yet.
void annotate(KfdSpan& span, std::string_view text);

}  // namespace weir::ftrace
