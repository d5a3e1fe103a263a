#include <fcntl.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>

#include "trace/export/capture_writer.h"
#include "trace/importer_testing.h"

namespace weir {
namespace {

using capture::kNone;

capture::Place place(std::uint32_t stream, std::uint64_t correlation, std::int64_t start, std::int64_t end) {
  capture::Place made{};
  made.device = 1;
  made.context = 4;
  made.stream = stream;
  made.channel = stream + 100;
  made.channel_type = static_cast<std::uint32_t>(capture::ChannelType::compute);
  made.correlation = correlation;
  made.started_ns = start;
  made.ended_ns = end;
  return made;
}

template <class Write>
std::string captured(const Write& write, std::uint64_t limit = UINT64_MAX) {
  ScratchFolder folder;
  const auto path = folder / "1.weircap";
  {
    CaptureWriter writer(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600), limit);
    write(writer);
  }
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Stream 7 runs `first` and records an event; stream 8 waits for it and runs `second`.
std::string small_capture() {
  return captured([](CaptureWriter& writer) {
    writer.process({42, 1, 5, 6}, "CLOCK_MONOTONIC", {"./program", "two words"});
    writer.device(1, "NVIDIA H200");
    const std::uint32_t first = writer.name("first"), second = writer.name("second");
    EXPECT_EQ(writer.name("first"), first);
    auto kernel = place(7, 10, 1000, 2000);
    kernel.submitted_ns = 900;
    writer.add(capture::KernelRecord{kernel, first, 0});
    writer.add(capture::KernelRecord{place(8, 13, 2100, 2200), second, 0});
    auto copy = place(7, 14, 2300, 2400);
    copy.channel_type = static_cast<std::uint32_t>(capture::ChannelType::async_memcpy);
    writer.add(capture::CopyRecord{copy, 4096, static_cast<std::uint32_t>(capture::CopyKind::device_to_host), kNone});
    auto memset = place(7, 15, 2500, 2600);
    memset.channel = kNone;
    writer.add(capture::CopyRecord{memset, 64, static_cast<std::uint32_t>(capture::CopyKind::memset), kNone});
    writer.add(capture::CallRecord{writer.name("cudaLaunchKernel"), 77, 10, 800, 880});
    writer.add(capture::EventRecord{4, 7, 5, kNone, 0, 11});
    writer.add(capture::SyncRecord{2, 4, 8, 5, 0, 12, 890, 891});
    writer.add(capture::SyncRecord{3, 4, 7, kNone, 0, 16, 2000, 2700});
    writer.add(capture::MarkerRecord{writer.name("step 0"), 77, 700, 3000});
    writer.finish(4000);
  });
}

TEST(WeirCapture, reads_what_was_written) {
  const ImportedTrace trace = import_sniffed(small_capture());
  EXPECT_EQ(trace.files.at(0).format, "weir_capture");
  const Timeline& timeline = trace.timeline;
  ASSERT_EQ(timeline.spans.size(), 4U);
  EXPECT_TRUE(timeline.dropped.empty());
  const Span& first = timeline.spans[0];
  EXPECT_EQ(name_of(timeline, first), "first");
  EXPECT_EQ(stream_id(timeline, first), 7U);
  EXPECT_EQ(queue_label(timeline, first), "queue 107");
  EXPECT_EQ(first.submitted_ns, 800);
  EXPECT_EQ(first.launched_ns, 900);
  EXPECT_EQ(first.seen_ns, 2700);
  EXPECT_EQ(timeline.devices.at(0).id, 1);
  EXPECT_EQ(timeline.devices.at(0).label, "GPU 1: NVIDIA H200");
  ASSERT_EQ(timeline.calls.size(), 1U);
  EXPECT_EQ(timeline.calls[0].thread, 77U);
  EXPECT_EQ(first.call, 0U);
  EXPECT_EQ(timeline.spans[1].call, kNoCall);
  EXPECT_EQ(timeline.spans[1].seen_ns, kNoTime);  // the host waited for stream 7 alone
  EXPECT_EQ(timeline.spans[2].kind, SpanKind::copy);
  EXPECT_EQ(timeline.spans[2].bytes, 4096U);
  EXPECT_GE(timeline.spans[2].queue, kCopyQueues);
  EXPECT_EQ(name_of(timeline, timeline.spans[2]), "Memcpy DtoH");
  EXPECT_EQ(timeline.spans[3].kind, SpanKind::memset);
  EXPECT_EQ(timeline.spans[3].queue, kNoQueue);
  EXPECT_TRUE(timeline.has_dependencies);
  ASSERT_EQ(timeline.dependencies.size(), 1U);
  EXPECT_EQ(timeline.dependencies[0].before, 0U);
  EXPECT_EQ(timeline.dependencies[0].after, 1U);
  ASSERT_EQ(timeline.ranges.size(), 1U);
  EXPECT_TRUE(has_note(timeline, "process 42: ./program two words"));
  EXPECT_FALSE(has_note(timeline, "no end"));
  EXPECT_EQ(timeline.source, "CUPTI activity records, CLOCK_MONOTONIC");
}

// A killed program leaves any prefix: none may fail, and none may have more than the whole.
TEST(WeirCapture, reads_every_prefix) {
  const std::string whole = small_capture();
  std::size_t spans = 0;
  for (std::size_t size = sizeof(capture::FileHeader); size < whole.size(); ++size) {
    const Timeline timeline = import_as("weir_capture", std::string_view(whole).substr(0, size));
    EXPECT_GE(timeline.spans.size(), spans) << size;
    spans = timeline.spans.size();
    EXPECT_TRUE(has_note(timeline, "no end")) << size;
  }
  EXPECT_EQ(spans, 4U);
}

TEST(WeirCapture, many_records_make_many_blocks) {
  constexpr int kMany = 20'000;
  const std::string bytes = captured([](CaptureWriter& writer) {
    for (int i = 0; i < kMany; ++i)
      writer.add(
          capture::KernelRecord{place(7, 0, i * 10 + 1, i * 10 + 5), writer.name(i % 2 == 0 ? "even" : "odd"), 0});
  });
  const Timeline timeline = import_as("weir_capture", bytes);
  ASSERT_EQ(timeline.spans.size(), std::size_t{kMany});
  EXPECT_EQ(name_of(timeline, timeline.spans[3]), "odd");
  EXPECT_EQ(name_of(timeline, timeline.spans[kMany - 2]), "even");
}

TEST(WeirCapture, a_limit_is_kept_and_told) {
  constexpr std::uint64_t kLimit = 1 << 20;
  const std::string bytes = captured(
      [](CaptureWriter& writer) {
        for (int i = 0; i < 50'000; ++i)
          writer.add(capture::KernelRecord{place(7, 0, i + 1, i + 1), writer.name("k"), 0});
        writer.flush();
        EXPECT_GT(writer.lost_records(), 0U);
      },
      kLimit);
  EXPECT_LE(bytes.size(), kLimit);
  const Timeline timeline = import_as("weir_capture", bytes);
  EXPECT_EQ(timeline.spans.size() + dropped(timeline, "size limit"), 50'000U);
  EXPECT_GT(dropped(timeline, "size limit"), 0U);
}

TEST(WeirCapture, a_file_that_cannot_be_written_loses_records_only) {
  CaptureWriter writer(::open("/dev/full", O_WRONLY));
  writer.add(capture::KernelRecord{place(7, 0, 1, 2), writer.name("k"), 0});
  writer.flush();
  EXPECT_EQ(writer.error(), ENOSPC);
  EXPECT_EQ(writer.lost_records(), 1U);
}

TEST(WeirCapture, a_full_disk_leaves_whole_blocks_and_says_so) {
  // A limit on files is the disk that a test can fill; without a handler it would end the process.
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{1'000'000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string bytes = captured([](CaptureWriter& writer) {
    for (int i = 0; i < 50'000; ++i) writer.add(capture::KernelRecord{place(7, 0, i, i + 1), writer.name("k"), 0});
    writer.finish(60'000);
    EXPECT_EQ(writer.error(), EFBIG);
  });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  const Timeline timeline = import_memory(bytes, "1.weircap", {}).timeline;
  EXPECT_GT(timeline.spans.size(), 5'000U);
  EXPECT_EQ(timeline.spans.size() + dropped(timeline, "File too large"), 50'000U);
  EXPECT_EQ(timeline.dropped.size(), 1U);
  EXPECT_TRUE(timeline.notes.empty()) << timeline.notes[0];  // it has an end
}

TEST(WeirCapture, an_abandoned_writer_writes_nothing_more) {
  const std::string bytes = captured([](CaptureWriter& writer) {
    writer.add(capture::KernelRecord{place(7, 0, 1, 2), writer.name("k"), 0});
    writer.abandon();
    writer.add(capture::KernelRecord{place(7, 0, 1, 2), 0, 0});
    EXPECT_EQ(writer.lost_records(), 1U);
  });
  EXPECT_EQ(bytes.size(), sizeof(capture::FileHeader));
}

std::string block(std::uint32_t type, std::uint32_t bytes, std::string_view payload) {
  const capture::BlockHeader header{type, bytes};
  return std::string(reinterpret_cast<const char*>(&header), sizeof(header)).append(payload);
}

TEST(WeirCapture, later_versions_blocks_and_fields_are_passed_over) {
  const std::string whole = small_capture();
  // An unknown block after the header, and call records with a field more than this weir knows.
  std::string bytes = whole.substr(0, 16) + block(999, 3, "abc") + whole.substr(16);
  const capture::ArrayHeader array{sizeof(capture::CallRecord) + 8, 1};
  const capture::CallRecord call{0, 5, 99, 1, 2};
  std::string payload(reinterpret_cast<const char*>(&array), sizeof(array));
  payload.append(reinterpret_cast<const char*>(&call), sizeof(call)).append("12345678");
  bytes +=
      block(static_cast<std::uint32_t>(capture::Block::calls), static_cast<std::uint32_t>(payload.size()), payload);
  const Timeline timeline = import_as("weir_capture", bytes);
  EXPECT_EQ(dropped(timeline, "type that this weir does not know"), 1U);
  EXPECT_EQ(timeline.spans.size(), 4U);
  ASSERT_EQ(timeline.calls.size(), 2U);
  EXPECT_EQ(timeline.calls[0].correlation, 99U);
}

TEST(WeirCapture, counts_that_lie_are_counted) {
  const std::string header = small_capture().substr(0, 16);
  const auto array_block = [](std::uint32_t record_bytes, std::uint32_t count) {
    const capture::ArrayHeader array{record_bytes, count};
    return block(static_cast<std::uint32_t>(capture::Block::kernels), sizeof(array),
                 std::string_view(reinterpret_cast<const char*>(&array), sizeof(array)));
  };
  EXPECT_EQ(dropped(import_as("weir_capture", header + array_block(80, 7)), "not there"), 7U);
  EXPECT_EQ(dropped(import_as("weir_capture", header + array_block(0, 7)), "too small"), 1U);
  EXPECT_EQ(dropped(import_as("weir_capture", header + block(4, 3, "abc")), "smaller than its type"), 1U);
  EXPECT_EQ(dropped(import_as("weir_capture", header + block(3, 3, "abc")), "smaller than its type"), 1U);
  EXPECT_EQ(dropped(import_as("weir_capture", header + block(4, UINT32_MAX, "")), "larger than blocks are"), 1U);
}

TEST(WeirCapture, refuses_other_files_and_later_formats) {
  EXPECT_NE(rejection_of("weir_capture", "{}").find("WEIRCAP1"), std::string::npos);
  std::string later = small_capture();
  later[8] = 2;
  EXPECT_NE(rejection_of("weir_capture", later).find("version 2"), std::string::npos);
}

TEST(WeirCapture, times_beyond_all_clocks_are_dropped) {
  const std::string bytes = captured([](CaptureWriter& writer) {
    writer.add(capture::KernelRecord{place(7, 10, INT64_MIN + 1, INT64_MAX), writer.name("k"), 0});
    auto kernel = place(7, 11, 10, 20);
    kernel.submitted_ns = INT64_MAX;
    writer.add(capture::KernelRecord{kernel, writer.name("k"), 0});
    writer.add(capture::CallRecord{writer.name("cuLaunchKernel"), 1, 11, INT64_MIN + 1, INT64_MAX});
  });
  const Timeline timeline = import_as("weir_capture", bytes);
  EXPECT_EQ(dropped(timeline, "beyond all clocks"), 1U);
  ASSERT_EQ(timeline.spans.size(), 1U);
  EXPECT_EQ(timeline.spans[0].launched_ns, kNoTime);
  EXPECT_EQ(timeline.spans[0].submitted_ns, kNoTime);
}

TEST(WeirCapture, waits_without_records_are_no_dependencies) {
  const std::string bytes = captured([](CaptureWriter& writer) {
    writer.add(capture::KernelRecord{place(7, 10, 1, 2), writer.name("k"), 0});
    writer.add(capture::SyncRecord{2, 4, 8, 5, 0, 12, 0, 0});
    writer.message("CUPTI has no records of events");
    writer.lost(3, "CUPTI dropped them");
  });
  const Timeline timeline = import_as("weir_capture", bytes);
  EXPECT_FALSE(timeline.has_dependencies);
  EXPECT_TRUE(has_note(timeline, "streams waited 1 times"));
  EXPECT_TRUE(has_note(timeline, "CUPTI has no records of events"));
  EXPECT_EQ(dropped(timeline, "CUPTI dropped them"), 3U);
}

TEST(WeirCapture, a_second_process_is_none) {
  const Timeline timeline = import_as("weir_capture", captured([](CaptureWriter& writer) {
                                        for (std::uint64_t pid = 1; pid <= 1000; ++pid)
                                          writer.process({pid, 1, 5, 6}, "CLOCK_MONOTONIC", {"./program"});
                                        writer.add(capture::KernelRecord{place(7, 10, 0, 0), writer.name("k"), 0});
                                        writer.finish(4000);
                                      }));
  EXPECT_EQ(timeline.notes.size(), 1U);
  EXPECT_EQ(dropped(timeline, "second block"), 999U);
  EXPECT_EQ(dropped(timeline, "could not take"), 1U);
  EXPECT_TRUE(timeline.has_exact_gaps);
}

}  // namespace
}  // namespace weir
