// The runtime's log is read as it was written: scenes go through text of every version and come back.
#include "amd/log/log_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "amd/log/log_summary.h"
#include "base/error.h"
#include "support/amd_log_text.h"

namespace weir::amd {
namespace {

using testing::amd_log_text;
using testing::Gfx;
using testing::LogTextOptions;
using testing::random_scene;
using testing::Scene;
using testing::SceneQueue;
using testing::SceneStream;
using testing::sequential_scene;

struct Read {
  LogReading reading;
  LogSummary summary;
};

Read read(const std::string& text) {
  Read out;
  out.reading = read_log_text(text, "test.log", out.summary);
  return out;
}

const ProcessSummary* process_of(const LogSummary& summary, int pid) {
  for (const ProcessSummary& process : summary.processes())
    if (process.pid == pid) return &process;
  return nullptr;
}

// What the log of one process must say, by the scene.
void expect_process(const Scene& scene, int index, const LogTextOptions& options, const LogSummary& summary) {
  const bool is_old = options.rocm < 63;
  const auto address = [&](const SceneQueue& queue) { return is_old ? queue.swq : queue.ring_base; };
  const ProcessSummary* const process =
      process_of(summary, scene.processes[static_cast<std::size_t>(index)].namespace_pid);
  ASSERT_NE(process, nullptr);
  std::size_t queues = 0, streams = 0, launches = 0;
  for (const SceneQueue& queue : scene.queues) {
    if (queue.process != index || queue.swq == 0) continue;
    ++queues;
    const QueueSummary* const found = process->queue(address(queue));
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->swq, queue.swq);
    EXPECT_EQ(found->is_ring, !is_old);
    EXPECT_EQ(found->packets, queue.ring_bytes / 64);
    EXPECT_EQ(found->priority, queue.priority);
    EXPECT_EQ(found->creation_ns(), queue.created_ns - queue.asked_ns);
    EXPECT_EQ(found->created_ns, queue.created_ns);
    EXPECT_EQ(found->deleted_ns, queue.deleted_ns == 0 ? kNoTime : queue.deleted_ns);
    int users = 0;
    std::uint64_t own = 0, most_backlog = 0;
    std::map<std::string, std::uint64_t> kernels;
    for (const SceneStream& stream : scene.streams)
      users += &scene.queues[static_cast<std::size_t>(stream.queue)] == &queue;
    for (const auto& launch : scene.launches) {
      if (&scene.queues[static_cast<std::size_t>(scene.streams[static_cast<std::size_t>(launch.stream)].queue)] !=
          &queue)
        continue;
      ++own;
      ++kernels[launch.kernel];
      most_backlog = std::max(most_backlog, launch.write_index - launch.read_index);
    }
    EXPECT_EQ(found->streams_most, users);
    EXPECT_EQ(found->launched(), own);
    EXPECT_EQ(found->dispatches, own);
    launches += own;
    std::map<std::string, std::uint64_t> counted;
    for (const auto& [kernel, count] : found->kernels) counted[summary.kernel_names()[kernel]] = count;
    EXPECT_EQ(counted, kernels);
    if (own > 0 && options.rocm != 50) {
      EXPECT_EQ(found->backlog.count(), own);
      EXPECT_EQ(found->backlog.max(), most_backlog);
      EXPECT_EQ(found->id, is_old ? std::nullopt : std::optional(queue.hsa_id));
    } else {
      EXPECT_EQ(found->backlog.count(), 0u);
    }
  }
  for (const SceneStream& stream : scene.streams) {
    if (stream.process != index) continue;
    ++streams;
    const auto found = std::find_if(process->streams.begin(), process->streams.end(),
                                    [&](const StreamSummary& s) { return s.handle == stream.handle; });
    ASSERT_NE(found, process->streams.end());
    EXPECT_EQ(found->hwq, address(scene.queues[static_cast<std::size_t>(stream.queue)]));
    EXPECT_EQ(found->uses.size(), 1u);
    if (!options.has_calls) continue;
    EXPECT_FALSE(found->is_default);
    EXPECT_EQ(found->created_ns, stream.created_ns);
    EXPECT_EQ(found->priority, stream.priority);
    EXPECT_EQ(found->destroyed_ns, stream.destroyed_ns == 0 ? kNoTime : stream.destroyed_ns);
  }
  EXPECT_EQ(process->queues.size(), queues);
  EXPECT_EQ(process->streams.size(), streams);
  EXPECT_EQ(process->dispatches, launches);
  EXPECT_EQ(process->named, 0u);
  EXPECT_EQ(process->errors + process->warnings, 0u);
}

TEST(AmdLogRoundTrip, scenes_come_back_from_every_version) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Scene scene = random_scene(seed, Gfx::gfx9_4_3);
    LogTextOptions options;
    options.rocm = std::array{50, 60, 63, 70, 72}[seed % 5];
    options.level = options.rocm == 72 ? 5 : 4 + static_cast<int>(seed % 2);
    options.has_colours = seed % 3 != 0;
    options.has_places = seed % 4 != 0;
    options.is_glued = seed % 2 == 0;
    options.has_long_messages = seed % 3 == 1;
    options.has_carriage_returns = seed % 5 == 2;
    options.has_noise = seed % 2 == 1;
    const Read log = read(amd_log_text(scene, options));
    SCOPED_TRACE(::testing::Message() << "seed " << seed << ", ROCm " << options.rocm);
    EXPECT_EQ(log.reading.without_pid, 0u);
    EXPECT_TRUE(log.reading.unread.empty());
    EXPECT_EQ(log.summary.restart_count(), 0u);
    for (std::size_t i = 0; i < scene.processes.size(); ++i)
      expect_process(scene, static_cast<int>(i), options, log.summary);
  }
}

TEST(AmdLogRoundTrip, level_3_is_joined_by_the_order_of_its_lines) {
  const Scene scene = sequential_scene(16, 4, 3);
  LogTextOptions options;
  options.level = 3;
  const Read log = read(amd_log_text(scene, options));
  EXPECT_EQ(log.reading.without_pid, log.reading.records);
  ASSERT_EQ(log.summary.processes().size(), 1u);
  const ProcessSummary& process = log.summary.processes()[0];
  EXPECT_FALSE(process.pid.has_value());
  EXPECT_EQ(process.dispatches, 0u);
  EXPECT_EQ(process.named, 48u);
  EXPECT_EQ(process.launches_without_queue, 0u);
  ASSERT_EQ(process.queues.size(), 4u);
  for (const QueueSummary& queue : process.queues) {
    EXPECT_EQ(queue.streams_most, 4);
    EXPECT_EQ(queue.named, 12u);
    EXPECT_FALSE(queue.id.has_value());
  }
  EXPECT_EQ(process.queues[0].creation_ns(), 9'177'000);
}

TEST(AmdLogRoundTrip, a_mask_without_calls_still_tells_streams_by_their_commands) {
  const Scene scene = sequential_scene(6, 2, 4);
  LogTextOptions options;
  options.has_calls = false;
  const Read log = read(amd_log_text(scene, options));
  ASSERT_EQ(log.summary.processes().size(), 1u);
  EXPECT_EQ(log.summary.processes()[0].streams.size(), 6u);
  EXPECT_EQ(log.summary.processes()[0].launches_without_stream, 0u);
  EXPECT_TRUE(log.summary.processes()[0].streams[0].is_default);
}

// Lines of all kinds by hand; %s in place of the head.
std::string record(int level, std::uint64_t us, const std::string& message) {
  return ":" + std::to_string(level) + ":rocdevice.cpp            :2967: " + std::to_string(us) +
         " us: [pid:77 tid: 0x7f8edc1c4400] " + message + "\n";
}

constexpr const char* kDispatch =
    "SWq=0x10, HWq=0x20, id=1, Dispatch Header = 0xb02 (type=2, barrier=1, acquire=1, release=1), setup=3, grid=[1, 1, "
    "1], workgroup=[1, 1, 1], completion_signal=0x0, correlation_id=0, rptr=4294967290, wptr=3";

TEST(AmdLogReader, indexes_wrap_at_32_bits) {
  const Read log = read(record(4, 20161701400, kDispatch));
  EXPECT_EQ(log.summary.processes().at(0).queues.at(0).backlog.max(), 9u);
}

TEST(AmdLogReader, a_cut_packet_makes_no_queue) {
  const Read log = read(record(4, 20161701400, kDispatch) + record(4, 20161701401, "SWq=0x10, HWq=0x2") +
                        record(4, 20161701402, "SWq=0x10, HWq=0x30, id=1"));
  EXPECT_EQ(log.summary.processes().at(0).queues.size(), 1u);
  ASSERT_EQ(log.reading.unread.size(), 1u);
  EXPECT_EQ(log.reading.unread[0].count, 2u);
  EXPECT_EQ(log.reading.unread[0].first_line, 2u);
}

TEST(AmdLogReader, a_last_line_without_an_end_is_not_believed) {
  std::string text = record(4, 20161701400, kDispatch) + record(4, 20161701400, kDispatch);
  text.resize(text.size() - 3);
  const Read log = read(text);
  EXPECT_EQ(log.summary.processes().at(0).dispatches, 1u);
  EXPECT_EQ(log.reading.lines, 2u);
  ASSERT_EQ(log.reading.unread.size(), 1u);
  EXPECT_EQ(log.reading.unread[0].first_line, 2u);
}

TEST(AmdLogReader, errors_are_told_by_level_and_by_queue_never_by_words) {
  const Read log =
      read(record(3, 20161701400, "ShaderName : error_kernel_failed(int)") + record(4, 20161701401, kDispatch) +
           record(1, 20161701402, "Failed creating memory") + record(2, 20161701403, "careful") +
           record(0, 20161701404,
                  "Callback: Queue 0x20 aborting with error : HSA_STATUS_ERROR_EXCEPTION: "
                  "An HSAIL operation resulted in a hardware exception. code: 0x1016"));
  const ProcessSummary& process = log.summary.processes().at(0);
  EXPECT_EQ(process.errors, 2u);
  EXPECT_EQ(process.warnings, 1u);
  EXPECT_EQ(process.queue_errors, 1u);
  EXPECT_EQ(process.messages.at(2).queue, 0x20u);
  EXPECT_EQ(process.messages.at(2).at.line, 5u);
}

TEST(AmdLogReader, kernels_of_graph_nodes_are_not_launches) {
  const Read log = read(record(3, 20161701400, " hipGraphExecKernelNodeSetParams ( 0x1, 0x2, 0x3 ) ") +
                        record(3, 20161701401, "ShaderName : node(int)") +
                        record(3, 20161701402, "hipGraphExecKernelNodeSetParams: Returned hipSuccess : ") +
                        record(3, 20161701403, " hipGraphLaunch ( 0x1, stream:0x30 ) ") +
                        record(3, 20161701404, "Graph shader name : node(int)") + record(4, 20161701405, kDispatch));
  const ProcessSummary& process = log.summary.processes().at(0);
  EXPECT_EQ(process.named, 0u);
  EXPECT_EQ(process.dispatches, 1u);
  EXPECT_EQ(process.streams.at(0).handle, 0x30u);
  EXPECT_EQ(log.summary.kernel_names().at(0), "node(int)");
}

TEST(AmdLogReader, a_failed_creation_makes_neither_queue_nor_stream) {
  const Read log = read(record(3, 20161701400, " hipStreamCreate ( 0x1 ) ") +
                        record(3, 20161701401,
                               "Number of allocated hardware queues with low priority: 0, with normal "
                               "priority: 0, with high priority: 0, maximum per priority is: 4") +
                        record(3, 20161701402, "hipStreamCreate: Returned hipErrorOutOfMemory : ") +
                        record(4, 20161701403, "Command (InternalMarker) enqueued: 0x1"));
  EXPECT_TRUE(log.summary.processes().at(0).queues.empty());
  EXPECT_TRUE(log.summary.processes().at(0).streams.empty());
  EXPECT_EQ(log.summary.calls().at("hipStreamCreate").failed, 1u);
  EXPECT_EQ(log.summary.calls().at("hipStreamCreate").first_failure, "hipErrorOutOfMemory");
}

TEST(AmdLogReader, time_that_goes_back_begins_another_run) {
  const Read log =
      read(record(4, 20161701400, kDispatch) + record(4, 20161701399, kDispatch) + record(4, 10161701400, kDispatch));
  EXPECT_EQ(log.summary.restart_count(), 1u);
  EXPECT_EQ(log.summary.restarts().at(0), 3u);
  ASSERT_EQ(log.summary.processes().size(), 2u);
  EXPECT_EQ(log.summary.processes()[0].dispatches, 2u);
  EXPECT_EQ(log.summary.processes()[1].run, 1u);
  EXPECT_EQ(log.reading.first_ns, 10161701400'000);
  EXPECT_EQ(log.reading.last_ns, 20161701400'000);
}

TEST(AmdLogReader, copies_are_counted_by_engine) {
  const Read log =
      read(record(4, 20161701400,
                  "HSA Async Copy on copy_engine=0x1, dst=0x1, src=0x2, size=100, forceSDMA=0, wait_event=0x0, "
                  "completion_signal=0x5") +
           record(4, 20161701401,
                  "HSA Copy copy_engine=0x2, dst=0x1, src=0x2, size=50, forceSDMA=0, engineType=2, "
                  "wait_event=0x0, completion_signal=0x5") +
           record(4, 20161701402, "HSA Async Copy dst=0x1, src=0x2, size=7, wait_event=0x0, completion_signal=0x5") +
           record(4, 20161701403, "HSA Async Copy staged H2D, Async=1") +
           record(5, 20161701404, "HSA Copy Using Staging resource size 27648"));
  const auto& copies = log.summary.processes().at(0).copies;
  ASSERT_EQ(copies.size(), 3u);
  EXPECT_EQ(copies.at(1).bytes, 100u);
  EXPECT_EQ(copies.at(2).bytes, 50u);
  EXPECT_EQ(copies.at(std::nullopt).count, 1u);
}

TEST(AmdLogReader, the_runtimes_dump_after_a_hang_is_no_packet) {
  const Read log = read(record(4, 20161701400, kDispatch) +
                        "VGPU=0x559c73a321f0 SWq=0x7f7570e37000, HWq=0x7f745c100000, id=2\n"
                        "        Dispatch Header = 0xb02 (type=2, barrier=1, acquire=1, release=1), setup=0\n"
                        ":amd_blit_kernel.cpp:1301: [***rocr***] HWq=0x7f40f14e4000, id=0, Dispatch Header = 0x1402\n");
  EXPECT_EQ(log.summary.processes().at(0).queues.size(), 1u);
  EXPECT_EQ(log.reading.other_lines, 3u);
}

TEST(AmdLogReader, rejects_what_is_no_log_and_says_what_to_set) {
  const auto rejected = [](const std::string& text) -> std::string {
    LogSummary summary;
    try {
      read_log_text(text, "some.file", summary);
    } catch (const Error& error) {
      EXPECT_EQ(error.fault, Fault::input);
      EXPECT_NE(error.hint.find("AMD_LOG_LEVEL=5"), std::string::npos);
      return error.what();
    }
    return "";
  };
  EXPECT_NE(rejected("nothing of the kind\n").find("some.file"), std::string::npos);
  EXPECT_NE(rejected(std::string(5000, '\1')).find("binary"), std::string::npos);
  EXPECT_NE(rejected(std::string(200'000, '\0')).find("binary"), std::string::npos);
  EXPECT_NE(rejected(":3:x:y: 12 us: z\n"), "");
}

}  // namespace
}  // namespace weir::amd
