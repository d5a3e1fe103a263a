// Builds KFD's spans from lines of a trace: which call is below which, thread by thread, and what is known of its end.
// Knows KFD's chains and what each form of trace can prove; reads no file.
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

// Counts KFD's calls by what they are evidence of. Bounded, whatever names a file holds. Knows no times and no threads.
class CallCounts {
 public:
  // `is_in_system_call`: the ioctl was counted when its system call began.
  void count(std::string_view name, KfdPart part, bool is_in_system_call);
  // A system call with KFD's number: "create_queue".
  void count_system_call(std::string_view ioctl);
  KfdCalls& calls() { return calls_; }
  // With names, most frequent first.
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

  // Any line that tells of a task. `number`: of the line, from 1.
  void take(const TraceLine& line, std::uint64_t number);
  // Events are missing from here on: what is open may have ended and begun again unseen, so it is given up.
  void lose();
  // Nothing more comes: what is open has no end, and counters get their calls.
  void finish();

 private:
  enum class Style : std::uint8_t { function, graph, probe, text, system_call };

  struct Frame {
    std::size_t name = 0;  // hash
    KfdFunction function;
    Style style = Style::function;
    bool has_span = false;
    bool has_below = false;  // something was seen below it, at seen_ns
    bool is_fresh = true;    // nothing was seen since it was entered
    bool is_apart = false;   // whether it is below the frames before it was not seen
    int indent = 0;          // graph
    // When it was entered. Its span starts there too, but that of a preemption, which starts earlier.
    std::int64_t entered_ns = kNoTime;
    std::int64_t sure_ns = kNoTime;  // from here on at the latest its span is under way
    std::int64_t seen_ns = kNoTime;
    std::int64_t below_ns = 0;  // graph: how long the calls directly below took
    std::int64_t resolution_ns = 0;
    KfdSpan span;
  };

  // pm_send_unmap_queue was entered.
  struct UnmapSent {
    std::int64_t at_ns = kNoTime;
    std::int64_t below_ns = 0;  // graph: how long what its caller did before took
  };

  // A span that lost events cut: what comes next of its verb at a deeper level may be the same call.
  struct Cut {
    KfdVerb verb = KfdVerb::ioctl;
    int level = -1;
  };

  struct Thread {
    std::vector<Frame> frames;        // those without a role too, once one with a role is open
    std::optional<UnmapSent> sent;    // until its fence was waited for
    std::int64_t sent_below_ns = -1;  // of the wait that is open; -1: nothing was seen to be sent
    std::optional<KfdSpan> preempt;   // of a graph without times: bounded once its unmap closes
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
  // Frames from `index` on have ended by `now` (kNoTime: nothing says when), the innermost first.
  void pop_to(Thread& thread, std::size_t index, std::int64_t now);
  void end_bounded(Thread& thread, Frame& frame, std::int64_t now);
  // Frame `index` returned at `line`; what is above it has ended by then.
  void end_exact(Thread& thread, std::size_t index, const TraceLine& line, std::int64_t duration_ns);
  // The wait for the fence returned.
  void end_preempt(Thread& thread, Frame& frame, const TraceLine& line, std::int64_t duration_ns);
  // Its unmap is over: so are what was sent and what waits for its length.
  void end_unmap(Thread& thread, std::int64_t duration_ns);
  void set_result(Thread& thread, Frame& frame, std::optional<std::int64_t> result);
  // What the line says is below frames 0 to `count` - 1.
  static void touch(Thread& thread, std::size_t count, std::int64_t now);
  // Another form of trace tells of the same entry again.
  static bool is_repeated(const Thread& thread, const TraceLine& line);
  // Where a function that no open one is seen to call lets others end; nothing of what it may be below.
  static std::size_t first_ended(const Thread& thread, const KfdFunction& function);
  // Entered without word of its caller: apart, but below a span of the same verb.
  Frame& push_apart(Thread& thread, const TraceLine& line, std::string_view name, const KfdFunction& function,
                    Style style);
  // Parts of a create: counted with it, their arguments are its own.
  static void note_part(Thread& thread, const TraceLine& line, const KfdFunction& function);
  static Frame* open_span(Thread& thread, KfdVerb verb);
  static bool is_in_system_call(const Thread& thread);
  // Whether it may be part of a call that was given up, and thus counted; forgets those that have ended.
  bool continues_cut(std::int64_t key, const KfdFunction& function);
  KfdSpan span_of(const TraceLine& line, KfdVerb verb) const;
  void emit(const KfdSpan& span);

  KfdSink& sink_;
  FtraceCounters& counters_;
  CallCounts counts_;
  KnownFunctions functions_;
  std::unordered_map<std::int64_t, Thread> threads_;        // those with something open
  std::unordered_map<std::int64_t, std::vector<Cut>> cut_;  // by thread
  std::unordered_map<int, int> task_of_cpu_;                // of graphs, by their task switches
  std::vector<KfdSpan> nameless_;  // until the first task switch of their CPU says whose they are
  std::uint64_t number_ = 0;
};

// Sets what `text` tells and the span does not know yet.
void annotate(KfdSpan& span, std::string_view text);

}  // namespace weir::ftrace
