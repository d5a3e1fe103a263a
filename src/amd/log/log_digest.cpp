#include "amd/log/log_digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weir::amd {
namespace {

constexpr std::size_t kMaxThreads = 4096, kDeepestCall = 16, kMaxReasons = 32;

std::int64_t as_ns(std::uint64_t us) {
  return us == FoundLine::kNoTimeUs || us > static_cast<std::uint64_t>(INT64_MAX / 1000)
             ? INT64_MIN
             : static_cast<std::int64_t>(us) * 1000;
}

// Kernels that these calls name are nodes of a graph, not launches: hipGraphExecKernelNodeSetParams,
// hipGraphInstantiate.
bool only_describes(std::string_view call) { return call.starts_with("hipGraph") && call != "hipGraphLaunch"; }

bool creates_stream(std::string_view call) {
  return call.starts_with("hipStreamCreate") || call == "hipExtStreamCreateWithCUMask";
}

// "stream:0x1952020"; the default one is "stream:<null>".
std::uint64_t stream_in(std::string_view text) {
  // Searches from the end because the stream is usually the last argument.
  for (std::size_t at = text.rfind(':'); at != std::string_view::npos && at >= 6; at = text.rfind(':', at - 1)) {
    if (text.substr(at - 6, 6) != "stream") continue;
    text.remove_prefix(at + 1);
    return take_hex(text).value_or(0);
  }
  return 0;
}

}  // namespace

std::uint64_t LogDigest::Thread::stream() const {
  if (command_stream != 0) return command_stream;
  return calls.empty() ? 0 : calls.back().stream;
}

LogDigest::LogDigest(LogSink& sink)
    : sink_(sink), wants_calls_(sink.wants_calls()), wants_details_(sink.wants_details()) {}

void LogDigest::unread(const std::string& reason, std::uint64_t count, std::uint64_t first_line) {
  if (count == 0) return;
  if (!unread_.contains(reason) && unread_.size() == kMaxReasons) return;
  UnreadLines& lines = unread_[reason];
  if (lines.count == 0) lines = {reason, 0, first_line};
  lines.count += count;
}

void LogDigest::not_understood(const Line& line, std::string_view what) {
  unread(fmt::format("{}: the line is cut off or unknown", what), 1, line.at.line);
}

void LogDigest::digest(std::string_view text, const ScannedBlock& block) {
  if (block.first_us != FoundLine::kNoTimeUs) {
    if (last_us_ != FoundLine::kNoTimeUs && block.first_us < last_us_ && last_us_ - block.first_us > kRestartUs)
      restart(lines_before_ + 1);
    last_us_ = block.last_us;
    const std::int64_t least = as_ns(block.min_us), most = as_ns(block.max_us);
    if (reading_.first_ns == INT64_MIN || least < reading_.first_ns) reading_.first_ns = least;
    reading_.last_ns = std::max(reading_.last_ns, most);
  }
  for (const FoundLine& found : block.found) take_line(text, found);
  for (const FoundCalls& calls : block.calls)
    sink_.on(ApiCalls{*calls.name, calls.begun, calls.returned, calls.failed, calls.first_status});
  const auto scanned = [&](Unread reason, const char* words) {
    const auto at = static_cast<std::size_t>(reason);
    unread(words, block.unread[at], lines_before_ + block.first_unread[at] + 1);
  };
  scanned(Unread::too_long, "a line is longer than 64 KiB");
  scanned(Unread::hole, "NUL bytes: the file was truncated while it was written");
  scanned(Unread::too_many_names, "HIP calls of more than 2048 names");
  lines_before_ += block.lines;
  reading_.lines += block.lines;
  reading_.records += block.records;
  reading_.glued += block.glued;
  reading_.other_lines += block.other_lines;
  reading_.without_pid += block.without_pid;
  reading_.highest_level = std::max(reading_.highest_level, block.highest_level);
}

LogReading LogDigest::finish() {
  for (auto& [key, thread] : threads_) finish_kernel(thread);
  for (auto& [reason, lines] : unread_) reading_.unread.push_back(lines);
  std::sort(reading_.unread.begin(), reading_.unread.end(),
            [](const UnreadLines& a, const UnreadLines& b) { return a.first_line < b.first_line; });
  return std::move(reading_);
}

void LogDigest::restart(std::uint64_t line) {
  forget_threads();
  sink_.on_restart(line);
}

void LogDigest::forget_threads() {
  for (auto& [key, thread] : threads_) finish_kernel(thread);
  threads_.clear();
  recent_ = {};
}

LogDigest::Thread& LogDigest::thread_of(std::string_view text) {
  Recent& recent = recent_[text.size() < 5 ? 0 : static_cast<unsigned char>(text[text.size() - 5]) % recent_.size()];
  if (recent.thread != nullptr && text == recent.text) return *recent.thread;
  LineHead head;
  std::string_view rest = text;
  take_process(rest, head);
  const std::pair<int, std::uint64_t> key{head.pid.value_or(-1), head.tid};
  auto at = threads_.find(key);
  if (at == threads_.end()) {
    if (threads_.size() == kMaxThreads) {
      forget_threads();
      unread("more than 4096 threads: what they had begun was forgotten", 1, lines_before_ + 1);
    }
    at = threads_.try_emplace(key).first;
    if (key.first >= 0) at->second.pid = key.first;
    at->second.tid = key.second;
  }
  recent.text = text;
  recent.thread = &at->second;
  return at->second;
}

void LogDigest::take_line(std::string_view text, const FoundLine& found) {
  if (found.kind == LineKind::restart) {
    restart(lines_before_ + found.line + 1);
    return;
  }
  const std::string_view record = text.substr(found.at, found.size);
  Line line;
  line.thread = &thread_of(record.substr(found.process_at, found.process_size));
  line.message = trimmed(record.substr(found.message_at));
  line.at = {as_ns(found.time_us), line.thread->pid, line.thread->tid, lines_before_ + found.line + 1};
  switch (found.kind) {
    case LineKind::packet:
      return take_packet(line);
    case LineKind::command:
      return take_command(line);
    case LineKind::kernel:
      return take_kernel(line);
    case LineKind::asked:
      // Number of allocated hardware queues with low priority: 0, with normal priority: 0, with high priority: 0,
      // maximum per priority is: 4
      line.thread->asked = line.at;
      if (const auto most = decimal_after(line.message, "maximum per priority is: "); most && *most < 1'000'000)
        reading_.most_per_priority = static_cast<int>(*most);
      return;
    case LineKind::created:
      return take_created(line);
    case LineKind::shared:
      return take_shared(line);
    case LineKind::deleted:
      // Deleting hardware queue 0x7f8acd200000 with refCount 0
      if (const auto queue = hex_after(line.message, "hardware queue "))
        sink_.on(QueueDeleted{line.at, *queue});
      else
        not_understood(line, "queue deletions");
      return;
    case LineKind::copy:
      return take_copy(line);
    case LineKind::call:
      return take_call(line);
    case LineKind::returned:
      return take_return(line);
    case LineKind::error:
      return take_error(line, found.level);
    case LineKind::runtime:
      ++reading_.runtimes;
      return;
    case LineKind::version:
      // HIP Version: 7.0.51831.7c9236b16, Direct Dispatch: 1
      if (reading_.runtime_version.empty()) {
        std::string_view version = line.message.substr(12);
        while (!version.empty() && version.front() == ' ') version.remove_prefix(1);
        reading_.runtime_version = version.substr(0, std::min<std::size_t>(version.find(','), 64));
      }
      return;
    case LineKind::restart:
      return;
  }
}

// Command (KernelExecution) enqueued: 0x2095b30 to queue: 0x1952020
// Command (CopyHostToDevice) enqueued: 0x55d4bfbfe270           ROCm 5 and 6
void LogDigest::take_command(const Line& line) {
  std::string_view text = line.message.substr(9);
  const std::size_t end = text.find(')');
  if (end == std::string_view::npos || end > 128) return not_understood(line, "commands");
  CommandEnqueued command{line.at, text.substr(0, end), 0};
  text.remove_prefix(end);
  if (!take_word(text, ") enqueued: ")) return not_understood(line, "commands");
  text.remove_prefix(std::min(text.size(), text.find(' ')));
  if (take_word(text, " to queue: ")) command.stream = take_hex(text).value_or(0);
  line.thread->command_stream = command.stream;
  sink_.on(command);
}

// ShaderName : dummy_kernel(int*, int)
// Graph shader name : dummy_kernel(int*, int)
void LogDigest::take_kernel(const Line& line) {
  Thread& thread = *line.thread;
  finish_kernel(thread);
  if (!thread.calls.empty() && only_describes(thread.calls.back().name)) return;
  std::string_view name = line.message;
  seek_word(name, " : ");
  thread.kernel = name;
  thread.kernel_at = line.at;
  thread.kernel_stream = thread.stream();
  thread.has_kernel = true;
}

void LogDigest::finish_kernel(Thread& thread) {
  if (!thread.has_kernel) return;
  thread.has_kernel = false;
  sink_.on(KernelNamed{thread.kernel_at, thread.kernel_stream, thread.kernel});
}

// Created SWq=0x7f8edc1a8000 to map on HWq=0x7f8acd200000 with size 16384 with priority 2, cooperative: 0
// created hardware queue 0x7fbd11443000 with size 16384 with priority 1, cooperative: 0     ROCm 5, 6.0, 6.1
void LogDigest::take_created(const Line& line) {
  QueueCreated created;
  created.asked = std::exchange(line.thread->asked, {});
  created.created = line.at;
  std::string_view text = line.message;
  std::optional<std::uint64_t> hwq;
  if (take_word(text, "Created SWq=")) {
    const auto swq = take_hex(text);
    if (!swq || !take_word(text, " to map on HWq=")) return not_understood(line, "queue creations");
    created.swq = *swq;
    hwq = take_hex(text);
  } else {
    created.is_ring = false;
    if (!take_word(text, "created hardware queue ")) return not_understood(line, "queue creations");
    hwq = take_hex(text);
    created.swq = hwq.value_or(0);
  }
  const auto size = decimal_after(text, " with size ");
  if (!hwq || !size) return not_understood(line, "queue creations");
  created.hwq = *hwq;
  created.packets = *size;
  if (const auto priority = decimal_after(text, " with priority "); priority && *priority < 16)
    created.priority = static_cast<int>(*priority);
  created.is_cooperative = decimal_after(text, "cooperative: ").value_or(0) != 0;
  sink_.on(created);
}

// acquireQueue refCount: 0x7f8acd200000 (1)        newer: (1) and a word
// Selected queue refCount: 0x7f1649800000 (2)
// releaseQueue refCount:0x7f8acd200000 (0)
void LogDigest::take_shared(const Line& line) {
  QueueShared shared;
  shared.at = line.at;
  std::string_view text = line.message;
  shared.change = text.front() == 'a'   ? QueueShared::Change::acquired
                  : text.front() == 'S' ? QueueShared::Change::selected
                                        : QueueShared::Change::released;
  if (!seek_word(text, "refCount:")) return not_understood(line, "queues acquired and released");
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  const auto hwq = take_hex(text);
  if (!hwq || !take_word(text, " (")) return not_understood(line, "queues acquired and released");
  const auto count = take_decimal(text);
  if (!count || *count > 1'000'000 || !text.starts_with(")"))
    return not_understood(line, "queues acquired and released");
  shared.hwq = *hwq;
  shared.count = static_cast<int>(*count);
  Thread& thread = *line.thread;
  if (shared.change != QueueShared::Change::released) {
    thread.acquired = *hwq;
    thread.asked = {};
  }
  if (!thread.calls.empty()) shared.stream = thread.calls.back().stream;
  sink_.on(shared);
}

// HSA Async Copy on copy_engine=0x1, dst=0x.., src=0x.., size=4096, forceSDMA=0, wait_event=0x0, completion_signal=0x..
// HSA Copy copy_engine=0x1, dst=0x.., src=0x.., size=27648, ...                       ROCm 7.2
// HSA Async Copy dst=0x.., src=0x.., size=4096, wait_event=0x0, completion_signal=0x..
// HSA Async Copy staged H2D, Async=1 / HSA Copy Using Staging resource size 27648     not copies of their own
void LogDigest::take_copy(const Line& line) {
  const std::string_view text = line.message;
  if (text.find("dst=") == std::string_view::npos) return;
  LoggedCopy copy;
  copy.at = line.at;
  if (const auto engine = hex_after(text, "copy_engine="); engine && *engine <= UINT32_MAX)
    copy.engine = static_cast<std::uint32_t>(*engine);
  const auto bytes = decimal_after(text, "size=");
  if (!bytes) return not_understood(line, "copies");
  copy.bytes = *bytes;
  copy.completion_signal = hex_after(text, "completion_signal=").value_or(0);
  sink_.on(copy);
}

// hipLaunchKernel ( 0x200d68, {32,1,1}, {32,1,1}, 0x7fffea224e60, 0, stream:0x1952020 )
// hipStreamCreateWithPriority ( 0x7fffea224e88, 0, -1 )
void LogDigest::take_call(const Line& line) {
  Thread& thread = *line.thread;
  const std::string_view name = line.message.substr(0, line.message.find(' '));
  finish_kernel(thread);
  // A call that begins twice never logged its return.
  for (std::size_t i = 0; i < thread.calls.size(); ++i)
    if (thread.calls[i].name == name) thread.calls.resize(i);
  if (thread.calls.size() == kDeepestCall) thread.calls.erase(thread.calls.begin());
  thread.calls.push_back({std::string(name), line.at, stream_in(line.message)});
  thread.command_stream = 0;
  if (!creates_stream(name)) return;
  thread.acquired = 0;
  thread.priority.reset();
  if (name != "hipStreamCreateWithPriority") return;
  std::string_view text = line.message.substr(0, line.message.rfind(" )"));
  text.remove_prefix(std::min(text.size(), text.rfind(' ') + 1));
  const bool is_negative = take_word(text, "-");
  if (const auto value = take_decimal(text); value && *value < 100)
    thread.priority = is_negative ? -static_cast<int>(*value) : static_cast<int>(*value);
}

// hipStreamCreate: Returned hipSuccess : stream:0x1952020
// hipStreamDestroy: Returned hipSuccess :
void LogDigest::take_return(const Line& line) {
  Thread& thread = *line.thread;
  ApiCall call;
  call.returned = line.at;
  call.name = line.message.substr(0, line.message.find(':'));
  std::string_view rest = line.message;
  seek_word(rest, ": Returned ");
  call.status = rest.substr(0, rest.find(' '));
  finish_kernel(thread);
  thread.command_stream = 0;
  std::uint64_t given = 0;
  for (std::size_t i = thread.calls.size(); i-- > 0;) {
    if (thread.calls[i].name != call.name) continue;
    call.begun = thread.calls[i].begun;
    given = thread.calls[i].stream;
    thread.calls.resize(i);
    break;
  }
  const std::uint64_t made = stream_in(rest);
  call.stream = given != 0 ? given : made;
  if (call.status == "hipSuccess") {
    if (creates_stream(call.name) && made != 0)
      sink_.on(StreamChanged{line.at, made, true, thread.priority, thread.acquired});
    else if (call.name == "hipStreamDestroy" && given != 0)
      sink_.on(StreamChanged{line.at, given, false, std::nullopt, 0});
  }
  if (wants_calls_) sink_.on(call);
}

// Callback: Queue 0x7f745c100000 aborting with error : HSA_STATUS_ERROR_EXCEPTION: ... code: 0x1016
// Device::callbackQueue aborting with error : HSA_STATUS_ERROR_MEMORY_FAULT: ... code: 0x2b      ROCm 5
void LogDigest::take_error(const Line& line, int level) {
  LoggedError error;
  error.at = line.at;
  error.level = std::min(level, 2);
  error.text = line.message;
  std::string_view text = line.message;
  if (take_word(text, "Callback: Queue ")) {
    error.is_queue = true;
    error.level = std::min(level, 1);
    error.queue = take_hex(text).value_or(0);
  } else if (text.starts_with("Device::callbackQueue aborting")) {
    error.is_queue = true;
  }
  sink_.on(error);
}

}  // namespace weir::amd
