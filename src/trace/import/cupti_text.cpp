// Reads CUPTI's activity records as CUPTI's samples print them, mixed with other output of the program. Fields are
// found by their keys, because their order and number differ between CUDA versions.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "trace/capture_format.h"
#include "trace/import/cuda_activity.h"
#include "trace/import/json_text.h"
#include "trace/import/list.h"

// CONCURRENT_KERNEL [ 10, 20 ] duration 10, "_Z1kv", correlationId 331, cacheConfigRequested 0, cacheConfigExecuted 0
//         grid [ 1, 1, 1 ], block [ 32, 1, 1 ], cluster [ 0, 0, 0 ], sharedMemory (static 0, dynamic 0)
//         deviceId 1, contextId 4, streamId 42, graphId 0, graphNodeId 0, channelId 1, channelType COMPUTE
// MEMCPY "HtoD" [ 10, 20 ] duration 10, size 32768, copyCount 1, srcKind PAGEABLE, dstKind DEVICE, correlationId 238
// RUNTIME [ 10, 20 ] duration 10, "cudaMemcpy_v3020", cbid 31, processId 1, threadId 2, correlationId 238
// SYNCHRONIZATION [ 10, 20 ] duration 10, type STREAM_WAIT_EVENT, contextId 1, streamId 13, correlationId 5, eventId 7
// and before CUDA 12:
// CONCURRENT KERNEL "_Z1kv" [ 10 - 20 ] device 0, context 1, stream 7, correlation 12
// MEMCPY HtoD [ 10 - 20 ] device 0, context 1, stream 7, size 200, correlation 3
// RUNTIME cbid=31 [ 10 - 20 ] process 1, thread 2, correlation 3
namespace weir::importer_list {
namespace {

constexpr std::size_t kLongestLine = std::size_t{1} << 20;

enum class Kind { none, kernel, copy, memset, call, sync, event, other };

struct KindName {
  std::string_view word;
  Kind kind;
};
// Longer words first.
constexpr std::array<KindName, 12> kKinds = {{{"CONCURRENT_KERNEL", Kind::kernel},
                                              {"CONCURRENT KERNEL", Kind::kernel},
                                              {"KERNEL", Kind::kernel},
                                              {"MEMCPY2", Kind::copy},
                                              {"MEMCPY_PTOP", Kind::copy},
                                              {"MEMCPY", Kind::copy},
                                              {"MEMSET", Kind::memset},
                                              {"RUNTIME", Kind::call},
                                              {"DRIVER", Kind::call},
                                              {"SYNCHRONIZATION", Kind::sync},
                                              {"CUDA_EVENT", Kind::event},
                                              {"CDP_KERNEL", Kind::kernel}}};

bool is_capital(char c) noexcept { return (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9'); }

// A line that begins with a word in capitals and has a bracket or a key after it is a record, known or not.
Kind kind_of_line(std::string_view line) noexcept {
  for (const KindName& name : kKinds) {
    if (!line.starts_with(name.word)) continue;
    if (line.size() == name.word.size() || line[name.word.size()] == ' ') return name.kind;
  }
  std::size_t word = 0;
  while (word < line.size() && is_capital(line[word])) ++word;
  return word >= 4 && word < line.size() && line[word] == ' ' ? Kind::other : Kind::none;
}

bool is_word(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// The word after the first `key` that stands alone: "streamId 42", "cbid=31".
std::string_view word_after(std::string_view text, std::string_view key) noexcept {
  for (std::size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    std::size_t from = at + key.size();
    if ((at > 0 && is_word(text[at - 1])) || from >= text.size()) continue;
    if (text[from] != ' ' && text[from] != '=' && text[from] != ':') continue;
    while (from < text.size() && (text[from] == ' ' || text[from] == '=' || text[from] == ':')) ++from;
    std::size_t to = from;
    while (to < text.size() && is_word(text[to])) ++to;
    if (to > from) return text.substr(from, to - from);
  }
  return {};
}

std::optional<std::uint64_t> number_after(std::string_view text, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys)
    if (const auto value = number_in<std::uint64_t>(word_after(text, key))) return value;
  return std::nullopt;
}

// A record and its continuation lines. Quoted texts are kept separately, because they may contain brackets, commas and
// keys.
struct Record {
  Kind kind = Kind::none;
  std::uint64_t line = 0, last_line = 0;
  std::string quoted;
  std::string text;
};

struct Times {
  std::int64_t start = kNoTime, end = kNoTime;
};

// The first "[ 10, 20 ]" or "[ 10 - 20 ]".
Times times_of(std::string_view text) {
  Times times;
  const std::size_t open = text.find('[');
  const std::size_t close = text.find(']', open == std::string_view::npos ? text.size() : open);
  if (close == std::string_view::npos) return times;
  std::string_view inside = text.substr(open + 1, close - open - 1);
  for (std::int64_t* time : {&times.start, &times.end}) {
    const std::size_t digit = inside.find_first_of("0123456789");
    if (digit == std::string_view::npos) return {};
    const auto [end, error] = std::from_chars(inside.data() + digit, inside.data() + inside.size(), *time);
    if (error != std::errc()) return {};
    inside.remove_prefix(static_cast<std::size_t>(end - inside.data()));
  }
  return times;
}

class CuptiTextReader {
 public:
  CuptiTextReader(const TraceFile& file, TimelineBuilder& to) : file_(file), to_(to), cuda_(to) {}

  void read() {
    to_.begin_file(file_.name, "line");
    to_.set_source("CUPTI activity records, printed");
    std::string line;
    while (next_line(line)) {
      if (file_.progress && (line_ & 4095) == 0) file_.progress();
      use_line(line);
    }
    // Records end with a line end; in one that does not, the last number may lack digits.
    if (is_unended_ && record_.kind != Kind::none && record_.last_line == line_) {
      to_.drop("record that the file ends within", record_.line);
      ++records_;
    } else {
      finish_record();
    }
    if (records_ == 0)
      reject(fmt::format("{}: has no line that is a CUPTI activity record", file_.name),
             "Such lines begin with CONCURRENT_KERNEL, MEMCPY, MEMSET, RUNTIME or DRIVER, as CUPTI's samples print "
             "them.");
    cuda_.resolve(" (CUPTI_ACTIVITY_KIND_CUDA_EVENT records it)");
    if (is_serialised_)
      to_.note(
          "kernels were recorded by CUPTI_ACTIVITY_KIND_KERNEL, which runs them one at a time: concurrency and gaps "
          "are "
          "the profiler's, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL leaves them as they are");
    else
      to_.trust_gaps();
  }

 private:
  bool next_line(std::string& line) {
    line.clear();
    bool is_any = false, is_cut = false;
    for (;;) {
      if (at_ == ahead_.size()) {
        ahead_.resize(std::size_t{64} << 10);
        ahead_.resize(file_.bytes->read(ahead_.data(), ahead_.size()));
        at_ = 0;
        if (ahead_.empty()) break;
      }
      is_any = true;
      const std::size_t end = ahead_.find('\n', at_);
      const std::size_t stop = end == std::string::npos ? ahead_.size() : end;
      is_cut |= line.size() + (stop - at_) > kLongestLine;
      if (!is_cut) line.append(ahead_, at_, stop - at_);
      at_ = end == std::string::npos ? stop : end + 1;
      is_unended_ = end == std::string::npos;
      if (!is_unended_) break;
    }
    if (is_any) ++line_;
    if (is_cut) {
      to_.drop("line longer than 1 MiB", line_);
      line.clear();
    }
    if (line.ends_with('\r')) line.pop_back();
    return is_any;
  }

  void use_line(std::string_view line) {
    if (line.empty()) return;
    const bool is_continuation = line[0] == '\t' || line[0] == ' ';
    const Kind kind = is_continuation ? Kind::none : kind_of_line(line);
    if (kind == Kind::none) {
      // Other threads may print between a record and its continuation.
      if (is_continuation && record_.kind != Kind::none && record_.text.size() + line.size() < kLongestLine)
        (record_.text += ", ").append(line);
      if (is_continuation) record_.last_line = line_;
      return;
    }
    finish_record();
    is_serialised_ |= line.starts_with("KERNEL ");
    record_.kind = kind;
    record_.line = record_.last_line = line_;
    const std::size_t open = line.find('"');
    const std::size_t close = line.rfind('"');
    record_.quoted.clear();
    record_.text.assign(line);
    if (open == std::string_view::npos || close == open) return;
    record_.quoted = line.substr(open + 1, close - open - 1);
    record_.text = std::string(line.substr(0, open)).append(line.substr(close + 1));
  }

  void finish_record() {
    switch (record_.kind) {
      case Kind::kernel:
      case Kind::copy:
      case Kind::memset:
        finish_command();
        break;
      case Kind::call:
        finish_call();
        break;
      case Kind::sync:
        finish_sync();
        break;
      case Kind::event:
        finish_event();
        break;
      case Kind::other:
      case Kind::none:
        break;
    }
    record_.kind = Kind::none;
  }

  std::optional<std::uint64_t> number(std::initializer_list<std::string_view> keys) const {
    return number_after(record_.text, keys);
  }
  std::uint64_t correlation() const { return number({"correlationId", "correlation id", "correlation"}).value_or(0); }
  std::optional<std::uint64_t> stream() const { return number({"streamId", "stream"}); }
  std::uint32_t context() const { return static_cast<std::uint32_t>(number({"contextId", "context"}).value_or(0)); }

  void finish_command() {
    const auto device = number({"deviceId", "device"});
    const Times times = times_of(record_.text);
    if (!device || !stream() || times.end == kNoTime)
      return to_.drop("record of a command without times, device or stream", record_.line);
    ++records_;
    TraceCommand command;
    const auto lane = cuda_.lane(file_.process, static_cast<std::int64_t>(*device), context(), *stream(), record_.line);
    if (!lane || !cuda_.has_times(times.start, times.end, record_.line)) return;
    command.process = file_.process;
    command.stream = lane->stream;
    const std::string_view type = word_after(record_.text, "channelType");
    const auto channel = number({"channelId", "channelID"});
    if (channel && type != "INVALID") command.queue = to_.queue(lane->device, *channel, type == "ASYNC_MEMCPY");
    command.correlation = correlation();
    command.started_ns = times.start;
    command.ended_ns = times.end;
    command.at = record_.line;
    if (record_.kind == Kind::kernel) {
      command.name = to_.name(record_.quoted);
    } else if (record_.kind == Kind::memset) {
      command.kind = SpanKind::memset;
      command.name = to_.name("Memset");
      command.bytes = number({"size", "bytes"}).value_or(0);
    } else {
      command.kind = SpanKind::copy;
      command.name = to_.name("Memcpy " + (record_.quoted.empty() ? bare_copy_kind() : record_.quoted));
      command.bytes = number({"size", "bytes"}).value_or(0);
    }
    to_.add(command);
  }

  // MEMCPY HtoD [ ...
  std::string bare_copy_kind() const {
    const std::size_t from = record_.text.find(' ');
    const std::size_t to = record_.text.find(' ', from + 1);
    return from == std::string::npos || to == std::string::npos ? "" : record_.text.substr(from + 1, to - from - 1);
  }

  void finish_call() {
    const Times times = times_of(record_.text);
    if (times.end == kNoTime) return to_.drop("record of a call without times", record_.line);
    ++records_;
    const std::uint32_t name = to_.name(record_.quoted.empty() ? fmt::format("cbid {}", number({"cbid"}).value_or(0))
                                                               : without_version(record_.quoted));
    to_.add({name, static_cast<std::uint32_t>(number({"threadId", "thread"}).value_or(0)), correlation(), file_.process,
             CallKind::other, times.start, times.end},
            record_.line);
  }

  void finish_sync() {
    cuda_.knows_waits();
    ++records_;
    const Times times = times_of(record_.text);
    const std::string_view type = word_after(record_.text, "type");
    constexpr std::pair<std::string_view, capture::SyncType> kTypes[] = {
        {"STREAM_WAIT_EVENT", capture::SyncType::stream_wait_event},
        {"STREAM_SYNCHRONIZE", capture::SyncType::stream_synchronize},
        {"CONTEXT_SYNCHRONIZE", capture::SyncType::context_synchronize}};
    for (const auto& [name, number_of_it] : kTypes)
      if (type == name && (stream() || number_of_it == capture::SyncType::context_synchronize))
        cuda_.add(static_cast<std::int64_t>(number_of_it),
                  {{file_.process, context(), stream().value_or(0), number({"eventId", "event"}).value_or(0), 0,
                    correlation()},
                   record_.line},
                  times.start, times.end);
  }

  void finish_event() {
    if (!stream()) return to_.drop("record of an event without a stream", record_.line);
    ++records_;
    cuda_.add(CudaActivity::Recorded{file_.process, context(), *stream(), number({"eventId", "event"}).value_or(0), 0,
                                     correlation()});
  }

  const TraceFile& file_;
  TimelineBuilder& to_;
  CudaActivity cuda_;
  std::string ahead_;
  std::size_t at_ = 0;
  std::uint64_t line_ = 0, records_ = 0;
  bool is_unended_ = false;  // the last line
  bool is_serialised_ = false;
  Record record_;
};

bool sniff_cupti_text(std::string_view start) {
  while (!start.empty()) {
    const std::size_t end = start.find('\n');
    const std::string_view line = start.substr(0, end);
    const Kind kind = kind_of_line(line);
    if (kind != Kind::none && kind != Kind::other && line.find("orrelation") != std::string_view::npos &&
        times_of(line).end != kNoTime)
      return true;
    start.remove_prefix(end == std::string_view::npos ? start.size() : end + 1);
  }
  return false;
}

}  // namespace

Importer cupti_text() {
  return {"cupti_text", "CUPTI activity records, as CUPTI's samples print them", sniff_cupti_text,
          [](const TraceFile& file, TimelineBuilder& to) { CuptiTextReader(file, to).read(); }};
}

}  // namespace weir::importer_list
