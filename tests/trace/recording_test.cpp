#include "trace/recording.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "trace/importer_testing.h"
#include "trace/recording_testing.h"

namespace weir {
namespace {

template <class Value>
void overwrite(std::string& bytes, std::size_t at, Value value) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
}

std::uint64_t dropped_from(const Recording& recording, std::string_view reason) {
  for (const auto& [why, count] : recording.dropped)
    if (why.find(reason) != std::string::npos) return count;
  return 0;
}

std::string refusal_of(std::string_view contents) {
  try {
    read_recording(contents, "7.weirrec");
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::input);
    EXPECT_FALSE(error.hint.empty());
    return error.what();
  }
  return "not rejected";
}

// Everything that readers of recordings rely on.
void check_recording(const Recording& recording) {
  std::int64_t before = INT64_MIN;
  for (const RecordedEntry& entry : recording.entries) {
    ASSERT_GE(entry.ended_ns, before);
    before = entry.ended_ns;
    ASSERT_TRUE(entry.thread == record::kNone || entry.thread < recording.threads.size());
    ASSERT_TRUE(entry.stream == record::kNone || entry.stream < recording.streams.size());
    ASSERT_LE(recording.text(entry.name).size(), recording.texts.size());
    ASSERT_LE(recording.function(entry.function).size(), recording.texts.size());
  }
  for (const record::Thread& thread : recording.threads) ASSERT_LT(::strnlen(thread.name, 16), 16U);
  ASSERT_LE(recording.command().size(), recording.texts.size());
}

// Two threads, whose calls alternate.
RecordingBuilder recorded_threads() {
  RecordingBuilder builder;
  const std::uint32_t first = builder.add_thread(77, "main"), second = builder.add_thread(78, "worker");
  const std::uint32_t stream = builder.add_stream(13), other = builder.add_stream(14);
  builder.launch(first, stream, "one", 100, 110);
  builder.launch(second, other, "two", 105, 108);
  builder.call(first, record::Kind::event_record, "cuEventRecord", stream, 120, 125, {}, 0xabc);
  builder.mark(second, stream, 1, 123, 40);
  return builder;
}

TEST(Recording, reads_what_was_written) {
  RecordingBuilder builder = recorded_threads();
  builder.header().lost = 3;
  builder.header().message = builder.add_text("nothing works");
  const Recording recording = read_recording(builder.bytes(), "7.weirrec");
  check_recording(recording);
  EXPECT_TRUE(recording.dropped.empty());
  EXPECT_EQ(recording.header.pid, 4711U);
  EXPECT_EQ(recording.header.lost, 3U);
  EXPECT_EQ(recording.text(recording.header.message), "nothing works");
  EXPECT_EQ(recording.command(), (std::vector<std::string>{"./program", "two words"}));
  ASSERT_EQ(recording.entries.size(), 4U);
  EXPECT_EQ(recording.text(recording.entries[0].name), "two");
  EXPECT_EQ(recording.threads[recording.entries[0].thread].id, 78U);
  EXPECT_EQ(recording.streams[recording.entries[0].stream].id, 14U);
  EXPECT_EQ(recording.function(recording.entries[0].function), "cuLaunchKernel");
  EXPECT_EQ(recording.entries[0].number, 1U);
  EXPECT_EQ(recording.text(recording.entries[1].name), "one");
  EXPECT_EQ(static_cast<record::Kind>(recording.entries[2].kind), record::Kind::mark);
  EXPECT_EQ(recording.entries[2].number, 40U);
  EXPECT_EQ(recording.entries[3].object, 0xabcU);
  EXPECT_EQ(recording.streams[0].submitted, 1U);
  EXPECT_EQ(recording.streams[0].ended, 1U);
}

TEST(Recording, calls_that_return_at_one_time_stay_in_order) {
  RecordingBuilder builder;
  const std::uint32_t thread = builder.add_thread(77), late = builder.add_thread(78);
  const std::uint32_t stream = builder.add_stream(13);
  builder.launch(late, stream, "late", 900, 950);  // so that there is something to sort
  for (int i = 0; i < 3000; ++i) builder.launch(thread, stream, i % 2 == 0 ? "even" : "odd", 500, 500);
  const Recording recording = read_recording(builder.bytes(), "7.weirrec");
  ASSERT_EQ(recording.entries.size(), 3001U);
  for (std::uint32_t i = 0; i < 3000; ++i) ASSERT_EQ(recording.entries[i].number, i + 2);
  EXPECT_EQ(recording.text(recording.entries.back().name), "late");
}

TEST(Recording, the_newest_entries_are_kept) {
  RecordingBuilder builder(3);
  const std::uint32_t thread = builder.add_thread(77), stream = builder.add_stream(13);
  const auto each = static_cast<std::int64_t>(record::kChunkEntries);
  const std::int64_t all = each * 7 + 5;
  for (std::int64_t i = 0; i < all; ++i) builder.launch(thread, stream, "kernel", i * 10, i * 10 + 1);
  const Recording recording = read_recording(builder.bytes(), "7.weirrec");
  check_recording(recording);
  EXPECT_EQ(recording.header.claimed, 8U);
  ASSERT_EQ(static_cast<std::int64_t>(recording.entries.size()), each * 2 + 5);
  for (std::size_t i = 0; i < recording.entries.size(); ++i)
    ASSERT_EQ(recording.entries[i].number, static_cast<std::uint32_t>(all) - recording.entries.size() + i + 1);
}

TEST(Recording, other_files_are_refused) {
  const std::string whole = recorded_threads().bytes();
  EXPECT_NE(refusal_of("").find("7.weirrec: is not a recording of weir"), std::string::npos);
  EXPECT_NE(refusal_of("{}").find("WEIRREC1"), std::string::npos);
  EXPECT_NE(refusal_of(std::string(whole.size(), '\0')).find("WEIRREC1"), std::string::npos);
  std::string later = whole;
  overwrite(later, offsetof(record::Header, version), std::uint32_t{2});
  EXPECT_NE(refusal_of(later).find("version 2, and this weir reads version 1"), std::string::npos);
  EXPECT_NE(refusal_of(std::string_view(whole).substr(0, sizeof(record::Header) - 1)).find("ends within the header"),
            std::string::npos);
}

TEST(Recording, every_prefix_is_read_as_far_as_it_goes) {
  RecordingBuilder builder = recorded_threads();
  for (int i = 0; i < 3000; ++i) builder.launch(0, 0, "kernel", 200 + i, 201 + i);
  const std::string whole = builder.bytes();
  std::size_t entries = 0;
  for (std::size_t size = sizeof(record::Header); size < whole.size(); size += 997) {
    // Memory of that size exactly, so that a reader of what follows is found out.
    const std::vector<char> part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    const Recording recording = read_recording({part.data(), part.size()}, "7.weirrec");
    check_recording(recording);
    EXPECT_GE(recording.entries.size(), entries) << size;
    entries = recording.entries.size();
    EXPECT_FALSE(recording.dropped.empty() && size < whole.size() - record::kChunkBytes) << size;
  }
  EXPECT_GT(entries, 0U);
  EXPECT_EQ(read_recording(whole, "7.weirrec").entries.size(), 3004U);
}

TEST(Recording, numbers_that_lie_are_counted) {
  RecordingBuilder builder = recorded_threads();
  record::Entry odd{};
  odd.started_ns = odd.ended_ns = 300;
  odd.stream = 4000;
  odd.context = 1;
  odd.name = 13;  // within a text
  builder.append(0, odd);
  odd.kind = 99;
  builder.append(0, odd);
  std::string bytes = builder.bytes();
  const std::uint64_t chunk = builder.header().chunks_at;
  overwrite(bytes, chunk + offsetof(record::ChunkHeader, thread), std::uint32_t{12345});
  Recording recording = read_recording(bytes, "7.weirrec");
  check_recording(recording);
  EXPECT_EQ(recording.entries.size(), 5U);
  EXPECT_EQ(dropped_from(recording, "kind"), 1U);
  EXPECT_EQ(dropped_from(recording, "stream of an entry"), 1U);
  EXPECT_EQ(dropped_from(recording, "name of an entry"), 1U);
  EXPECT_EQ(dropped_from(recording, "thread of an entry"), 3U);
  EXPECT_EQ(recording.entries.back().stream, record::kNone);
  EXPECT_EQ(recording.entries.back().thread, record::kNone);

  overwrite(bytes, chunk + offsetof(record::ChunkHeader, count), UINT32_MAX);
  recording = read_recording(bytes, "7.weirrec");
  check_recording(recording);
  EXPECT_EQ(dropped_from(recording, "beyond the end of its chunk"), UINT32_MAX - record::kChunkEntries);
}

TEST(Recording, tables_that_lie_are_cut) {
  const std::string whole = recorded_threads().bytes();
  for (const std::size_t field : {offsetof(record::Header, threads_at), offsetof(record::Header, streams_at),
                                  offsetof(record::Header, texts_at), offsetof(record::Header, chunks_at)})
    for (const std::uint64_t offset :
         {std::uint64_t{0}, std::uint64_t{3}, whole.size() - 1, whole.size(), UINT64_MAX - 5}) {
      std::string bytes = whole;
      overwrite(bytes, field, offset);
      check_recording(read_recording(bytes, "7.weirrec"));
    }
  for (const std::size_t field :
       {offsetof(record::Header, threads), offsetof(record::Header, streams), offsetof(record::Header, text_bytes),
        offsetof(record::Header, chunks), offsetof(record::Header, texts_used)}) {
    std::string bytes = whole;
    overwrite(bytes, field, UINT32_MAX);
    const Recording recording = read_recording(bytes, "7.weirrec");
    check_recording(recording);
    EXPECT_FALSE(recording.dropped.empty() && field != offsetof(record::Header, text_bytes)) << field;
  }
}

TEST(Recording, texts_that_lie_are_empty) {
  Recording recording;
  EXPECT_TRUE(recording.text(4).empty());
  recording.texts = std::string("\0\0\0\0\xff\xff\xff\xff", 8);
  for (std::uint32_t number = 0; number < 20; ++number) EXPECT_TRUE(recording.text(number).empty()) << number;
  EXPECT_TRUE(recording.text(UINT32_MAX).empty());
  EXPECT_TRUE(recording.function(UINT32_MAX).empty());
  EXPECT_TRUE(recording.command().empty());
}

TEST(Recording, damaged_bytes_are_read_or_refused) {
  RecordingBuilder builder = recorded_threads();
  for (int i = 0; i < 2000; ++i) builder.launch(0, 0, "kernel", 200 + i, 201 + i);
  const std::string whole = builder.bytes();
  std::mt19937 random(4711);
  std::uniform_int_distribution<std::size_t> anywhere(12, whole.size() - 1), header(12, sizeof(record::Header) - 1);
  std::uniform_int_distribution<int> value(0, 255), many(1, 200);
  for (int round = 0; round < 300; ++round) {
    std::string bytes = whole;
    for (int i = many(random); i > 0; --i)
      bytes[round % 2 == 0 ? anywhere(random) : header(random)] = static_cast<char>(value(random));
    check_recording(read_recording(bytes, "7.weirrec"));
  }
}

TEST(Recording, a_file_says_the_same_as_its_bytes) {
  const ScratchFolder folder;
  const std::string bytes = recorded_threads().bytes();
  const auto path = folder.write("7.weirrec", bytes);
  const Recording recording = read_recording(path), same = read_recording(bytes, "7.weirrec");
  check_recording(recording);
  ASSERT_EQ(recording.entries.size(), same.entries.size());
  for (std::size_t i = 0; i < same.entries.size(); ++i)
    EXPECT_EQ(std::memcmp(&recording.entries[i], &same.entries[i], sizeof(record::Entry)), 0);
  EXPECT_EQ(recording.texts, same.texts);
  EXPECT_THROW(read_recording(folder / "missing.weirrec"), Error);
  EXPECT_THROW(read_recording(folder.write("other.weirrec", "{}")), Error);
}

// As a program does, a thread begins chunks anew: no entry may be of two of them.
TEST(Recording, chunks_that_change_meanwhile_are_left_out) {
  constexpr std::uint64_t kChunks = 2;
  RecordingBuilder builder(kChunks);
  builder.add_thread(77);
  std::string bytes = builder.bytes();
  const std::uint64_t chunks_at = builder.header().chunks_at;
  std::atomic<bool> is_over{false};
  std::atomic<std::uint64_t> rounds{0};
  const auto word = [&](std::uint64_t at) {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(bytes.data() + at));
  };
  std::thread writer([&] {
    std::minstd_rand random(4711);
    for (std::uint64_t sequence = 1; !is_over.load(); ++sequence) {
      const std::uint64_t at = chunks_at + (sequence - 1) % kChunks * record::kChunkBytes;
      const auto count =
          std::atomic_ref(*reinterpret_cast<std::uint32_t*>(bytes.data() + at + offsetof(record::ChunkHeader, count)));
      word(at).store(0, std::memory_order_release);
      count.store(0, std::memory_order_release);
      word(at).store(sequence, std::memory_order_release);
      for (std::uint32_t i = 0; i < 50; ++i) {
        const std::uint64_t entry = at + sizeof(record::ChunkHeader) + i * sizeof(record::Entry);
        word(entry + offsetof(record::Entry, started_ns)).store(sequence);
        word(entry + offsetof(record::Entry, ended_ns)).store(sequence);
        word(entry + offsetof(record::Entry, object)).store(i);
        word(entry + offsetof(record::Entry, stream)).store(UINT64_MAX);
        count.store(i + 1, std::memory_order_release);
      }
      rounds.store(sequence);
      // So that most looks find a whole chunk, and some are at work when it is begun anew.
      for (volatile std::uint32_t rest = static_cast<std::uint32_t>(random()) % 20'000; rest > 0;) rest = rest - 1;
    }
  });
  std::size_t looks = 0, torn = 0, seen = 0;
  for (; looks < 5000 || rounds.load() < 2000; ++looks) {
    const Recording recording = read_recording(bytes, "7.weirrec");
    seen += recording.entries.size();
    // Of each chunk the first entries are there, and no others.
    std::int64_t sequence = 0;
    std::uint64_t next = 0;
    for (const RecordedEntry& entry : recording.entries) {
      if (entry.ended_ns != sequence) next = 0;
      sequence = entry.ended_ns;
      torn += entry.started_ns != sequence || entry.object != next++ ? 1 : 0;
    }
  }
  is_over = true;
  writer.join();
  EXPECT_EQ(torn, 0U);
  EXPECT_LE(seen, looks * kChunks * 50);
}

}  // namespace
}  // namespace weir
