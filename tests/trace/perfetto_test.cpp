// Perfetto's traces, written as rocprofv3 and ROCm's system profiler lay them out, and as nobody does.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "importer_testing.h"
#include "protobuf_testing.h"

namespace weir {
namespace {

// Fields are numbered as in Perfetto's published schema.
class PerfettoTrace {
 public:
  PerfettoTrace& packet(const Proto& packet) {
    trace_.message(1, packet);
    return *this;
  }
  // A packet of sequence 1 that clears its state: on what follows, event() may rely.
  PerfettoTrace& begin(unsigned sequence = 1) {
    return packet(Proto().number(10, sequence).number(13, 1).number(42, 1));
  }
  PerfettoTrace& track(std::uint64_t uuid, std::string_view name, std::uint64_t parent = 0) {
    Proto descriptor = Proto().number(1, uuid).text(2, name);
    if (parent != 0) descriptor.number(5, parent);
    return packet(Proto().number(10, 1).message(60, descriptor));
  }
  PerfettoTrace& process(std::uint64_t uuid, std::uint64_t pid) {
    return packet(Proto().number(10, 1).message(60, Proto().number(1, uuid).message(3, Proto().number(1, pid))));
  }
  PerfettoTrace& thread(std::uint64_t uuid, std::uint64_t pid, std::uint64_t tid, std::uint64_t parent) {
    const Proto descriptor = Proto().number(1, pid).number(2, tid);
    return packet(Proto().number(10, 1).message(60, Proto().number(1, uuid).number(5, parent).message(4, descriptor)));
  }
  PerfettoTrace& event(std::uint64_t time, const Proto& event, unsigned sequence = 1) {
    return packet(Proto().number(8, time).number(10, sequence).message(11, event));
  }
  const std::string& bytes() const { return trace_.bytes(); }

 private:
  Proto trace_;
};

using Notes = std::vector<std::pair<std::string, std::variant<std::uint64_t, std::string>>>;

Proto slice(std::uint64_t track, std::string_view category, std::string_view name, const Notes& notes = {}) {
  Proto event = Proto().number(9, 1).number(11, track).text(22, category).text(23, name);
  for (const auto& [key, value] : notes) {
    Proto note = Proto().text(10, key);
    if (const auto* const number = std::get_if<std::uint64_t>(&value))
      note.number(3, *number);
    else
      note.text(6, std::get<std::string>(value));
    event.message(4, note);
  }
  return event;
}
Proto slice_end(std::uint64_t track) { return Proto().number(9, 2).number(11, track); }

void add_slice(PerfettoTrace& trace, const Proto& begin, std::uint64_t track, std::uint64_t from, std::uint64_t to) {
  trace.event(from, begin).event(to, slice_end(track));
}

Notes kernel_notes(std::uint64_t from, std::uint64_t to, std::uint64_t correlation, const std::string& agent,
                   std::uint64_t queue, std::uint64_t stream) {
  return {{"begin_ns", from},
          {"end_ns", to},
          {"delta_ns", to - from},
          {"kind", std::uint64_t{11}},
          {"agent", agent},
          {"corr_id", correlation},
          {"queue", queue},
          {"tid", std::uint64_t{908}},
          {"kernel_id", std::uint64_t{5}},
          {"workgroup_size", std::uint64_t{256}},
          {"grid_size", std::uint64_t{1000}},
          {"stream_ID", stream}};
}

// As rocprofv3 7 writes it: a track for each stream and thread, annotations with everything.
std::string rocprofv3() {
  PerfettoTrace trace;
  trace.begin().process(50, 4711);
  trace.track(100, "STREAM [\" 1 \"] ", 50).track(101, "STREAM [\" 2 \"] ", 50).track(908, "THREAD 1 (908)", 50);
  add_slice(trace,
            slice(908, "hip_api", "hipLaunchKernel",
                  {{"corr_id", std::uint64_t{7}}, {"tid", std::uint64_t{908}}, {"kind", std::uint64_t{2}}}),
            908, 900, 950);
  add_slice(trace,
            slice(908, "hip_api", "hipMemcpyAsync", {{"corr_id", std::uint64_t{9}}, {"tid", std::uint64_t{908}}}), 908,
            960, 980);
  add_slice(trace, slice(908, "marker_api", "iteration 3", {{"corr_id", std::uint64_t{11}}}), 908, 890, 5000);
  add_slice(trace,
            slice(100, "memory_copy", "MEMORY_COPY_HOST_TO_DEVICE",
                  {{"src_agent", std::string("Agent-0")},
                   {"dst_agent", std::string("Agent-3")},
                   {"copy_bytes", std::uint64_t{4096}},
                   {"corr_id", std::uint64_t{9}},
                   {"stream_ID", std::uint64_t{1}}}),
            100, 1000, 1100);
  add_slice(trace, slice(100, "kernel_dispatch", "gemm(float*)", kernel_notes(2000, 3000, 7, "Agent-3", 4, 1)), 100,
            2000, 3000);
  // Overlaps the one before, on another stream and the same queue.
  add_slice(trace,
            slice(101, "kernel_dispatch", "ncclDevKernel_AllReduce", kernel_notes(2500, 3500, 8, "Agent-3", 4, 2)), 101,
            2500, 3500);
  return trace.bytes();
}

const Span* span_named(const Timeline& timeline, std::string_view name) {
  for (const Span& span : timeline.spans)
    if (span.name < timeline.names.size() && timeline.names[span.name] == name) return &span;
  return nullptr;
}

TEST(Perfetto, rocprofv3s_tracks_and_annotations_become_a_timeline) {
  const ImportedTrace trace = import_sniffed(rocprofv3());
  EXPECT_EQ(trace.files.at(0).format, "perfetto");
  const Timeline& timeline = trace.timeline;
  ASSERT_EQ(timeline.spans.size(), 3U);
  EXPECT_EQ(timeline.spans[0].kind, SpanKind::copy);
  EXPECT_EQ(timeline.spans[0].bytes, 4096U);
  EXPECT_GE(timeline.spans[0].queue, kCopyQueues);
  const Span* const gemm = span_named(timeline, "gemm(float*)");
  ASSERT_NE(gemm, nullptr);
  EXPECT_EQ(gemm->kind, SpanKind::kernel);
  EXPECT_EQ(gemm->started_ns, 2000);
  EXPECT_EQ(gemm->ended_ns, 3000);
  EXPECT_EQ(gemm->submitted_ns, 900) << "by the correlation";
  EXPECT_EQ(gemm->threads, 256);
  EXPECT_EQ(gemm->blocks, 4U) << "1000 threads in blocks of 256";
  const Span* const nccl = span_named(timeline, "ncclDevKernel_AllReduce");
  ASSERT_NE(nccl, nullptr);
  EXPECT_EQ(nccl->kind, SpanKind::collective);
  EXPECT_EQ(nccl->queue, gemm->queue);
  EXPECT_NE(nccl->stream, gemm->stream);
  ASSERT_EQ(timeline.devices.size(), 1U);
  EXPECT_EQ(timeline.devices[0].label, "agent 3") << "CPUs are agents too";
  EXPECT_EQ(timeline.devices[0].id, 3) << "the copy's GPU is the one that it goes to";
  ASSERT_EQ(timeline.streams.size(), 2U);
  ASSERT_EQ(timeline.calls.size(), 2U);
  EXPECT_EQ(timeline.calls[0].thread, 908U);
  ASSERT_EQ(timeline.ranges.size(), 1U);
  EXPECT_EQ(timeline.names.at(timeline.ranges[0].name), "iteration 3");
  EXPECT_EQ(timeline.processes.size(), 1U);
  EXPECT_TRUE(timeline.dropped.empty());
}

// rocprofv3 of ROCm 6: a track for each agent and stream, no stream among the annotations.
TEST(Perfetto, lanes_may_be_in_the_names_of_tracks_only) {
  PerfettoTrace trace;
  trace.begin();
  trace.track(1, "COMPUTE AGENT [4] STREAM [2] (GPU)").track(2, "COPY to AGENT [4] STREAM [2] (GPU)");
  trace.track(3, "COMPUTE AGENT [5] QUEUE [1] (GPU)");
  add_slice(trace, slice(1, "kernel_dispatch", "a", {{"queue", std::uint64_t{9}}}), 1, 10, 20);
  add_slice(trace, slice(2, "memory_copy", "MEMORY_COPY_DEVICE_TO_DEVICE"), 2, 20, 30);
  add_slice(trace, slice(3, "kernel_dispatch", "b"), 3, 30, 40);
  const Timeline timeline = import_as("perfetto", trace.bytes());
  ASSERT_EQ(timeline.spans.size(), 3U);
  EXPECT_EQ(timeline.spans[0].stream, timeline.spans[1].stream);
  EXPECT_EQ(timeline.streams.at(timeline.spans[0].stream).id, 2U);
  EXPECT_EQ(timeline.devices.at(timeline.streams.at(timeline.spans[1].stream).device).id, 4);
  EXPECT_EQ(timeline.devices.at(timeline.streams.at(timeline.spans[2].stream).device).id, 5);
  EXPECT_NE(timeline.spans[2].queue, kNoQueue);
  EXPECT_TRUE(has_note(timeline, "hardware queues stand for them"));
}

// The system profiler names GPUs by their number among GPUs for kernels, and among all agents for copies.
TEST(Perfetto, the_system_profilers_copies_are_on_the_gpu_of_their_stream) {
  PerfettoTrace trace;
  trace.begin();
  trace.track(1, "GPU Kernel Dispatch [0] Queue 3").track(2, "GPU Kernel Dispatch [1] Queue 4");
  trace.track(3, "GPU Memory Copy to Agent [3] Thread 0").track(4, "GPU Memory Copy to Agent [0] Thread 0");
  const auto kernel = [](std::uint64_t stream) {
    return Notes{
        {"stream_id", stream}, {"workgroup_size", std::string("(64,4,1)")}, {"grid_size", std::string("(512,8,1)")}};
  };
  add_slice(trace, slice(1, "rocm_kernel_dispatch", "a", kernel(5)), 1, 10, 20);
  add_slice(trace, slice(2, "rocm_kernel_dispatch", "b", kernel(6)), 2, 10, 20);
  const auto copy = [](std::uint64_t stream, std::uint64_t from, std::uint64_t to) {
    return Notes{{"stream_id", stream}, {"src_agent_id", from}, {"dst_agent_id", to}, {"bytes", std::uint64_t{8}}};
  };
  add_slice(trace, slice(3, "rocm_memory_copy", "MEMORY_COPY_HOST_TO_DEVICE", copy(6, 0, 3)), 3, 30, 40);
  // A stream without kernels: two CPUs come before the GPUs, as copies show.
  add_slice(trace, slice(4, "rocm_memory_copy", "MEMORY_COPY_DEVICE_TO_HOST", copy(9, 2, 1)), 4, 50, 60);
  const Timeline timeline = import_as("perfetto", trace.bytes());
  ASSERT_EQ(timeline.spans.size(), 4U);
  const auto device = [&](std::size_t i) {
    return timeline.devices.at(timeline.streams.at(timeline.spans[i].stream).device).id;
  };
  EXPECT_EQ(timeline.spans[0].blocks, 16U);
  EXPECT_EQ(timeline.spans[0].threads, 256);
  EXPECT_EQ(device(2), 1);
  EXPECT_EQ(timeline.spans[2].stream, timeline.spans[1].stream);
  EXPECT_EQ(device(3), 0);
  EXPECT_TRUE(has_note(timeline, "order of agents"));
}

// A writer's clock that counts from packet to packet in microseconds, names by number, the default track.
TEST(Perfetto, what_packets_leave_to_those_before_them_is_understood) {
  PerfettoTrace trace;
  const Proto defaults = Proto().number(58, 64).message(11, Proto().number(11, 100));
  const auto reading = [](unsigned clock, std::uint64_t time) { return Proto().number(1, clock).number(2, time); };
  const Proto snapshot =
      Proto().message(1, reading(6, 5'000'000)).message(1, reading(64, 1000).number(3, 1).number(4, 1000));
  trace.packet(Proto().number(10, 7).number(13, 1).message(59, defaults).message(6, snapshot));
  const auto entry = [](std::uint64_t id, std::string_view name) { return Proto().number(1, id).text(2, name); };
  const Proto interned = Proto()
                             .message(1, entry(1, "kernel_dispatch"))
                             .message(2, entry(1, "gemm"))
                             .message(3, entry(1, "stream_ID"))
                             .message(3, entry(2, "agent"))
                             .message(29, entry(5, "GPU-2"));
  const Proto kernel = Proto()
                           .number(9, 1)
                           .number(3, 1)
                           .number(10, 1)
                           .message(4, Proto().number(1, 1).signed_number(4, 3))
                           .message(4, Proto().number(1, 2).number(17, 5))
                           .fixed64(47, 99);
  const auto next = [&](std::uint64_t after_us, const Proto& event) {
    return Proto().number(8, after_us).number(10, 7).number(13, 2).message(11, event);
  };
  trace.packet(next(10, kernel).message(12, interned));
  trace.packet(next(5, Proto().number(9, 2)));
  trace.packet(next(1, kernel));
  trace.packet(next(2, Proto().number(9, 2)));
  // Another writer knows none of these numbers.
  trace.packet(Proto().number(8, 6'000'000).number(10, 8).number(13, 1).message(11, kernel));
  const Timeline timeline = import_as("perfetto", trace.bytes());
  ASSERT_EQ(timeline.spans.size(), 2U);
  EXPECT_EQ(timeline.spans[0].started_ns, 5'010'000);
  EXPECT_EQ(timeline.spans[0].ended_ns, 5'015'000);
  EXPECT_EQ(timeline.spans[1].started_ns, 5'016'000);
  EXPECT_EQ(timeline.spans[1].ended_ns, 5'018'000);
  EXPECT_EQ(timeline.names.at(timeline.spans[0].name), "gemm");
  EXPECT_EQ(timeline.streams.at(0).id, 3U);
  EXPECT_EQ(timeline.devices.at(0).label, "GPU 2");
  EXPECT_EQ(dropped(timeline, "no packet defines"), 1U);
}

TEST(Perfetto, events_after_a_loss_wait_for_a_new_beginning) {
  PerfettoTrace trace;
  trace.begin();
  const auto kernel = [&](std::uint64_t from, std::uint64_t flags) {
    const Proto begin = slice(1, "kernel_dispatch", "k");
    trace.packet(Proto().number(8, from).number(10, 1).number(13, flags).message(11, begin));
    trace.packet(Proto().number(8, from + 5).number(10, 1).number(13, flags).message(11, slice_end(1)));
  };
  kernel(10, 2);
  trace.packet(Proto().number(10, 1).number(42, 1));  // packets were lost
  kernel(20, 2);
  kernel(30, 0);  // does not need them
  trace.begin();
  kernel(40, 2);
  const Timeline timeline = import_as("perfetto", trace.bytes());
  EXPECT_EQ(timeline.spans.size(), 3U);
  EXPECT_EQ(dropped(timeline, "packets which were lost"), 2U);
}

// rocprofv3 writes each kernel's end after its begin, although they overlap. Others sort by time.
TEST(Perfetto, slices_that_overlap_on_a_track_keep_their_own_ends) {
  const auto kernel = [](const char* name, std::uint64_t from, std::uint64_t to) {
    return slice(1, "kernel_dispatch", name, kernel_notes(from, to, from, "Agent-1", 1, 1));
  };
  PerfettoTrace in_pairs, by_time;
  in_pairs.begin().event(10, kernel("a", 10, 30)).event(30, slice_end(1));
  in_pairs.event(20, kernel("b", 20, 40)).event(40, slice_end(1));
  by_time.begin().event(10, kernel("a", 10, 30)).event(20, kernel("b", 20, 40));
  by_time.event(30, slice_end(1)).event(40, slice_end(1));
  for (const PerfettoTrace* trace : {&in_pairs, &by_time}) {
    const Timeline timeline = import_as("perfetto", trace->bytes());
    ASSERT_EQ(timeline.spans.size(), 2U);
    EXPECT_EQ(timeline.spans[0].ended_ns, 30);
    EXPECT_EQ(timeline.names.at(timeline.spans[0].name), "a");
    EXPECT_EQ(timeline.spans[1].ended_ns, 40);
  }
}

TEST(Perfetto, processes_are_found_through_parents_and_circles_of_them_end) {
  PerfettoTrace trace;
  trace.begin().process(50, 11).process(60, 22);
  trace.track(1, "STREAM [1]", 50).track(2, "STREAM [1]", 60);
  trace.track(3, "STREAM [4]", 4).track(4, "STREAM [5]", 3).track(5, "STREAM [6]", 5);
  trace.thread(6, 22, 23, 60);
  for (std::uint64_t track = 1; track <= 5; ++track)
    add_slice(trace, slice(track, "kernel_dispatch", "k"), track, 10 * track, 10 * track + 5);
  add_slice(trace, slice(6, "hip_api", "hipLaunchKernel"), 6, 5, 6);
  const Timeline timeline = import_as("perfetto", trace.bytes());
  ASSERT_EQ(timeline.spans.size(), 5U);
  ASSERT_EQ(timeline.processes.size(), 2U);
  const auto process = [&](std::size_t i) {
    return timeline.devices.at(timeline.streams.at(timeline.spans[i].stream).device).process;
  };
  EXPECT_EQ(process(0), 0);
  EXPECT_EQ(process(1), 1);
  EXPECT_EQ(process(2), 0) << "of nobody known";
  ASSERT_EQ(timeline.calls.size(), 1U);
  EXPECT_EQ(timeline.calls[0].process, 1);
  EXPECT_EQ(timeline.calls[0].thread, 23U);
}

TEST(Perfetto, packets_in_packets_are_unpacked) {
  const std::string inner = rocprofv3();
  std::string packed(compressBound(static_cast<uLong>(inner.size())), '\0');
  auto size = static_cast<uLongf>(packed.size());
  ASSERT_EQ(compress2(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(inner.data()),
                      static_cast<uLong>(inner.size()), 9),
            Z_OK);
  packed.resize(size);
  const std::string whole = Proto().message(1, Proto().text(50, packed)).bytes();
  EXPECT_EQ(import_as("perfetto", whole).spans.size(), 3U);
  // Cut off, and within each other.
  const std::string cut = Proto().message(1, Proto().text(50, packed.substr(0, packed.size() / 2))).bytes();
  EXPECT_EQ(dropped(import_as("perfetto", inner + cut), "damaged or too long"), 1U);
  const Timeline nested = import_as("perfetto", inner + Proto().message(1, Proto().text(50, "x\x9c" + whole)).bytes());
  EXPECT_EQ(nested.spans.size(), 3U);
}

TEST(Perfetto, a_trace_of_something_else_is_rejected_with_what_is_in_it) {
  PerfettoTrace trace;
  trace.begin();
  for (std::uint64_t i = 0; i < 12; ++i) add_slice(trace, slice(1, "host", "main"), 1, 10 + 2 * i, 11 + 2 * i);
  add_slice(trace, slice(1, "mpi", "MPI_Send"), 1, 100, 110);
  const std::string text = rejection_of("perfetto", trace.bytes());
  EXPECT_NE(text.find("12 of 'host', 1 of 'mpi'"), std::string::npos) << text;
  EXPECT_NE(text.find("kernel_dispatch"), std::string::npos) << text;
  EXPECT_NE(rejection_of("perfetto", PerfettoTrace().begin().bytes()).find("no slices"), std::string::npos);
  // Beside work, the same is only said.
  add_slice(trace, slice(2, "kernel_dispatch", "k"), 2, 10, 20);
  EXPECT_TRUE(has_note(import_as("perfetto", trace.bytes()), "12 of 'host', 1 of 'mpi'"));
}

TEST(Perfetto, odd_slices_are_counted_by_reason) {
  PerfettoTrace trace;
  trace.begin();
  add_slice(trace, slice(1, "kernel_dispatch", "good"), 1, 10, 20);
  add_slice(trace, slice(1, "kernel_dispatch", "backwards"), 1, 40, 30);
  trace.event(50, slice_end(1));
  trace.packet(Proto().number(10, 1).message(11, slice(1, "kernel_dispatch", "no time")));
  trace.packet(Proto().number(8, 1).number(58, 70).number(10, 1).message(11, slice(1, "kernel_dispatch", "clock")));
  trace.event(UINT64_MAX, slice(1, "kernel_dispatch", "never"));
  trace.packet(Proto().number(8, 9).raw("\x5a\x7f"));
  trace.event(60, slice(2, "kernel_dispatch", "open"));
  trace.event(60, slice(3, "kernel_dispatch", "cut off", kernel_notes(60, 75, 1, "GPU-1", 1, 1)));
  const Timeline timeline = import_as("perfetto", trace.bytes());
  ASSERT_EQ(timeline.spans.size(), 2U);
  EXPECT_EQ(timeline.spans[1].ended_ns, 75) << "by its annotations";
  EXPECT_EQ(dropped(timeline, "ends before it starts"), 1U);
  EXPECT_EQ(dropped(timeline, "never began"), 1U);
  EXPECT_EQ(dropped(timeline, "without a time"), 1U);
  EXPECT_EQ(dropped(timeline, "unknown clock"), 2U);
  EXPECT_EQ(dropped(timeline, "damaged packet"), 1U);
  EXPECT_EQ(dropped(timeline, "never ends"), 1U);
}

TEST(Perfetto, times_and_lengths_of_any_size_are_survived) {
  const std::vector<std::uint64_t> odd = {0, 1, UINT64_MAX, UINT64_MAX - 1, INT64_MAX, 1ULL << 62, 1ULL << 63};
  for (const std::uint64_t a : odd)
    for (const std::uint64_t b : odd) {
      PerfettoTrace trace;
      const Proto clock = Proto().number(1, 64).number(2, a).number(3, 1).number(4, b);
      trace.packet(Proto().number(10, 1).number(13, 1).message(6, Proto().message(1, clock)));
      trace.packet(
          Proto().number(10, 1).message(6, Proto().message(1, Proto().number(1, 6).number(2, b)).message(1, clock)));
      trace.packet(Proto().number(8, a).number(58, 64).number(10, 1).message(
          11, slice(1, "kernel_dispatch", "k", kernel_notes(a, b, a, "GPU-1", b, a))));
      trace.packet(Proto().number(8, b).number(58, 64).number(10, 1).message(11, slice_end(1)));
      add_slice(trace, slice(1, "kernel_dispatch", "k"), 1, 10, 20);
      EXPECT_GE(import_as("perfetto", trace.bytes()).spans.size(), 1U);
    }
}

TEST(Perfetto, a_trace_that_is_cut_off_gives_what_it_has) {
  const std::string whole = rocprofv3();
  for (std::size_t size = 0; size < whole.size(); size += 3) {
    try {
      const Timeline timeline = import_as("perfetto", std::string_view(whole).substr(0, size));
      EXPECT_LE(timeline.spans.size(), 3U);
    } catch (const Error& error) {
      EXPECT_EQ(error.fault, Fault::input);
    }
  }
  EXPECT_EQ(dropped(import_as("perfetto", whole.substr(0, whole.size() - 1)), "cut off"), 1U);
}

TEST(Perfetto, other_files_are_not_taken_for_one) {
  for (const std::string& text : {std::string("\n\n\n"), std::string("\nline\n"), std::string(300, '\n'),
                                  std::string("\x0a\x02\x50"), Proto().text(1, "abc").bytes()})
    EXPECT_THROW(import_sniffed(text), Error) << text;
  EXPECT_EQ(import_sniffed("{\"traceEvents\": []}").files.at(0).format, "kineto");
}

}  // namespace
}  // namespace weir
