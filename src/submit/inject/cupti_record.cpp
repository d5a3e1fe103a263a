// The flight recorder in a program: $WEIR_RECORD_FOLDER/PID.weirrec, which `weir record` reads. Never makes such a program
// fail: if something is missing, the file says so.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <optional>
#include <string>
#include <unordered_map>

#include "submit/inject/cupti_activity.h"
#include "submit/inject/cupti_calls.h"
#include "submit/inject/cupti_driver.h"
#include "submit/inject/cupti_library.h"
#include "submit/inject/process.h"
#include "submit/inject/program_stacks.h"
#include "submit/inject/stream_marks.h"

namespace weir::inject {
namespace {

using record::kNone;

constexpr std::uint64_t kDefaultBytes = std::uint64_t{64} << 20;
// A mark costs the thread that launches 2 to 5 us (H200, driver 580, November 2026): at most half a percent of its time;
// twice that where somebody wants to know which command hangs.
constexpr std::int64_t kMarkPeriodNs = 500'000, kHangMarkPeriodNs = 250'000;
constexpr timespec kMarkRest{0, 1'000'000}, kRest{0, 20'000'000};  // between looks: with and without marks
constexpr std::int64_t kFlushPeriodNs = 1'000'000'000;

struct State {
  pid_t process = 0;
  std::unique_ptr<Recorder> recorder;
  std::optional<StreamMarks> marks;
  std::optional<ProgramStacks> stacks;
  bool is_exact = false;
  std::mutex mutex;        // protects what follows
  bool is_ending = false;
  bool is_on = false;
  // Of exact records, used with the lock of cupti_activity: kernels by CUPTI's address of the name, streams by context and id.
  std::unordered_map<const char*, std::uint32_t> names;
  std::unordered_map<std::uint64_t, std::uint32_t> streams;
  std::uint32_t generation = 0;
};

// Never destroyed: threads of the program may still launch while it exits.
State& state() {
  static State& kState = *new State;
  return kState;
}

void set(std::uint32_t& word, std::uint32_t to) noexcept { std::atomic_ref(word).store(to, std::memory_order_release); }
std::uint32_t get(std::uint32_t& word) noexcept { return std::atomic_ref(word).load(std::memory_order_acquire); }

void note(const std::string& text) {
  Recorder& recorder = *state().recorder;
  const std::string before(recorder.text_at(recorder.header().message));
  set(recorder.header().message, recorder.text(before.empty() ? text : before + "; " + text));
}

void submitted(const Submitted& command) noexcept {
  const Unrecorded unrecorded;
  state().marks->after(command.stream, command.place, command.number, command.now_ns);
}

void before_context_ends() noexcept {
  const Unrecorded unrecorded;
  state().marks->forget();
}

std::uint32_t place_of(State& s, const capture::Place& place) {
  if (const std::uint32_t now = s.recorder->generation(); now != s.generation) {
    s.streams.clear();
    s.generation = now;
  }
  const auto [at, is_new] = s.streams.try_emplace(std::uint64_t{place.context} << 32 | place.stream, kNone);
  for (std::uint32_t i = 0; is_new && i < s.recorder->stream_places(); ++i) {
    record::Stream& stream = s.recorder->stream_at(i);
    if (get(stream.is_used) == 0) break;
    if (stream.context == place.context && stream.id == place.stream) at->second = i;
  }
  return at->second;
}

void write_command(const DeviceCommand& command) {
  State& s = state();
  const std::uint32_t thread = s.recorder->thread();
  if (thread == kNone) return;
  record::Entry entry{};
  entry.started_ns = command.place.started_ns;
  entry.ended_ns = command.place.ended_ns;
  entry.object = command.bytes;
  entry.stream = place_of(s, command.place);
  entry.context = command.place.context;
  entry.correlation = static_cast<std::uint32_t>(command.place.correlation);
  entry.function = static_cast<std::uint16_t>(command.place.channel_type);
  entry.kind = static_cast<std::uint8_t>(record::Kind::device);
  entry.number = command.place.channel;
  if (command.name != nullptr) {
    auto name = s.names.find(command.name);
    if (name == s.names.end()) name = s.names.emplace(command.name, s.recorder->text(demangled(command.name))).first;
    entry.name = name->second;
  }
  s.recorder->append(thread, entry);
}

constexpr ActivityUser kActivityUser{
    .command = write_command,
    .device = [](std::uint32_t, const char*) {},
    .context = [](std::uint32_t, std::uint32_t) {},
    .lost = [](std::uint64_t, const char*) {},
    .note = note,
    .buffer_ended = [] {},
};

void look_at_marks(State& s, std::uint32_t thread) {
  const std::int64_t now_ns = monotonic_ns();
  s.marks->look(now_ns, [&](const StreamMarks::Reached& reached) {
    s.recorder->ended(reached.place, reached.number, now_ns);
    if (thread == kNone) return;
    record::Entry entry{};
    entry.started_ns = entry.ended_ns = now_ns;
    entry.object = reached.number;
    entry.stream = reached.place;
    entry.context = s.recorder->stream_at(reached.place).context;
    entry.kind = static_cast<std::uint8_t>(record::Kind::mark);
    entry.number = static_cast<std::uint32_t>(std::min<std::int64_t>(reached.error_ns, UINT32_MAX));
    s.recorder->append(thread, entry);
  });
}

// The mutex is locked. What cannot be switched on is noted, once.
void switch_to(State& s, bool is_on) {
  if (is_on == s.is_on) return;
  record::Header& header = s.recorder->header();
  if (is_on) {
    if (const std::string reason = record_calls(*s.recorder, {submitted, before_context_ends}); !reason.empty()) {
      note("cannot be switched on: " + reason);
      set(header.wanted_off, 1);
      return;
    }
    if (s.is_exact) set_activity(true);
  } else {
    if (s.is_exact) set_activity(false);
    stop_recording_calls();
    s.marks->forget();
  }
  s.is_on = is_on;
  set(header.is_off, is_on ? 0 : 1);
}

void* keep(void*) {
  const Unrecorded unrecorded;
  State& s = state();
  record::Header& header = s.recorder->header();
  const std::uint32_t thread = s.recorder->thread();
  std::int64_t flushed_ns = monotonic_ns();
  std::uint64_t buffers = 0, calls = 0;
  for (;;) {
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, s.marks->is_waiting() ? &kMarkRest : &kRest, nullptr);
    const std::lock_guard lock(s.mutex);
    if (s.is_ending) return nullptr;
    const std::int64_t now_ns = monotonic_ns();
    std::atomic_ref(header.beat_ns).store(now_ns, std::memory_order_release);
    switch_to(s, get(header.wanted_off) == 0);
    if (s.is_on) look_at_marks(s, thread);
    if (const std::uint32_t wanted = get(header.stacks_wanted); s.stacks && wanted != get(header.stacks_given)) {
      set(header.stacks, s.recorder->text(s.stacks->take()));
      set(header.stacks_given, wanted);
    }
    if (!s.is_exact || !s.is_on || now_ns - flushed_ns < kFlushPeriodNs) continue;
    // As for captures: buffers fill by themselves unless the program is quiet.
    std::uint64_t now = 0;
    for (std::uint32_t i = 0; i < header.threads; ++i) now += s.recorder->thread_at(i).calls;
    if (activity_buffers() == buffers && now != calls) flush_activity(false);
    buffers = activity_buffers();
    calls = now;
    flushed_ns = now_ns;
  }
}

void finish() {
  State& s = state();
  if (s.process != ::getpid()) return;  // the exit of a forked child is not the program's
  s.marks->turn_off();
  if (s.is_exact) flush_activity(true);
  abandon_calls();
  record::Header& header = s.recorder->header();
  std::atomic_ref(header.ended_ns).store(monotonic_ns(), std::memory_order_release);
  if (get(header.state) == static_cast<std::uint32_t>(record::State::running))
    set(header.state, static_cast<std::uint32_t>(record::State::ended));
  // A driver that does not answer must not keep the process from ending.
  for (int tries = 0; tries < 100; ++tries) {
    if (s.mutex.try_lock()) {
      s.is_ending = true;
      return s.mutex.unlock();
    }
    const timespec rest{0, 1'000'000};
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, nullptr);
  }
}

void in_child() {
  abandon_calls();
  abandon_activity();
  state().marks->turn_off();
}

// Returns why nothing can be recorded, or empty.
std::string start(State& s) {
  if (const char* const missing = bind_cuda_driver(); missing != nullptr)
    return std::string("the CUDA driver lacks ") + missing;
  if (s.is_exact)
    if (std::string reason = enable_activity(kActivityUser, false); !reason.empty()) return reason;
  if (std::string reason = record_calls(*s.recorder, {submitted, before_context_ends}); !reason.empty()) return reason;
  s.is_on = true;
  return {};
}

}  // namespace

void start_record() {
  State& s = state();
  const char* const folder = std::getenv(record::kFolderVariable);
  if (folder == nullptr || s.recorder) return;
  std::uint64_t bytes = kDefaultBytes;
  if (const char* const text = std::getenv(record::kBytesVariable);
      text != nullptr && std::strtoull(text, nullptr, 10) > 0)
    bytes = std::strtoull(text, nullptr, 10);
  const int descriptor = create_file_of_process(folder, record::kSuffix, O_RDWR);
  if (descriptor < 0) {
    std::fprintf(stderr, "weir: cannot write a recording into %s: %s\n", folder, std::strerror(errno));
    return;
  }
  std::string reason;
  s.recorder = Recorder::create(descriptor, bytes, Recorder::When::overwrites, reason);
  ::close(descriptor);  // the memory keeps the file
  if (!s.recorder) {
    std::fprintf(stderr, "weir: the program is not recorded: %s\n", reason.c_str());
    return;
  }
  s.process = ::getpid();
  const bool is_for_hangs = std::getenv(record::kHangVariable) != nullptr;
  s.marks.emplace(cuda_driver(), is_for_hangs ? kHangMarkPeriodNs : kMarkPeriodNs);
  record::Header& header = s.recorder->header();
  std::string words;
  for (const std::string& word : own_words()) words.append(word.c_str(), word.size() + 1);
  header.command_line = s.recorder->text(words);
  s.is_exact = std::getenv(record::kExactVariable) != nullptr;
  header.is_exact = s.is_exact ? 1 : 0;
  header.beat_ns = header.started_ns;
  const bool begins_off = std::getenv(record::kOffVariable) != nullptr;
  if (begins_off) set(header.wanted_off, 1);
  ::pthread_atfork(nullptr, nullptr, in_child);
  std::atexit(finish);
  if (reason = start(s); !reason.empty()) {
    note("nothing is recorded: " + reason);
    set(header.state, static_cast<std::uint32_t>(record::State::refused));
    return;
  }
  set(header.state, static_cast<std::uint32_t>(record::State::running));
  if (is_for_hangs) s.stacks.emplace(folder);
  start_own_thread(keep);
}

}  // namespace weir::inject
