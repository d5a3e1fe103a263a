// The bytes of trace/race_format.h become a log: each kind of entry, graphs, and what is torn or makes no sense.
#include "lab/race/read_log.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "base/error.h"
#include "lab/race/suspects.h"
#include "trace/race_format.h"

namespace weir::race {
namespace {

namespace format = race_format;

class LogBytes {
 public:
  LogBytes() {
    format::Header header{};
    std::memcpy(header.magic, format::kMagic, sizeof(header.magic));
    header.version = format::kVersion;
    append(header);
    text(1, "gemm");
    stream(7, 0);
    stream(8, 0);
  }
  LogBytes& text(std::uint32_t number, const std::string& text) {
    format::Entry entry = entry_of(format::Kind::text);
    entry.object = number;
    entry.accesses = static_cast<std::uint32_t>(text.size());
    append(entry);
    bytes += text;
    return *this;
  }
  LogBytes& stream(std::uint32_t number, std::uint8_t flags) {
    format::Entry entry = entry_of(format::Kind::stream, number);
    entry.flags = flags;
    append(entry);
    return *this;
  }
  LogBytes& kernel(std::uint32_t stream, std::vector<format::Access> accesses, std::uint8_t flags = 0) {
    format::Entry entry = entry_of(format::Kind::kernel, stream);
    entry.sequence = ++sequence_;
    entry.name = 1;
    entry.flags = flags;
    return add(entry, std::move(accesses));
  }
  LogBytes& call(format::Kind kind, std::uint32_t stream, std::uint64_t object = 0, std::uint8_t flags = 0,
                 std::vector<format::Access> accesses = {}, std::uint64_t other = 0) {
    format::Entry entry = entry_of(kind, stream);
    entry.object = object;
    entry.other = other;
    entry.flags = flags;
    return add(entry, std::move(accesses));
  }
  LogBytes& add(format::Entry entry, std::vector<format::Access> accesses) {
    entry.accesses = static_cast<std::uint32_t>(accesses.size());
    append(entry);
    for (const format::Access& access : accesses) append(access);
    return *this;
  }
  static format::Entry entry_of(format::Kind kind, std::uint32_t stream = format::kNone) {
    format::Entry entry{};
    entry.kind = static_cast<std::uint8_t>(kind);
    entry.thread = 1;
    entry.stream = stream;
    return entry;
  }
  Log read() const { return read_log(bytes, "log"); }

  std::string bytes;

 private:
  template <class T>
  void append(const T& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  std::uint32_t sequence_ = 0;
};

constexpr std::uint32_t kUnknown = format::kReads | format::kWrites;

TEST(RaceCommandName, is_read_as_it_is_written) {
  EXPECT_EQ(text(CommandName{1, 417}), "1.417");
  EXPECT_EQ(read_command_name("1.417"), (CommandName{1, 417}));
  for (const char* bad : {"", "1", "1.", ".1", "0.1", "1.0", "1.2.3", "1.2 ", "-1.2", "1.99999999999", "a.b"})
    EXPECT_FALSE(read_command_name(bad)) << bad;
}

TEST(RaceReadLog, a_kernel_with_its_name_stream_and_memory) {
  const Log log = LogBytes().kernel(8, {{4096, 64, kUnknown, 0}}, format::kSynchronous).read();
  ASSERT_EQ(log.calls.size(), 1u);
  const Call& call = log.calls[0];
  EXPECT_EQ(call.kind, Kind::kernel);
  EXPECT_EQ(call.name, (CommandName{1, 1}));
  EXPECT_EQ(log.streams[call.stream].name, "stream 8");
  EXPECT_EQ(log.label_of(call), "gemm");
  EXPECT_TRUE(call.is_synchronous);
  ASSERT_EQ(log.ranges_of(call).size(), 1u);
  const Range& range = log.ranges_of(call)[0];
  EXPECT_EQ(range.begin, 4096u);
  EXPECT_EQ(range.end, 4160u);
  EXPECT_TRUE(range.reads && range.writes && !range.is_exact);
  EXPECT_EQ(log.unread, 0u);
}

TEST(RaceReadLog, streams_say_how_they_meet_the_default_stream) {
  const Log log = LogBytes().stream(1, format::kLegacy).stream(2, format::kBlocking).read();
  ASSERT_EQ(log.streams.size(), 4u);
  EXPECT_TRUE(log.streams[2].is_legacy);
  EXPECT_TRUE(log.streams[3].is_blocking);
  EXPECT_FALSE(log.streams[0].is_legacy || log.streams[0].is_blocking);
}

TEST(RaceReadLog, failed_calls_did_nothing) {
  const Log log = LogBytes().kernel(7, {}, format::kFailed).read();
  EXPECT_TRUE(log.calls.empty());
  EXPECT_EQ(log.unread, 0u);
}

TEST(RaceReadLog, an_unknown_extent_ends_with_the_allocation) {
  LogBytes bytes;
  bytes.call(format::Kind::allocate, format::kNone, 0, 0, {{4096, 1000, format::kWrites, 0}});
  bytes.kernel(7, {{4200, 0, kUnknown, 0}, {9000, 0, kUnknown, 1}});
  const Log log = bytes.read();
  ASSERT_EQ(log.calls.size(), 2u);
  const auto ranges = log.ranges_of(log.calls[1]);
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[0].end, 5096u);
  EXPECT_EQ(ranges[1].end, 9001u);  // nobody's: the pointer itself
}

TEST(RaceReadLog, a_graph_launch_touches_what_was_captured) {
  LogBytes bytes;
  bytes.call(format::Kind::capture_begins, 7);
  bytes.kernel(7, {{4096, 64, format::kWrites | format::kExact, 0}}, format::kCaptured);
  bytes.call(format::Kind::event_record, 7, 55, format::kCaptured);
  bytes.call(format::Kind::stream_wait_event, 8, 55);  // the wait brings stream 8 in
  bytes.kernel(8, {{4160, 64, format::kWrites | format::kExact, 0}}, format::kCaptured);
  bytes.call(format::Kind::capture_ends, 7, 100);
  bytes.call(format::Kind::graph_made, format::kNone, 200, 0, {}, 100);
  bytes.kernel(8, {{4096, 64, format::kReads | format::kExact, 0}});
  bytes.call(format::Kind::graph_launch, 7, 200);
  const Log log = bytes.read();
  EXPECT_EQ(log.unread, 0u);
  ASSERT_EQ(log.calls.size(), 6u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(log.calls[i].is_captured) << i;
    EXPECT_EQ(log.calls[i].capture, 1u) << i;
  }
  EXPECT_FALSE(log.calls[4].is_captured);
  ASSERT_EQ(log.ranges_of(log.calls[5]).size(), 1u);  // the two are one piece
  EXPECT_EQ(log.ranges_of(log.calls[5])[0].begin, 4096u);
  EXPECT_EQ(log.ranges_of(log.calls[5])[0].end, 4224u);
  const Suspects suspects = find_suspects(log);
  ASSERT_EQ(suspects.pairs.size(), 1u);
  EXPECT_EQ(suspects.pairs[0].first, 4u);
  EXPECT_EQ(suspects.pairs[0].second, 5u);
}

TEST(RaceReadLog, a_graph_that_was_not_captured_touches_nothing_known) {
  const Log log = LogBytes().call(format::Kind::graph_launch, 7, 999).read();
  ASSERT_EQ(log.calls.size(), 1u);
  EXPECT_TRUE(log.ranges_of(log.calls[0]).empty());
}

TEST(RaceReadLog, checkpoints_and_hashes) {
  LogBytes bytes;
  format::Entry checkpoint = LogBytes::entry_of(format::Kind::checkpoint);
  checkpoint.name = 1;
  bytes.add(checkpoint, {});
  format::Entry hashed = LogBytes::entry_of(format::Kind::hashed);
  hashed.sequence = 3;
  bytes.add(hashed, {{11, 12, kUnknown, 0}, {21, 22, kUnknown, 1}, {31, 32, 0, 2}});
  const Log log = bytes.read();
  ASSERT_EQ(log.calls.size(), 1u);
  EXPECT_EQ(log.label_of(log.calls[0]), "gemm");
  ASSERT_EQ(log.hashes.size(), 1u);
  EXPECT_EQ(log.hashes[0].name, (CommandName{1, 3}));
  EXPECT_EQ(log.hashes[0].before_behind,
            (std::vector<std::pair<std::uint64_t, std::uint64_t>>{{11, 12}, {21, 22}, {0, 0}}));
}

TEST(RaceReadLog, what_makes_no_sense_is_counted) {
  LogBytes bytes;
  bytes.kernel(99, {});                                          // no such stream
  bytes.call(static_cast<format::Kind>(77), 7);                  // no such kind
  bytes.call(format::Kind::capture_ends, 7, 1);                  // nothing was being captured
  bytes.kernel(7, {}, format::kCaptured);                        // nor here
  bytes.kernel(7, {{4096, UINT64_MAX, kUnknown, 0}});            // beyond all memory
  bytes.kernel(7, {{4096, 64, 0, 0}, {4096, 64, kUnknown, 1}});  // neither read nor written
  const Log log = bytes.read();
  EXPECT_EQ(log.unread, 6u);
  EXPECT_EQ(log.calls.size(), 3u);
  EXPECT_EQ(log.ranges.size(), 1u);
}

TEST(RaceReadLog, rejects_other_files_and_versions) {
  EXPECT_THROW(read_log("", "log"), Error);
  EXPECT_THROW(read_log(std::string(100, 'x'), "log"), Error);
  LogBytes bytes;
  ++bytes.bytes[8];
  EXPECT_THROW(bytes.read(), Error);
}

TEST(RaceReadLog, every_torn_end_is_read_up_to_there) {
  LogBytes bytes;
  bytes.kernel(7, {{4096, 64, kUnknown, 0}}).call(format::Kind::event_record, 7, 1).text(2, "a text").kernel(8, {});
  const std::size_t header = sizeof(format::Header);
  for (std::size_t size = header; size < bytes.bytes.size(); ++size) {
    const Log log = read_log(std::string_view(bytes.bytes).substr(0, size), "log");
    EXPECT_LE(log.calls.size(), 2u);
    EXPECT_LE(log.unread, 1u);
  }
}

TEST(RaceReadLog, changed_bytes_break_nothing) {
  LogBytes bytes;
  bytes.call(format::Kind::allocate, format::kNone, 0, format::kHost, {{4096, 1000, format::kWrites, 0}});
  bytes.call(format::Kind::capture_begins, 7);
  bytes.kernel(7, {{4096, 64, kUnknown, 0}}, format::kCaptured).call(format::Kind::capture_ends, 7, 5);
  bytes.call(format::Kind::graph_made, format::kNone, 6, 0, {}, 5).call(format::Kind::graph_launch, 7, 6);
  bytes.kernel(8, {{4096, 64, kUnknown, 0}}).call(format::Kind::context_synchronize, format::kNone);
  std::mt19937 random(2);
  for (int round = 0; round < 20'000; ++round) {
    std::string changed = bytes.bytes;
    for (int i = 0; i < 3; ++i)
      changed[sizeof(format::Header) + random() % (changed.size() - sizeof(format::Header))] =
          static_cast<char>(random());
    const Log log = read_log(changed, "log");
    for (const Call& call : log.calls) {
      ASSERT_LE(std::uint64_t{call.first_range} + call.range_count, log.ranges.size());
      ASSERT_LT(call.label, log.texts.size());
      ASSERT_TRUE(call.stream == kNoStream || call.stream < log.streams.size());
    }
    for (const Suspect& suspect : find_suspects(log).pairs) ASSERT_LT(suspect.begin, suspect.end);
  }
}

}  // namespace
}  // namespace weir::race
