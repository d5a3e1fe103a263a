// Writes a program's commands to $WEIR_CAPTURE_FOLDER/PID.weircap: CUPTI's records of what ran on the device, and the
// calls that a recorder noted. Never makes such a program fail: if CUPTI refuses, the file contains the reason.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "submit/inject/cupti_activity.h"
#include "submit/inject/cupti_calls.h"
#include "submit/inject/cupti_library.h"
#include "submit/inject/nvtx_ranges.h"
#include "submit/inject/process.h"
#include "trace/export/capture_writer.h"

namespace weir::inject {
namespace {

using capture::kNone;
using record::Kind;

constexpr timespec kDrainPeriod{0, 20'000'000};
constexpr int kDrainsPerFlush = 50;                            // a quiet program that is killed loses a second
constexpr std::uint64_t kCallBytes = std::uint64_t{64} << 20;  // of entries that wait to be written

struct State {
  std::mutex mutex;        // protects the writer and what belongs to it
  std::mutex drain_mutex;  // one drains at a time; locked before `mutex` if both are held
  pid_t process = 0;
  bool is_on = false;      // records are being written
  bool is_ending = false;  // protected by drain_mutex
  std::unique_ptr<CaptureWriter> writer;
  std::unique_ptr<Recorder> recorder;
  std::uint64_t lost = 0;                                       // entries, as far as they were reported
  std::unordered_map<const char*, std::uint32_t> kernel_names;  // CUPTI keeps each name at one address
  std::unordered_map<std::uint32_t, std::uint32_t> names;       // by the recorder's text
  std::unordered_map<std::uint64_t, std::uint32_t> events;      // numbers by handle
};

// Never destroyed: CUPTI's threads may call back while the process exits.
State& state() {
  static State& kState = *new State;
  return kState;
}

void note(const std::string& text) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.writer->message(text);
}

void write_command(const DeviceCommand& command) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (!s.is_on) return;
  if (command.name == nullptr)
    return s.writer->add(capture::CopyRecord{command.place, command.bytes, static_cast<std::uint32_t>(command.kind),
                                             command.peer_device});
  auto found = s.kernel_names.find(command.name);
  if (found == s.kernel_names.end())
    found = s.kernel_names.emplace(command.name, s.writer->name(demangled(command.name))).first;
  s.writer->add(capture::KernelRecord{command.place, found->second, 0});
}

constexpr ActivityUser kUser{
    .command = write_command,
    .device =
        [](std::uint32_t device, const char* name) {
          const std::lock_guard lock(state().mutex);
          state().writer->device(device, name);
        },
    .context =
        [](std::uint32_t context, std::uint32_t device) {
          const std::lock_guard lock(state().mutex);
          state().writer->add(capture::ContextRecord{context, device});
        },
    .lost =
        [](std::uint64_t records, const char* reason) {
          const std::lock_guard lock(state().mutex);
          state().writer->lost(records, reason);
        },
    .note = note,
    .buffer_ended =
        [] {
          const std::lock_guard lock(state().mutex);
          if (state().is_on) state().writer->flush();
        },
};

capture::SyncType sync_type(Kind kind) noexcept {
  switch (kind) {
    case Kind::event_synchronize:
      return capture::SyncType::event_synchronize;
    case Kind::stream_wait_event:
      return capture::SyncType::stream_wait_event;
    case Kind::stream_synchronize:
      return capture::SyncType::stream_synchronize;
    case Kind::context_synchronize:
      return capture::SyncType::context_synchronize;
    default:
      return capture::SyncType::unknown;
  }
}

// The writer's number for a text of the recorder.
std::uint32_t name_of_text(State& s, std::uint32_t text, bool is_function) {
  auto name = s.names.find(text);
  if (name == s.names.end()) {
    const std::string_view words = s.recorder->text_at(text);
    name = s.names.emplace(text, s.writer->name(is_function ? plain_function(words) : words)).first;
  }
  return name->second;
}

// The call itself, and what it means for the order of commands. Calls into a graph order nothing now.
void write_call(State& s, const record::Thread& thread, const record::Entry& entry) {
  const auto kind = static_cast<Kind>(entry.kind);
  if (kind == Kind::range)
    return s.writer->add(
        capture::MarkerRecord{name_of_text(s, entry.name, false), thread.id, entry.started_ns, entry.ended_ns});
  const capture::SyncType sync = sync_type(kind);
  const bool is_wanted = sync != capture::SyncType::unknown || kind == Kind::event_record ||
                         (record::is_command(kind) && kind != Kind::memory_operation);
  if (!is_wanted) return;
  const std::uint32_t function = s.recorder->header().functions[entry.function % record::kFunctions];
  s.writer->add(capture::CallRecord{name_of_text(s, function, true), thread.id, entry.correlation, entry.started_ns,
                                    entry.ended_ns});
  if (entry.flags != 0) return;
  const record::Stream* const stream = entry.stream == record::kNone ? nullptr : &s.recorder->stream_at(entry.stream);
  const std::uint32_t stream_id = stream == nullptr ? kNone : stream->id;
  const auto event = [&] {
    return s.events.try_emplace(entry.object, static_cast<std::uint32_t>(s.events.size() + 1)).first->second;
  };
  if (kind == Kind::event_record)
    return s.writer->add(capture::EventRecord{entry.context, stream_id, event(),
                                              stream == nullptr ? kNone : stream->device, 0, entry.correlation});
  if (sync == capture::SyncType::unknown) return;
  const bool is_for_event = kind == Kind::event_synchronize || kind == Kind::stream_wait_event;
  s.writer->add(capture::SyncRecord{static_cast<std::uint32_t>(sync), entry.context, stream_id,
                                    is_for_event ? event() : kNone, 0, entry.correlation, entry.started_ns,
                                    entry.ended_ns});
}

// drain_mutex is locked. Returns whether there was anything.
bool write_calls(State& s) {
  const std::lock_guard lock(s.mutex);
  if (!s.is_on) return false;
  bool was_any = false;
  s.recorder->drain([&](const record::Thread& thread, const record::Entry& entry) {
    was_any = true;
    try {
      write_call(s, thread, entry);
    } catch (const std::bad_alloc&) {
      s.writer->lost(1, "the program was out of memory");
    }
  });
  if (const std::uint64_t lost = s.recorder->lost(); lost > s.lost) {
    s.writer->lost(lost - s.lost, "calls came faster than they could be written");
    s.lost = lost;
  }
  return was_any;
}

// Buffers of CUPTI come back when they are full, which takes for ever in a quiet program: that one is asked to flush.
void* drain_now_and_then(void*) {
  State& s = state();
  std::uint64_t buffers = 0;
  bool was_any = false;
  for (int drains = 1;; ++drains) {
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &kDrainPeriod, nullptr);
    const std::lock_guard lock(s.drain_mutex);
    if (s.is_ending) return nullptr;
    was_any = write_calls(s) || was_any;
    if (drains % kDrainsPerFlush != 0) continue;
    const std::uint64_t now = activity_buffers();
    if (was_any && now == buffers) flush_activity(false);
    was_any = false;
    buffers = activity_buffers();
    const std::lock_guard written(s.mutex);
    s.writer->flush();
  }
}

void finish() {
  State& s = state();
  if (s.process != ::getpid()) return;  // the exit of a forked child is not the program's
  const std::lock_guard drains(s.drain_mutex);
  s.is_ending = true;
  abandon_calls();
  record_ranges(nullptr);
  flush_activity(true);
  write_calls(s);
  const std::lock_guard lock(s.mutex);
  if (!s.writer) return;
  s.is_on = false;
  s.writer->finish(monotonic_ns());
  if (const int error = s.writer->error(); error != 0)
    std::fprintf(stderr, "weir: %llu records could not be written: %s\n",
                 static_cast<unsigned long long>(s.writer->lost_records()), std::strerror(error));
}

void before_fork() { state().mutex.lock(); }
void after_fork() { state().mutex.unlock(); }
// The file belongs to the parent. A child that uses CUDA has executed another program, which gets its own file.
void in_child() {
  State& s = state();
  abandon_calls();
  record_ranges(nullptr);
  abandon_activity();
  Recorder::abandon_thread();
  s.is_on = false;
  if (s.writer) s.writer->abandon();
  s.mutex.unlock();
}

// Returns why nothing can be captured, or empty.
std::string start(State& s) {
  std::string reason;
  s.recorder = Recorder::create(-1, kCallBytes, Recorder::When::drains, reason);
  if (!s.recorder) return "there is no memory for calls: " + reason;
  s.is_on = true;
  if (reason = enable_activity(kUser, {.has_latency = std::getenv("WEIR_CAPTURE_LATENCY") != nullptr,
                                       .has_whole_graphs = std::getenv("WEIR_CAPTURE_WHOLE_GRAPHS") != nullptr});
      !reason.empty())
    return reason;
  // Without calls there are still commands.
  if (reason = record_calls(*s.recorder, {}, CallsBy::cupti); !reason.empty()) note("no calls and no waits: " + reason);
  record_ranges(s.recorder.get());
  return {};
}

}  // namespace

void start_capture() {
  State& s = state();
  const char* const folder = std::getenv("WEIR_CAPTURE_FOLDER");
  if (folder == nullptr || s.writer) return;
  std::uint64_t limit = UINT64_MAX;
  if (const char* const text = std::getenv("WEIR_CAPTURE_LIMIT");
      text != nullptr && std::strtoull(text, nullptr, 10) > 0)
    limit = std::strtoull(text, nullptr, 10);
  // A write beyond this limit would kill the program with SIGXFSZ.
  if (rlimit files{}; ::getrlimit(RLIMIT_FSIZE, &files) == 0 && files.rlim_cur != RLIM_INFINITY)
    limit = std::min(limit, static_cast<std::uint64_t>(files.rlim_cur));
  const int descriptor = create_file_of_process(folder, ".weircap", O_WRONLY);
  if (descriptor < 0) {
    std::fprintf(stderr, "weir: cannot write a capture into %s: %s\n", folder, std::strerror(errno));
    return;
  }
  s.process = ::getpid();
  s.writer = std::make_unique<CaptureWriter>(descriptor, limit);
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const capture::ProcessFacts facts{static_cast<std::uint64_t>(s.process), static_cast<std::uint64_t>(::getppid()),
                                    monotonic_ns(),
                                    static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec};
  s.writer->process(facts, "CLOCK_MONOTONIC", own_words());
  if (const std::string reason = start(s); !reason.empty()) {
    note("nothing is captured: " + reason);
    const std::lock_guard lock(s.mutex);
    s.is_on = false;
  }
  {
    // Written now, so that a killed program leaves at least this.
    const std::lock_guard lock(s.mutex);
    s.writer->flush();
  }
  ::pthread_atfork(before_fork, after_fork, in_child);
  std::atexit(finish);
  if (s.is_on) start_own_thread(drain_now_and_then);
}

}  // namespace weir::inject
