// The document of many traces is the same, to the byte, however they are shared among processes. Random ranks, with
// threads for processes.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "device/rank/alone.h"
#include "device/rank/threads.h"
#include "measure/bootstrap.h"
#include "run/analyze.h"
#include "run/analyze_exchange.h"
#include "trace/merge.h"
#include "trace/rank_collectives.h"

namespace weir {
namespace {

// Traces of a job, one or two processes each: every kind of fact that an analysis reads, in no special order of names.
class RandomJob {
 public:
  explicit RandomJob(std::uint64_t seed) : random_(seed) {}

  std::vector<ImportedTrace> traces() {
    const auto count = 1 + random_.below(7);
    is_late_ = random_.below(2) == 0;
    std::vector<ImportedTrace> made;
    for (std::uint32_t i = 0; i < count; ++i) {
      Timeline timeline;
      timeline.source = random_.below(4) == 0 ? "another clock" : "a clock";
      timeline.has_exact_gaps = random_.below(4) != 0;
      timeline.has_dependencies = random_.below(4) != 0;
      timeline.has_operations = true;
      timeline.clock_error_ns = random_.below(3);
      // Each trace numbers the same names differently.
      for (std::uint32_t name = 0; name < kNames; ++name) timeline.names.push_back(text(name));
      for (std::uint32_t name = kNames; name-- > 1;)
        std::swap(timeline.names[name], timeline.names[random_.below(name + 1)]);
      const std::uint32_t processes = random_.below(4) == 0 ? 2 : 1;
      for (std::uint32_t process = 0; process < processes; ++process) add_process(timeline, i);
      sort_by_start(timeline);
      if (random_.below(3) == 0) timeline.notes.push_back("a note");
      if (random_.below(3) == 0) timeline.dropped.push_back({"odd", 1 + random_.below(5), "byte 7"});
      made.push_back({{{"rank" + std::to_string(i) + ".json", "kineto", 1000 + i}}, std::move(timeline)});
    }
    return made;
  }

 private:
  static constexpr std::uint32_t kNames = 40;

  // "aten::op3", "kernel4", "ProfilerStep#5", "group6"
  static std::string text(std::uint32_t name) {
    constexpr const char* kKinds[] = {"aten::op", "kernel", "ProfilerStep#", "group"};
    return kKinds[name % 4] + std::to_string(name / 4);
  }
  static std::uint32_t named(const Timeline& timeline, const std::string& name) {
    return static_cast<std::uint32_t>(std::find(timeline.names.begin(), timeline.names.end(), name) -
                                      timeline.names.begin());
  }

  void add_process(Timeline& timeline, std::uint32_t trace) {
    const auto process = static_cast<std::uint16_t>(timeline.processes.size());
    // Some do not know their rank, and all of them call themselves 0.
    timeline.processes.push_back({random_.below(4) == 0 ? 0 : static_cast<int>(trace), "process", -1});
    const auto device = static_cast<std::uint16_t>(timeline.devices.size());
    timeline.devices.push_back({process, static_cast<std::int64_t>(trace), "GPU " + std::to_string(trace), "", 0, 0});
    const auto stream = static_cast<std::uint16_t>(timeline.streams.size());
    timeline.streams.push_back({device, 7, "stream 7", {}});
    timeline.streams.push_back({device, 20, "stream 20", {}});
    const auto queue = static_cast<std::int32_t>(timeline.queues.size());
    timeline.queues.push_back({queue, device, "queue " + std::to_string(queue)});
    const auto module = static_cast<std::uint32_t>(timeline.modules.size());
    timeline.modules.push_back({named(timeline, "group9"), kNoModule});
    const auto first_operation = static_cast<std::uint32_t>(timeline.operations.size());
    for (std::uint32_t i = 0; i < 6; ++i)
      timeline.operations.push_back({named(timeline, "aten::op" + std::to_string(i)), named(timeline, "group8"),
                                     i % 2 == 0 ? module : kNoModule, static_cast<Phase>(i % 4)});
    const std::int64_t offset = 1'000'000'000 + (random_.below(3) == 0 ? 0 : random_.below(90'000'000));
    // Start-up that all ranks have in common, or not.
    std::int64_t at = offset;
    if (is_late_) {
      add_command(timeline, stream, process, first_operation, at, 1'000, false, 0);
      at += 400'000'000;
    }
    for (int step = 0; step < 12; ++step) {
      const std::int64_t begun = at;
      for (int i = 0; i < 6; ++i) {
        add_command(timeline, static_cast<std::uint16_t>(stream + random_.below(2)), process, first_operation,
                    at + random_.below(20'000), 30'000 + 10'000 * random_.below(3), false, step);
        at += 60'000 + 1'000 * random_.below(3);
      }
      // All ranks leave it at one moment of the job.
      const std::int64_t end = offset + (is_late_ ? 400'000'000 : 0) + 1'000'000 * (step + 1) - 100'000;
      add_command(timeline, static_cast<std::uint16_t>(stream + 1), process, first_operation,
                  end - 100'000 - random_.below(80'000), 0, true, step);
      timeline.spans.back().ended_ns = end + random_.below(500);
      at = offset + (is_late_ ? 400'000'000 : 0) + 1'000'000 * (step + 1);
      timeline.ranges.push_back(
          {named(timeline, "ProfilerStep#" + std::to_string(step % 10)), process, begun, at + random_.below(9'000)});
    }
  }

  void add_command(Timeline& timeline, std::uint16_t stream, std::uint16_t process, std::uint32_t first_operation,
                   std::int64_t at, std::int64_t lasts, bool is_collective, int step) {
    HostCall call;
    call.name = named(timeline, "kernel9");
    call.process = process;
    call.kind = CallKind::launch;
    call.correlation = timeline.calls.size() + 1;
    call.started_ns = at - 5'000 - random_.below(50'000);
    call.ended_ns = call.started_ns + 3'000;
    call.operation = first_operation + random_.below(6);
    timeline.calls.push_back(call);
    Span span;
    span.command = static_cast<std::uint32_t>(timeline.spans.size());
    span.iteration = static_cast<std::uint32_t>(step);
    span.name = named(timeline, is_collective ? "group1" : "kernel" + std::to_string(random_.below(8)));
    span.kind = is_collective ? SpanKind::collective : random_.below(9) == 0 ? SpanKind::copy : SpanKind::kernel;
    span.bytes = 4'096;
    span.stream = stream;
    // Some sources name no queue.
    if (random_.below(5) != 0) span.queue = timeline.queues.back().id;
    span.call = static_cast<std::uint32_t>(timeline.calls.size() - 1);
    span.submitted_ns = call.started_ns;
    span.started_ns = at;
    span.ended_ns = at + lasts;
    if (is_collective)
      timeline.collectives.push_back({static_cast<std::uint32_t>(timeline.spans.size()), CollectiveKind::all_reduce, 0,
                                      named(timeline, "group" + std::to_string(step % 2)), 4'096, 0});
    if (timeline.has_dependencies && !timeline.spans.empty() && random_.below(4) == 0)
      timeline.dependencies.push_back(
          {static_cast<std::uint32_t>(timeline.spans.size()) - 1, static_cast<std::uint32_t>(timeline.spans.size())});
    timeline.spans.push_back(span);
    if (random_.below(6) == 0)
      timeline.memory.push_back(
          {timeline.streams[stream].device, at, 512, 4'096 + random_.below(4'096), 1 << 20, call.operation, kNoName});
  }

  SplitMix random_;
  bool is_late_ = false;
};

AnalyzeOptions options_of(std::uint64_t seed) {
  AnalyzeOptions options;
  options.top = 3 + seed % 10;
  if (seed % 3 == 1) options.window = kWholeTrace;
  if (seed % 3 == 2) options.window = TimeInterval{2'000'000, 9'000'000'000};
  return options;
}

std::string text_of(Json document) {
  document["created"] = nullptr;
  return document.dump(1);
}

std::string document_of(std::vector<ImportedTrace> traces, const AnalyzeOptions& options, bool keeps_traces = false) {
  AloneCommunicator alone;
  TraceShare share;
  share.total = traces.size();
  for (std::size_t i = 0; i < traces.size(); ++i) share.numbers.push_back(i);
  share.traces = std::move(traces);
  share.keeps_traces = keeps_traces;
  return text_of(analyze_traces(alone, share, options));
}

// Each trace goes to a random one of the processes, some of which get none.
std::string shared_document_of(const std::vector<ImportedTrace>& traces, const AnalyzeOptions& options, int processes,
                               std::uint64_t seed) {
  SplitMix random(seed);
  std::vector<TraceShare> shares(static_cast<std::size_t>(processes));
  for (TraceShare& share : shares) share.total = traces.size();
  for (std::size_t i = 0; i < traces.size(); ++i) {
    TraceShare& share = shares[random.below(static_cast<std::uint32_t>(processes))];
    share.numbers.push_back(i);
    share.traces.push_back(traces[i]);
  }
  ThreadWorld world(processes, seed);
  std::string found;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < processes; ++rank)
    threads.emplace_back([&, rank] {
      const Json document = analyze_traces(world.rank(rank), shares[static_cast<std::size_t>(rank)], options);
      if (rank == 0) found = text_of(document);
      EXPECT_EQ(document.is_null(), rank != 0);
    });
  for (std::thread& thread : threads) thread.join();
  return found;
}

TEST(AnalyzeShares, give_the_same_document_however_traces_are_shared) {
  std::size_t with_ranks = 0, with_window = 0, shifted = 0;
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    const std::vector<ImportedTrace> traces = RandomJob(seed).traces();
    const AnalyzeOptions options = options_of(seed);
    const std::string expected = document_of(traces, options);
    EXPECT_EQ(document_of(traces, options, true), expected) << "seed " << seed;
    for (int processes = 2; processes <= 8; processes += 1 + static_cast<int>(seed % 3))
      ASSERT_EQ(shared_document_of(traces, options, processes, seed), expected)
          << "seed " << seed << ", " << processes << " processes";
    const Json document = Json::parse(expected);
    with_ranks += document["ranks"].is_null() ? 0 : 1;
    with_window += document["window"].is_null() ? 0 : 1;
    for (const Json& clock : at_path(document, {"clocks", "ranks"})) shifted += clock["is_shifted"].get<bool>() ? 1 : 0;
  }
  // The jobs are of use only if they have what is shared.
  EXPECT_GT(with_ranks, 5u);
  EXPECT_GT(with_window, 5u);
  EXPECT_GT(shifted, 5u);
}

// One timeline that holds all ranks has one list of names and of queues, and outlines of nothing smaller.
TEST(AnalyzeShares, say_what_one_timeline_of_all_ranks_says) {
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    const std::vector<ImportedTrace> traces = RandomJob(seed).traces();
    const AnalyzeOptions options = options_of(seed);
    std::vector<Timeline> parts;
    std::vector<ImportedFile> files;
    for (const ImportedTrace& trace : traces) {
      parts.push_back(trace.timeline);
      files.insert(files.end(), trace.files.begin(), trace.files.end());
    }
    Timeline timeline = merge(std::move(parts));
    const Json one = analyze_timeline(timeline, files, options);
    const Json many = Json::parse(document_of(traces, options));
    for (const char* part : {"files", "window", "origin_ns", "source", "commands", "calls", "dependencies", "clocks",
                             "ranks", "rank_phases", "dropped", "notes", "unavailable"})
      EXPECT_EQ(many[part].dump(1), one[part].dump(1)) << "seed " << seed << ": " << part;
    ASSERT_EQ(many["devices"].size(), one["devices"].size());
    for (std::size_t i = 0; i < one["devices"].size(); ++i)
      for (const char* part : {"rank", "label", "times", "kinds", "iterations", "exposed_causes", "gaps", "memory"})
        EXPECT_EQ(many["devices"][i][part].dump(1), one["devices"][i][part].dump(1)) << "seed " << seed << ": " << part;
  }
}

TEST(AnalyzeShares, divide_captures_by_size) {
  const std::vector<std::uint64_t> sizes = {50, 10, 10, 10, 10, 10, 0};
  EXPECT_EQ(captures_of_rank(sizes, {0, 2}), (std::vector<std::size_t>{0, 6}));
  EXPECT_EQ(captures_of_rank(sizes, {1, 2}), (std::vector<std::size_t>{1, 2, 3, 4, 5}));
  std::vector<std::size_t> all;
  for (int rank = 0; rank < 9; ++rank)
    for (const std::size_t capture : captures_of_rank(sizes, {rank, 9})) all.push_back(capture);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, (std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6}));
}

TEST(AnalyzeShares, refuse_traces_that_two_processes_or_none_hold) {
  AloneCommunicator alone;
  EXPECT_THROW(TraceExchange(alone, {0}, 2).gather({"a"}), Error);
  EXPECT_THROW(TraceExchange(alone, {0, 0}, 2).gather({"a", "b"}), Error);
  EXPECT_THROW(TraceExchange(alone, {2, 0}, 2).gather({"a", "b"}), Error);
  TraceExchange exchange(alone, {1, 0}, 2);
  EXPECT_EQ(exchange.gather({"a", "b"}), (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(exchange.scatter({"c", "d"}), (std::vector<std::string>{"d", "c"}));
}

}  // namespace
}  // namespace weir
