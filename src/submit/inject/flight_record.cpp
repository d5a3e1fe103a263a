#include "submit/inject/flight_record.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>

#include "submit/inject/process.h"
#include "submit/inject/program_stacks.h"
#include "submit/inject/stream_marks.h"

namespace weir::inject {
namespace {

using record::kNone;

constexpr std::uint64_t kDefaultBytes = std::uint64_t{64} << 20;
// A mark costs the thread that launches 2 to 5 us (H200, driver 580, November 2026): at most half a percent of its
// time; twice that where somebody wants to know which command hangs.
constexpr std::int64_t kMarkPeriodNs = 1'000'000, kHangMarkPeriodNs = 500'000;
// Between looks, with and without marks. Each look takes locks of the driver.
constexpr timespec kMarkRest{0, 2'000'000}, kRest{0, 20'000'000};
constexpr std::size_t kStacksBytes = 61'440;  // and a text is never longer
constexpr std::int64_t kFlushPeriodNs = 1'000'000'000;

struct State {
  const RecordedVendor* vendor = nullptr;
  pid_t process = 0;
  std::unique_ptr<Recorder> recorder;
  std::optional<StreamMarks> marks;
  std::optional<ProgramStacks> stacks;
  bool is_exact = false, is_for_hangs = false;
  std::atomic<bool> is_keeping{false}, is_ending{false};
  std::mutex mutex;  // protects what follows
  bool is_on = false;
};

// Never destroyed: threads of the program may still launch while it exits.
State& state() {
  static State& kState = *new State;
  return kState;
}

void set(std::uint32_t& word, std::uint32_t to) noexcept { std::atomic_ref(word).store(to, std::memory_order_release); }
std::uint32_t get(std::uint32_t& word) noexcept { return std::atomic_ref(word).load(std::memory_order_acquire); }

constexpr CallsUser kCallsUser{
    .submitted =
        [](const Submitted& command) noexcept {
          const Unrecorded unrecorded;
          State& s = state();
          const bool is_wanted = command.is_suspect && s.is_for_hangs;
          // A program that often waits for its stream says by that how far it is.
          const std::int64_t known_ns =
              std::atomic_ref(s.recorder->stream_at(command.place).ended_ns).load(std::memory_order_relaxed);
          if (!is_wanted && command.now_ns - known_ns < kHangMarkPeriodNs) return;
          s.marks->after(command.stream, command.place, command.number, command.now_ns, is_wanted);
        },
    .stream_appears = [](std::uint32_t place, void* stream,
                         void* context) noexcept { state().marks->know(place, stream, context); },
    .before_stream_ends = [](void* stream) noexcept { state().marks->before_end(stream); },
    .captures_change = [](bool is_any) noexcept { state().marks->set_captures(is_any); },
    .before_context_ends =
        []() noexcept {
          const Unrecorded unrecorded;
          state().marks->forget();
        },
};

CallsUser calls_user(const State& s) noexcept {
  CallsUser user = kCallsUser;
  user.is_for_hangs = s.is_for_hangs;
  return user;
}

void look_at_marks(State& s, std::uint32_t thread) {
  const std::int64_t now_ns = monotonic_ns();
  Recorder& recorder = *s.recorder;
  s.marks->look(
      now_ns,
      [&](const StreamMarks::Reached& reached) {
        recorder.ended(reached.place, reached.number, now_ns);
        if (thread == kNone) return;
        record::Entry entry{};
        entry.started_ns = entry.ended_ns = now_ns;
        entry.object = reached.number;
        entry.stream = reached.place;
        entry.context = recorder.stream_at(reached.place).context;
        entry.kind = static_cast<std::uint8_t>(record::Kind::mark);
        entry.number = static_cast<std::uint32_t>(std::min<std::int64_t>(reached.error_ns, UINT32_MAX));
        recorder.append(thread, entry);
      },
      [&](std::uint32_t place, std::uint64_t number) {
        std::atomic_ref(recorder.stream_at(place).pending).store(number, std::memory_order_release);
      });
  s.marks->mark_ends(now_ns, [&](std::uint32_t place) {
    record::Stream& stream = recorder.stream_at(place);
    return StreamMarks::Counts{std::atomic_ref(stream.submitted).load(std::memory_order_acquire),
                               std::atomic_ref(stream.ended).load(std::memory_order_acquire),
                               std::atomic_ref(stream.submitted_ns).load(std::memory_order_acquire)};
  });
}

// The mutex is locked. What cannot be switched on is noted, once.
void switch_to(State& s, bool is_on) {
  if (is_on == s.is_on) return;
  record::Header& header = s.recorder->header();
  if (is_on) {
    if (const std::string reason = s.vendor->switch_on(*s.recorder, calls_user(s), s.is_exact); !reason.empty()) {
      note_in_record("cannot be switched on: " + reason);
      set(header.wanted_off, 1);
      return;
    }
  } else {
    s.vendor->switch_off(s.is_exact);
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
  s.is_keeping.store(true, std::memory_order_release);
  std::int64_t flushed_ns = monotonic_ns();
  std::uint64_t handed_over = 0, calls = 0;
  while (!s.is_ending.load()) {
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, s.marks->is_waiting() ? &kMarkRest : &kRest, nullptr);
    const std::lock_guard lock(s.mutex);
    if (s.is_ending.load()) break;
    const std::int64_t now_ns = monotonic_ns();
    std::atomic_ref(header.beat_ns).store(now_ns, std::memory_order_release);
    try {
      switch_to(s, get(header.wanted_off) == 0);
    } catch (const std::bad_alloc&) {  // the next look tries again
    }
    if (s.is_on) look_at_marks(s, thread);
    if (!s.is_exact || !s.is_on || now_ns - flushed_ns < kFlushPeriodNs) continue;
    // Buffers fill by themselves unless the program is quiet, and asking for them costs a busy program a few percent.
    std::uint64_t now = 0;
    for (std::uint32_t i = 0; i < header.threads; ++i) now += s.recorder->thread_at(i).calls;
    if (s.vendor->handed_over() == handed_over && now != calls) s.vendor->flush(false);
    handed_over = s.vendor->handed_over();
    calls = now;
    flushed_ns = now_ns;
  }
  return nullptr;
}

// A thread of its own: the other one may be stuck in a driver that does not answer, which is when stacks are wanted.
void* answer_stacks(void*) {
  State& s = state();
  record::Header& header = s.recorder->header();
  while (!s.is_ending.load()) {
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &kRest, nullptr);
    const std::uint32_t wanted = get(header.stacks_wanted);
    if (wanted == get(header.stacks_given)) continue;
    try {
      s.recorder->rewrite(get(header.stacks), s.stacks->take());
    } catch (const std::bad_alloc&) {  // an answer without stacks
    }
    set(header.stacks_given, wanted);
  }
  return nullptr;
}

void finish() {
  State& s = state();
  if (s.process != ::getpid()) return;  // the exit of a forked child is not the program's
  s.is_ending.store(true);
  s.marks->turn_off();
  if (s.is_exact) s.vendor->flush(true);
  s.vendor->abandon(false);
  record::Header& header = s.recorder->header();
  std::atomic_ref(header.ended_ns).store(monotonic_ns(), std::memory_order_release);
  if (get(header.state) == static_cast<std::uint32_t>(record::State::running))
    set(header.state, static_cast<std::uint32_t>(record::State::ended));
  // Its thread may be calling the driver, which must not go away meanwhile; but a driver that does not answer must not
  // keep the process from ending.
  for (int tries = 0; tries < 100 && !s.mutex.try_lock(); ++tries) {
    const timespec rest{0, 1'000'000};
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, nullptr);
  }
}

void in_child() {
  State& s = state();
  s.vendor->abandon(true);
  s.marks->turn_off();
  Recorder::abandon_thread();
}

// Returns why nothing can be recorded, or empty.
std::string start(State& s) {
  if (std::string reason = s.vendor->prepare(s.is_exact); !reason.empty()) return reason;
  if (get(s.recorder->header().wanted_off) != 0) {
    set(s.recorder->header().is_off, 1);
    return {};
  }
  if (std::string reason = s.vendor->switch_on(*s.recorder, calls_user(s), s.is_exact); !reason.empty()) return reason;
  s.is_on = true;
  return {};
}

}  // namespace

Recorder& flight_recorder() noexcept { return *state().recorder; }

void note_in_record(const std::string& text) {
  Recorder& recorder = *state().recorder;
  const std::string before(recorder.text_at(recorder.header().message));
  if (before.find(text) != std::string::npos) return;
  set(recorder.header().message, recorder.text(before.empty() ? text : before + "; " + text));
}

void start_flight_record(const RecordedVendor& vendor) {
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
  s.vendor = &vendor;
  s.process = ::getpid();
  s.is_for_hangs = std::getenv(record::kHangVariable) != nullptr;
  s.marks.emplace(vendor.driver, s.is_for_hangs ? kHangMarkPeriodNs : kMarkPeriodNs, s.recorder->stream_places());
  record::Header& header = s.recorder->header();
  std::string words;
  for (const std::string& word : own_words()) words.append(word.c_str(), word.size() + 1);
  header.command_line = s.recorder->text(words);
  s.is_exact = std::getenv(record::kExactVariable) != nullptr;
  header.is_exact = s.is_exact ? 1 : 0;
  header.beat_ns = header.started_ns;
  if (std::getenv(record::kOffVariable) != nullptr) set(header.wanted_off, 1);
  if (reason = start(s); !reason.empty()) {
    note_in_record("nothing is recorded: " + reason);
    set(header.state, static_cast<std::uint32_t>(record::State::refused));
    return;
  }
  ::pthread_atfork(nullptr, nullptr, in_child);
  std::atexit(finish);
  set(header.state, static_cast<std::uint32_t>(record::State::running));
  start_own_thread(keep);
  // The program may forbid itself system calls (seccomp) from now on; our thread makes its rarer ones when it starts.
  for (int tries = 0; tries < 1000 && !s.is_keeping.load(std::memory_order_acquire); ++tries) {
    const timespec rest{0, 100'000};
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, nullptr);
  }
  if (!s.is_for_hangs) return;
  // Room for them now, and only once: names may use up the rest.
  set(header.stacks, s.recorder->text(std::string(kStacksBytes, ' ')));
  s.stacks.emplace(folder);
  start_own_thread(answer_stacks);
}

}  // namespace weir::inject
