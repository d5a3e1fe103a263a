// The memory that a recorder writes, by threads against each other. A thread belongs to one recorder for good, so each
// test uses threads of its own.
#include "submit/inject/recorder.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <thread>
#include <vector>

#include "submit/inject/stream_marks.h"
#include "trace/recording.h"

namespace weir::testing {
namespace {

using inject::Recorder;
using record::kNone;

// A file without a name.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(::memfd_create("recording", MFD_CLOEXEC)) {}
  ~MemoryFile() { ::close(descriptor_); }
  int descriptor() const { return descriptor_; }
  std::string contents() const {
    struct stat facts{};
    EXPECT_EQ(::fstat(descriptor_, &facts), 0);
    std::string text(static_cast<std::size_t>(facts.st_size), '\0');
    EXPECT_EQ(::pread(descriptor_, text.data(), text.size(), 0), facts.st_size);
    return text;
  }

 private:
  int descriptor_;
};

std::unique_ptr<Recorder> made(int descriptor, std::uint64_t bytes, Recorder::When when) {
  std::string reason;
  auto recorder = Recorder::create(descriptor, bytes, when, reason);
  EXPECT_NE(recorder, nullptr) << reason;
  return recorder;
}

void in_threads(int count, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

std::uint32_t stream_of(Recorder& recorder, std::uint64_t handle) {
  return recorder.stream(handle, kNone, {.context = 1});
}

void launch(Recorder& recorder, std::uint32_t stream, std::uint32_t name, std::uint32_t correlation) {
  const std::uint32_t thread = recorder.thread();
  recorder.begin(thread, {.stream = stream, .context = 1, .name = name, .function = 5, .kind = record::Kind::launch},
                 inject::monotonic_ns());
  recorder.end(thread, correlation, 0, inject::monotonic_ns());
}

TEST(Recorder, keeps_the_newest_calls_of_each_thread_in_order) {
  const MemoryFile file;
  const auto recorder = made(file.descriptor(), 1 << 20, Recorder::When::overwrites);
  recorder->header().functions[5] = recorder->text("cuLaunchKernel");
  constexpr std::uint32_t kEach = 50'000;
  in_threads(4, [&](int number) {
    const std::uint32_t stream = stream_of(*recorder, static_cast<std::uint64_t>(number) + 10);
    const std::uint32_t name = recorder->text("kernel " + std::to_string(number));
    for (std::uint32_t i = 1; i <= kEach; ++i) launch(*recorder, stream, name, i);
  });
  const Recording recording = read_recording(file.contents(), "test");
  EXPECT_TRUE(recording.dropped.empty());
  EXPECT_EQ(recording.header.lost, 0U);
  std::map<std::uint32_t, std::uint32_t> last;  // by thread
  std::map<std::uint32_t, std::size_t> kept;
  for (const RecordedEntry& entry : recording.entries) {
    ASSERT_NE(entry.thread, kNone);
    // Each thread has a stream and a kernel of its own.
    EXPECT_EQ(recording.function(entry.function), "cuLaunchKernel");
    EXPECT_EQ(recording.text(entry.name), "kernel " + std::to_string(recording.streams[entry.stream].handle - 10));
    EXPECT_EQ(entry.number, entry.correlation);
    if (last.contains(entry.thread)) {
      EXPECT_EQ(entry.correlation, last[entry.thread] + 1);
    }
    last[entry.thread] = entry.correlation;
    ++kept[entry.thread];
  }
  // One that ended early may have been overwritten altogether; whatever is there reaches to its end.
  for (const auto& [thread, number] : last) EXPECT_EQ(number, kEach);
  EXPECT_GT(recording.entries.size(), 12 * record::kChunkEntries);  // of 16 chunks, four were open
  for (int stream = 0; stream < 4; ++stream)
    EXPECT_EQ(recording.streams[static_cast<std::size_t>(stream)].submitted, kEach);
}

TEST(Recorder, a_reader_beside_the_threads_gets_every_entry_once) {
  const auto recorder = made(-1, 4 << 20, Recorder::When::drains);
  constexpr std::uint32_t kEach = 200'000;
  std::atomic<int> running{4};
  std::map<std::uint32_t, std::uint64_t> sums, counts;  // by stream
  const auto use = [&](const record::Thread&, const record::Entry& entry) {
    sums[entry.stream] += entry.correlation;
    ++counts[entry.stream];
  };
  std::thread reader([&] {
    while (running.load() > 0) recorder->drain(use);
    recorder->drain(use);
  });
  std::atomic<std::uint64_t> written{0};
  in_threads(4, [&](int number) {
    const std::uint32_t stream = stream_of(*recorder, static_cast<std::uint64_t>(number) + 10);
    for (std::uint32_t i = 1; i <= kEach; ++i) launch(*recorder, stream, record::kNoText, i);
    written.fetch_add(kEach);
    running.fetch_sub(1);
  });
  reader.join();
  std::uint64_t got = 0;
  for (const auto& [stream, count] : counts) got += count;
  EXPECT_EQ(got + recorder->lost(), written.load());
  if (recorder->lost() == 0) {
    for (const auto& [stream, sum] : sums) EXPECT_EQ(sum, std::uint64_t{kEach} * (kEach + 1) / 2);
  }
}

TEST(Recorder, entries_that_nobody_drains_are_counted_as_lost) {
  const auto recorder = made(-1, 1 << 20, Recorder::When::drains);
  constexpr std::uint64_t kMany = 40'000;  // there is room for 21,840
  in_threads(1, [&](int) {
    for (std::uint32_t i = 1; i <= kMany; ++i) launch(*recorder, kNone, record::kNoText, i);
  });
  std::uint64_t got = 0;
  recorder->drain([&](const record::Thread&, const record::Entry&) { ++got; });
  EXPECT_EQ(got + recorder->lost(), kMany);
  EXPECT_GT(recorder->lost(), 0U);
  EXPECT_EQ(got, 16 * record::kChunkEntries);
}

TEST(Recorder, texts_have_one_number_each_until_there_is_no_room) {
  const auto recorder = made(-1, 1 << 20, Recorder::When::drains);
  const std::uint32_t first = recorder->text("one");
  EXPECT_NE(first, record::kNoText);
  EXPECT_EQ(recorder->text("one"), first);
  EXPECT_NE(recorder->text("two"), first);
  EXPECT_EQ(recorder->text_at(first), "one");
  EXPECT_EQ(recorder->text(""), record::kNoText);
  std::uint32_t last = first;
  for (int i = 0; last != record::kNoText && i < 1000; ++i)
    last = recorder->text(std::string(60'000, 'x') + std::to_string(i));
  EXPECT_EQ(last, record::kNoText);
  EXPECT_EQ(recorder->text("one"), first);
}

TEST(Recorder, places_of_threads_that_ended_are_used_again) {
  const auto recorder = made(-1, 1 << 20, Recorder::When::drains);
  for (int i = 0; i < 3000; ++i) in_threads(1, [&](int) { EXPECT_NE(recorder->thread(), kNone); });
}

TEST(Recorder, a_destroyed_stream_is_another_one_afterwards) {
  const auto recorder = made(-1, 1 << 20, Recorder::When::drains);
  in_threads(1, [&](int) {
    const std::uint32_t first = stream_of(*recorder, 10);
    launch(*recorder, first, record::kNoText, 1);
    EXPECT_EQ(stream_of(*recorder, 10), first);
    const std::uint32_t before = recorder->generation();
    recorder->stream_destroyed(10);
    EXPECT_NE(recorder->generation(), before);
    const std::uint32_t second = stream_of(*recorder, 10);
    EXPECT_EQ(recorder->stream_at(second).submitted, 0U);
    // A context takes all its streams along.
    stream_of(*recorder, 11);
    recorder->context_destroyed(1);
    EXPECT_EQ(recorder->stream_at(second).is_destroyed, 1U);
  });
}

TEST(Recorder, what_was_awaited_has_ended_unless_it_came_later) {
  const auto recorder = made(-1, 1 << 20, Recorder::When::drains);
  in_threads(1, [&](int) {
    const std::uint32_t stream = stream_of(*recorder, 10);
    launch(*recorder, stream, record::kNoText, 1);
    const std::int64_t now = inject::monotonic_ns();
    recorder->waited(stream, 1, now, now);
    EXPECT_EQ(recorder->stream_at(stream).ended, 1U);
    launch(*recorder, stream, record::kNoText, 2);
    recorder->waited(kNone, 1, now, inject::monotonic_ns());
    EXPECT_EQ(recorder->stream_at(stream).ended, 1U);
    recorder->ended(stream, 2, inject::monotonic_ns());
    recorder->ended(stream, 1, inject::monotonic_ns());
    EXPECT_EQ(recorder->stream_at(stream).ended, 2U);
  });
}

TEST(Recorder, a_limit_of_file_sizes_is_a_reason_and_not_a_death) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{1 << 20, 1 << 20};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const MemoryFile file;
    std::string reason;
    const bool is_refused =
        Recorder::create(file.descriptor(), 64 << 20, Recorder::When::overwrites, reason) == nullptr;
    ::_exit(is_refused && reason.find("ulimit -f") != std::string::npos ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// A driver whose streams end when the test says so.
struct FakeMarks {
  static inline std::atomic<int> made{0}, dropped{0}, recorded{0};
  static inline std::atomic<std::uint64_t> reached{0};  // events with smaller numbers
  static inline std::atomic<bool> is_capturing{false};
  static void reset() { made = dropped = recorded = 0, reached = 0, is_capturing = false; }
  static inject::GateDriver driver() {
    inject::GateDriver driver;
    driver.context_of = [](void*) -> inject::Context { return is_capturing ? nullptr : reinterpret_cast<void*>(1); };
    driver.begin = [](inject::Context, inject::GateDriver::Visit*) { return true; };
    driver.end = [](const inject::GateDriver::Visit&) {};
    driver.make = []() -> inject::Event { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(++made)); };
    driver.record = [](inject::Event, void*) { return ++recorded, true; };
    driver.query = [](inject::Event event) {
      return reinterpret_cast<std::uintptr_t>(event) <= reached.load() ? inject::GateDriver::State::ended
                                                                       : inject::GateDriver::State::running;
    };
    driver.drop = [](inject::Event) { ++dropped; };
    return driver;
  }
};

struct Seen {
  std::vector<std::pair<std::uint32_t, std::uint64_t>> reached, pending;
  void look(inject::StreamMarks& marks, std::int64_t now_ns) {
    marks.look(
        now_ns, [&](const inject::StreamMarks::Reached& one) { reached.emplace_back(one.place, one.number); },
        [&](std::uint32_t place, std::uint64_t number) { pending.emplace_back(place, number); });
  }
};

TEST(StreamMarks, marks_now_and_then_and_says_how_far_a_stream_has_come) {
  FakeMarks::reset();
  const inject::GateDriver driver = FakeMarks::driver();
  inject::StreamMarks marks(driver, 1000, 8);
  void* const stream = &marks;
  for (std::uint64_t number = 1; number <= 100; ++number)
    marks.after(stream, 3, number, static_cast<std::int64_t>(number) * 100 + 5000);
  EXPECT_EQ(FakeMarks::recorded.load(), 10);
  EXPECT_TRUE(marks.is_waiting());
  Seen seen;
  seen.look(marks, 20'000);
  EXPECT_TRUE(seen.reached.empty());
  ASSERT_EQ(seen.pending.size(), 1U);
  EXPECT_EQ(seen.pending[0], std::pair(3U, std::uint64_t{1}));
  FakeMarks::reached = 10;
  seen.look(marks, 30'000);
  EXPECT_EQ(seen.reached.size(), 10U);
  EXPECT_EQ(seen.reached.back(), std::pair(3U, std::uint64_t{91}));
  EXPECT_EQ(seen.pending.back(), std::pair(3U, std::uint64_t{0}));
  EXPECT_FALSE(marks.is_waiting());
}

TEST(StreamMarks, the_end_of_a_quiet_stream_is_marked_once) {
  FakeMarks::reset();
  const inject::GateDriver driver = FakeMarks::driver();
  inject::StreamMarks marks(driver, 1'000'000'000, 8);
  int stream = 0;
  marks.know(2, &stream, reinterpret_cast<void*>(1));
  inject::StreamMarks::Counts counts{.submitted = 7, .ended = 0, .submitted_ns = 1'000};
  const auto of = [&](std::uint32_t) { return counts; };
  marks.mark_ends(500'000, of);
  EXPECT_EQ(FakeMarks::recorded.load(), 0) << "it is not quiet yet";
  FakeMarks::is_capturing = true;
  marks.mark_ends(2'000'000, of);
  EXPECT_EQ(FakeMarks::recorded.load(), 0) << "it is being captured";
  FakeMarks::is_capturing = false;
  marks.set_captures(true);
  marks.mark_ends(2'000'000, of);
  EXPECT_EQ(FakeMarks::recorded.load(), 0) << "it may begin to be captured";
  marks.set_captures(false);
  for (int i = 0; i < 3; ++i) marks.mark_ends(2'000'000, of);
  EXPECT_EQ(FakeMarks::recorded.load(), 1);
  FakeMarks::reached = 1;
  Seen seen;
  seen.look(marks, 3'000'000);
  ASSERT_EQ(seen.reached.size(), 1U);
  EXPECT_EQ(seen.reached[0], std::pair(2U, std::uint64_t{7}));
  counts.submitted = 2000;  // full
  marks.mark_ends(9'000'000, of);
  EXPECT_EQ(FakeMarks::recorded.load(), 1);
  counts.submitted = 8;
  marks.before_end(&stream);
  marks.mark_ends(9'000'000, of);
  EXPECT_EQ(FakeMarks::recorded.load(), 1) << "the stream is gone";
}

TEST(StreamMarks, threads_that_launch_and_one_that_looks) {
  FakeMarks::reset();
  FakeMarks::reached = UINT64_MAX;
  const inject::GateDriver driver = FakeMarks::driver();
  inject::StreamMarks marks(driver, 1'000, 8);
  std::atomic<bool> is_over{false};
  std::map<std::uint32_t, std::uint64_t> last;
  std::thread looking([&] {
    while (!is_over) {
      marks.look(
          inject::monotonic_ns(), [&](const inject::StreamMarks::Reached& one) { last[one.place] = one.number; },
          [](std::uint32_t, std::uint64_t) {});
      marks.mark_ends(inject::monotonic_ns(), [](std::uint32_t) { return inject::StreamMarks::Counts{}; });
    }
  });
  in_threads(4, [&](int number) {
    const auto place = static_cast<std::uint32_t>(number);
    int stream = 0;
    marks.know(place, &stream, reinterpret_cast<void*>(1));
    for (std::uint64_t i = 1; i <= 50'000; ++i) marks.after(&stream, place, i, inject::monotonic_ns());
    marks.before_end(&stream);
  });
  is_over = true;
  looking.join();
  marks.forget();
  EXPECT_GT(FakeMarks::recorded.load(), 0);
  EXPECT_EQ(FakeMarks::made.load(), FakeMarks::dropped.load());
  for (const auto& [place, number] : last) EXPECT_LE(number, 50'000U);
}

}  // namespace
}  // namespace weir::testing
