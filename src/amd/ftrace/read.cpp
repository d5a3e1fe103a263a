#include "amd/ftrace/read.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "amd/ftrace/line.h"
#include "amd/ftrace/spans.h"
#include "base/error.h"

namespace weir::ftrace {
namespace {

constexpr std::size_t kBlock = std::size_t{128} << 10;
constexpr std::size_t kLongestLine = std::size_t{64} << 10;  // the kernel's own lines end at 4 KiB

void check_start(ByteSource& source, const std::string& name) {
  const std::string_view start = source.peek(4096);
  if (start.empty())
    reject(fmt::format("{}: empty", name), "Was the trace read after tracing had stopped and been cleared?");
  if (start.size() > 10 && start.substr(3, 7) == "tracing" && start[0] == '\x17')
    reject(fmt::format("{}: a binary file of trace-cmd, not a trace's text", name),
           "Run: trace-cmd report FILE > text");
  if (start.starts_with("PERFILE2"))
    reject(fmt::format("{}: a file of perf", name), "Run: perf script -i FILE, or use ftrace.");
  if (start.find('\0') != start.npos)
    reject(fmt::format("{}: a binary file, not a trace's text", name),
           "Give the text of /sys/kernel/tracing/trace (not per_cpu/*/trace_pipe_raw), or run: trace-cmd report FILE > "
           "text");
}

// Reads lines of any file in bounded memory; skips lines that are longer than any tracer writes.
class Lines {
 public:
  explicit Lines(ByteSource& source) : source_(source) { buffer_.resize(kBlock + kLongestLine); }

  // False at the end. `is_long`: the line is too long, and `line` holds its beginning.
  bool next(std::string_view& line, bool& is_long) {
    is_long = false;
    bool skips = false;
    for (;;) {
      const char* const from = buffer_.data() + begin_;
      const auto* const newline = static_cast<const char*>(std::memchr(from, '\n', end_ - begin_));
      if (newline || (is_ended_ && begin_ < end_)) {
        const std::size_t size = newline ? static_cast<std::size_t>(newline - from) : end_ - begin_;
        line = skips ? std::string_view(start_) : std::string_view(from, size);
        is_long = skips || size > kLongestLine;
        begin_ += size + (newline ? 1 : 0);
        return true;
      }
      if (is_ended_) {
        line = start_;
        is_long = skips;
        return skips;
      }
      if (end_ - begin_ > kLongestLine) {
        if (!skips) start_.assign(from, 256);
        skips = true;
        begin_ = end_;
      }
      refill();
    }
  }

 private:
  void refill() {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    const std::size_t count = source_.read(buffer_.data() + end_, buffer_.size() - end_);
    end_ += count;
    is_ended_ = count == 0;
  }

  ByteSource& source_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;
  bool is_ended_ = false;
  std::string start_;
};

void note_unread(FtraceCounters& counters, const char* reason, std::uint64_t number) {
  for (UnreadLines& unread : counters.unread)
    if (unread.reason == reason) {
      ++unread.count;
      return;
    }
  counters.unread.push_back({reason, 1, number});
}

// # tracer: function
// # entries-in-buffer/entries-written: 140080/250280   #P:4
void take_header(std::string_view text, FtraceCounters& counters) {
  constexpr std::string_view kTracer = "# tracer:", kEntries = "# entries-in-buffer/entries-written:";
  if (text.starts_with(kTracer)) {
    counters.tracer = std::string(symbol_at(trimmed(text.substr(kTracer.size()))).substr(0, 40));
  } else if (text.starts_with(kEntries)) {
    const std::string_view rest = trimmed(text.substr(kEntries.size()));
    const std::size_t slash = rest.find('/');
    if (slash == rest.npos) return;
    std::uint64_t held = 0, written = 0;
    if (parse_whole(rest.substr(0, slash), held) &&
        parse_whole(rest.substr(slash + 1, rest.find(' ', slash) - slash - 1), written) && held <= written) {
      counters.buffer_entries = held;
      counters.written_entries = written;
    }
  }
}

void count_form(const TraceLine& line, FtraceCounters& counters) {
  switch (line.kind) {
    case LineKind::function:
      ++counters.functions;
      break;
    case LineKind::call:
    case LineKind::leaf:
    case LineKind::close:
      ++counters.graph_calls;
      break;
    case LineKind::probe:
    case LineKind::probe_return:
      ++counters.probes;
      break;
    default:
      ++counters.events;
  }
  if (line.tgid) counters.has_tgid = true;
  if (line.at_ns == kNoTime) return;
  counters.first_ns = counters.first_ns == kNoTime ? line.at_ns : std::min(counters.first_ns, line.at_ns);
  counters.last_ns = std::max(counters.last_ns, line.at_ns);
  counters.resolution_ns = line.resolution_ns;
}

}  // namespace

FtraceCounters read_ftrace(ByteSource& source, KfdSink& sink, const FtraceOptions& options) {
  check_start(source, options.name);
  FtraceCounters counters;
  SpanBuilder spans(sink, counters);
  Lines lines(source);
  std::string_view text;
  bool is_long = false, has_header = false;
  while (lines.next(text, is_long)) {
    const std::uint64_t number = ++counters.lines;
    if (options.progress && number % 65536 == 0) options.progress();
    if (is_long) {
      note_unread(counters, "a line longer than any tracer writes", number);
      continue;
    }
    const TraceLine line = parse_line(text);
    switch (line.kind) {
      case LineKind::blank:
        break;
      case LineKind::header:
        has_header = has_header || line.text.starts_with("# tracer:");
        take_header(line.text, counters);
        break;
      case LineKind::lost:
        ++counters.lost_gaps;
        counters.lost_events += line.lost;
        counters.lost_uncounted += line.lost == 0 ? 1 : 0;
        spans.lose();
        break;
      case LineKind::buffer_started:
        // The kernel prints this only if events were overwritten: everything earlier on this CPU is lost.
        ++counters.buffers_started;
        spans.lose();
        break;
      case LineKind::unreadable:
        note_unread(counters, line.problem ? line.problem : "not understood", number);
        break;
      case LineKind::task_switch:
        spans.take(line, number);
        break;
      default:
        count_form(line, counters);
        spans.take(line, number);
    }
  }
  spans.finish();
  counters.problem = source.problem();
  if (counters.entries() == 0) {
    if (has_header)
      reject(fmt::format("{}: a trace without any event", options.name),
             "Was the trace read while tracing_on was 1, or after the buffer had been cleared?");
    reject(fmt::format("{}: no line of a kernel trace", options.name),
           "Give the text of /sys/kernel/tracing/trace, or of: trace-cmd report FILE");
  }
  return counters;
}

void require_kfd(const FtraceCounters& counters, const std::string& name) {
  const KfdCalls& calls = counters.calls;
  const bool has_known = calls.kfd_ioctl + calls.create_handler + calls.pqm_create + calls.create_scheduler +
                             calls.runlist_map + calls.runlist_sent + calls.unmap_sent + calls.fence_wait +
                             calls.mqd_init + calls.mqd_allocate + calls.mes_add + calls.mes_remove +
                             calls.doorbell_allocate + calls.memory_map + calls.evict_scheduled + calls.process_end +
                             calls.known_verbs + counters.texts + calls.ioctls.size() >
                         0;
  if (has_known) return;
  if (calls.unknown_kfd_calls > 0) {
    std::string names;
    for (const NameCount& one : calls.unknown_kfd) names += (names.empty() ? "" : ", ") + one.name;
    reject(fmt::format("{}: {} calls of KFD, none of them of queues ({})", name, calls.unknown_kfd_calls, names),
           "The kernel may be newer than this reader, or the filter left queues out: trace with ':mod:amdgpu'.");
  }
  reject(fmt::format("{}: {} events, none of KFD", name, counters.entries()),
         "Trace KFD: echo ':mod:amdgpu' > set_ftrace_filter with the tracer function or function_graph, or enable "
         "events/amdkfd. weir amd capture does it.");
}

}  // namespace weir::ftrace
