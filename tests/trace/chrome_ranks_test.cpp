// All ranks in one Chrome file: lanes apart, arrows within them, and every rank back through our own importer.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "trace/analyse/breakdown.h"
#include "trace/analyse/exposed_causes.h"
#include "trace/analyse/overlap_times.h"
#include "trace/analyse/queue_map.h"
#include "trace/analyse/slice.h"
#include "trace/clock_alignment.h"
#include "trace/export/chrome_json.h"
#include "trace/import/import.h"
#include "trace/merge.h"

namespace weir {
namespace {

namespace fs = std::filesystem;

// Two iterations of a kernel, a gather beside it, what needs both, and a copy; every rank a little slower.
Timeline rank_of(int rank) {
  Timeline t;
  t.source = "made by hand";
  t.names = {"gemm", "all_gather", "Memcpy HtoD (Pinned -> Device)", "launch", "ProfilerStep#0", "ProfilerStep#1"};
  t.processes = {{rank, "job"}};
  t.devices = {{0, rank % 2, rank == 2 ? "Another GPU" : "Some GPU"}};  // ranks 0 and 2 have a device 0
  t.streams = {{0, 7, "stream 7"}, {0, 9, "stream 9"}};
  t.queues = {{4, 0, "queue 4"}, {5, 0, "queue 5"}, {kCopyQueues + 1, 0, "copy engine 1"}};
  t.has_dependencies = true;
  for (std::uint32_t iteration = 0; iteration < 2; ++iteration) {
    const std::int64_t base = 1'000'000 * (iteration + 1);
    const auto first = static_cast<std::uint32_t>(t.spans.size());
    const auto add = [&](SpanKind kind, std::uint32_t name, std::uint16_t stream, std::int32_t queue, std::int64_t from,
                         std::int64_t to) {
      Span span;
      span.kind = kind;
      span.name = name;
      span.stream = stream;
      span.queue = queue;
      span.iteration = iteration;
      span.started_ns = base + from;
      span.ended_ns = base + to;
      span.submitted_ns = base - 50'000 + 1'000 * static_cast<std::int64_t>(t.spans.size() - first);
      span.accepted_ns = span.submitted_ns + 500;
      span.call = static_cast<std::uint32_t>(t.calls.size());
      t.calls.push_back({3, 11, t.calls.size() + 1, 0, CallKind::launch, span.submitted_ns, span.accepted_ns});
      t.spans.push_back(span);
    };
    add(SpanKind::kernel, 0, 0, 4, 0, 100'000 + 1'000 * rank);
    add(SpanKind::collective, 1, 1, 5, 20'000 + 3'000 * rank, 180'000);
    add(SpanKind::kernel, 0, 0, 4, 180'500, 250'000);
    add(SpanKind::copy, 2, 1, kCopyQueues + 1, 190'000, 200'000);
    t.spans.back().bytes = 4096;
    t.spans[first + 1].bytes = 1024;
    t.collectives.push_back({first + 1, CollectiveKind::all_gather, 3, kNoName, 1024});
    t.dependencies.push_back({first + 1, first + 2});
    t.dependencies.push_back({first + 0, first + 3});
    t.ranges.push_back({4 + iteration, 0, base - 60'000, base + 260'000});
  }
  return t;
}

class ChromeRanks : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "weir_chrome_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    before_ = merge({rank_of(2), rank_of(0), rank_of(1)});
    for (TraceProcess& process : before_.processes) process.clock = 0;
    write_chrome_json(before_, {.process = std::nullopt, .world_size = 3}, folder_ / "all.json", false);
    file_ = read_json(folder_ / "all.json");
    after_ = import_traces({folder_ / "all.json"}, {}).at(0).timeline;
  }
  void TearDown() override { fs::remove_all(folder_); }

  static std::uint16_t device_of(const Timeline& timeline, int rank) {
    for (std::uint16_t i = 0; i < timeline.devices.size(); ++i)
      if (timeline.processes[timeline.devices[i].process].rank == rank) return i;
    return UINT16_MAX;
  }

  fs::path folder_;
  Timeline before_, after_;
  Json file_;
};

TEST_F(ChromeRanks, come_back_through_the_importer) {
  EXPECT_TRUE(after_.dropped.empty()) << after_.dropped[0].reason;
  ASSERT_EQ(after_.processes.size(), 3u);
  ASSERT_EQ(after_.devices.size(), 3u);
  ASSERT_EQ(after_.spans.size(), before_.spans.size());
  for (int rank = 0; rank < 3; ++rank) {
    const std::uint16_t was_device = device_of(before_, rank), is_device = device_of(after_, rank);
    ASSERT_NE(is_device, UINT16_MAX) << rank;
    EXPECT_EQ(after_.devices[is_device].id, rank % 2);
    EXPECT_EQ(after_.devices[is_device].label,
              "GPU " + std::to_string(rank % 2) + (rank == 2 ? ": Another GPU" : ": Some GPU"));
    const Timeline was = slice(before_, was_device), is = slice(after_, is_device);
    const auto was_ranges = iteration_ranges(before_, before_.devices[was_device].process);
    const auto is_ranges = iteration_ranges(after_, after_.devices[is_device].process);
    ASSERT_EQ(is_ranges.size(), 2u);
    const Breakdown old_times = breakdown(was, was_ranges), new_times = breakdown(is, is_ranges);
    EXPECT_EQ(new_times.commands, old_times.commands);
    EXPECT_EQ(new_times.streams, 2u);
    EXPECT_EQ(new_times.queues, old_times.queues);
    EXPECT_EQ(new_times.copy_queues, old_times.copy_queues);
    EXPECT_EQ(new_times.iteration_count, 2u);
    for (const auto part :
         {&BusyTimes::span_ns, &BusyTimes::busy_ns, &BusyTimes::compute_ns, &BusyTimes::communication_ns,
          &BusyTimes::communication_beside_compute_ns, &BusyTimes::overlapped_ns, &BusyTimes::copy_ns})
      for (std::size_t i = 0; i < 2; ++i)
        EXPECT_EQ((*new_times.iterations[i].times).*part, (*old_times.iterations[i].times).*part) << rank;
    ASSERT_EQ(is.spans.size(), was.spans.size());
    for (std::size_t i = 0; i < is.spans.size(); ++i) {
      EXPECT_EQ(is.spans[i].submitted_ns, was.spans[i].submitted_ns);
      EXPECT_EQ(is.spans[i].accepted_ns, was.spans[i].accepted_ns);
      EXPECT_EQ(is.spans[i].iteration, was.spans[i].iteration);
      EXPECT_EQ(is.spans[i].bytes, was.spans[i].bytes);
      ASSERT_LT(is.spans[i].call, is.calls.size());
      EXPECT_EQ(is.calls[is.spans[i].call].started_ns, was.calls[was.spans[i].call].started_ns);
    }
    const auto ends = [](const Timeline& timeline) {
      std::set<std::pair<std::uint32_t, std::uint32_t>> found;
      for (const Dependency& each : timeline.dependencies) found.emplace(each.before, each.after);
      return found;
    };
    EXPECT_EQ(ends(is), ends(was));
    ASSERT_EQ(is.collectives.size(), 2u);
    EXPECT_EQ(is.collectives[0].kind, CollectiveKind::all_gather);
    EXPECT_EQ(is.collectives[0].ranks, 3u);
    EXPECT_EQ(queue_map(is).queues.size(), queue_map(was).queues.size());
    const ExposedCauses old_causes = exposed_causes(was), new_causes = exposed_causes(is);
    for (std::size_t i = 0; i < kExposedCauses; ++i)
      EXPECT_EQ(new_causes.causes[i].total_ns, old_causes.causes[i].total_ns) << rank << ' ' << i;
  }
}

TEST_F(ChromeRanks, one_clock_stays_one) {
  for (const TraceProcess& process : after_.processes) EXPECT_GE(process.clock, 0);
  const auto alignment = align_clocks(after_);
  ASSERT_TRUE(alignment);
  for (const RankClock& clock : alignment->ranks) EXPECT_FALSE(clock.is_shifted);
}

TEST_F(ChromeRanks, lanes_are_apart_and_arrows_within) {
  EXPECT_EQ(file_["distributedInfo"]["ranks"], Json::parse("[0,1,2]"));
  EXPECT_EQ(file_["distributedInfo"]["world_size"], 3);
  EXPECT_EQ(file_["deviceProperties"].size(), 3u);
  std::map<std::int64_t, std::string> processes;
  std::set<std::pair<std::int64_t, std::int64_t>> threads;
  std::set<std::int64_t> orders;
  using Slice = std::tuple<std::int64_t, std::int64_t, double, double>;  // pid, tid, from, to
  std::vector<Slice> slices;
  std::map<std::pair<std::string, std::int64_t>, std::string> arrows;  // phases by category and id
  std::map<std::int64_t, std::set<std::int64_t>> ranks;                // by pid
  for (const Json& event : file_["traceEvents"]) {
    const auto pid = event["pid"].get<std::int64_t>(), tid = event["tid"].get<std::int64_t>();
    if (event["name"] == "process_name") {
      EXPECT_TRUE(processes.emplace(pid, event["args"]["name"].string()).second) << pid;
    } else if (event["name"] == "process_sort_index") {
      EXPECT_TRUE(orders.insert(event["args"]["sort_index"].get<std::int64_t>()).second);
    } else if (event["name"] == "thread_name") {
      EXPECT_TRUE(threads.emplace(pid, tid).second) << pid << ' ' << tid;
    } else if (event["ph"] == "X") {
      slices.emplace_back(pid, tid, event["ts"].get<double>(), event["ts"].get<double>() + event["dur"].get<double>());
      if (event["cat"] != "hardware_queue") ranks[pid].insert(event["args"]["rank"].get<std::int64_t>());
    }
  }
  // A host, a device and its queues for each rank, each named after it.
  EXPECT_EQ(processes.size(), 9u);
  for (const auto& [pid, name] : processes) {
    EXPECT_EQ(name.substr(0, 5), "rank ");
    for (const std::int64_t rank : ranks[pid]) EXPECT_EQ(name[5], static_cast<char>('0' + rank));
    EXPECT_LE(ranks[pid].size(), 1u);
  }
  for (const Json& event : file_["traceEvents"]) {
    if (event["ph"] != "s" && event["ph"] != "f") continue;
    arrows[{event["cat"].string(), event["id"].get<std::int64_t>()}] += event["ph"].get<std::string>();
    const auto at = event["ts"].get<double>();
    EXPECT_TRUE(std::any_of(slices.begin(), slices.end(), [&](const Slice& slice) {
      const auto& [pid, tid, from, to] = slice;
      return pid == event["pid"] && tid == event["tid"] && from <= at && at <= to;
    })) << event.dump();
  }
  EXPECT_EQ(arrows.size(), before_.spans.size() + before_.dependencies.size());
  for (const auto& [key, phases] : arrows) EXPECT_EQ(phases, "sf");
}

TEST_F(ChromeRanks, ranks_that_do_not_differ_are_numbered) {
  for (TraceProcess& process : before_.processes) process.rank = 5;
  write_chrome_json(before_, {.process = std::nullopt}, folder_ / "same.json", false);
  EXPECT_EQ(import_traces({folder_ / "same.json"}, {}).at(0).timeline.processes.size(), 3u);
}

}  // namespace
}  // namespace weir
