// The values that were computed independently for real captures: WEIR_REAL_DATA names their folder.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "trace/import/import.h"

namespace weir {
namespace {

namespace fs = std::filesystem;

using Intervals = std::vector<std::pair<std::int64_t, std::int64_t>>;

class RealJson : public testing::Test {
 protected:
  void SetUp() override {
    const char* const folder = std::getenv("WEIR_REAL_DATA");
    if (folder == nullptr || *folder == '\0') GTEST_SKIP() << "WEIR_REAL_DATA is not set: no real captures to read";
    folder_ = folder;
  }
  ImportedTrace import(const fs::path& file) const { return std::move(import_traces({folder_ / file}, {}).front()); }
  fs::path folder_;
};

Intervals union_of(Intervals parts) {
  std::sort(parts.begin(), parts.end());
  Intervals made;
  for (const auto& [begin, end] : parts) {
    if (!made.empty() && begin <= made.back().second)
      made.back().second = std::max(made.back().second, end);
    else
      made.emplace_back(begin, end);
  }
  return made;
}

double us_of(const Intervals& parts) {
  std::int64_t sum = 0;
  for (const auto& [begin, end] : parts) sum += end - begin;
  return static_cast<double>(sum) / 1e3;
}

Intervals both(const Intervals& a, const Intervals& b) {
  Intervals made;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const std::int64_t begin = std::max(a[i].first, b[j].first), end = std::min(a[i].second, b[j].second);
    if (begin < end) made.emplace_back(begin, end);
    if (a[i].second < b[j].second)
      ++i;
    else
      ++j;
  }
  return made;
}

struct Facts {
  std::size_t commands = 0, streams = 0;
  double span_us = 0, busy_us = 0, compute_us = 0, communication_us = 0, hidden_us = 0, two_percent = 0;
};

Facts facts_of(const Timeline& timeline, std::uint16_t process) {
  Intervals all, compute, communication;
  std::set<std::uint16_t> streams;
  std::vector<std::pair<std::int64_t, int>> changes;
  Facts facts;
  for (const Span& span : timeline.spans) {
    if (timeline.devices.at(timeline.streams.at(span.stream).device).process != process) continue;
    ++facts.commands;
    streams.insert(span.stream);
    all.emplace_back(span.started_ns, span.ended_ns);
    changes.emplace_back(span.started_ns, 1);
    changes.emplace_back(span.ended_ns, -1);
    if (span.kind == SpanKind::collective) communication.push_back(all.back());
    if (span.kind == SpanKind::kernel) compute.push_back(all.back());
  }
  facts.streams = streams.size();
  std::sort(changes.begin(), changes.end());
  std::int64_t two = 0, last = 0;
  int running = 0;
  for (const auto& [at, change] : changes) {
    if (running >= 2) two += at - last;
    last = at;
    running += change;
  }
  const Intervals busy = union_of(all);
  compute = union_of(compute);
  communication = union_of(communication);
  facts.span_us = static_cast<double>(busy.back().second - busy.front().first) / 1e3;
  facts.busy_us = us_of(busy);
  facts.compute_us = us_of(compute);
  facts.communication_us = us_of(communication);
  facts.hidden_us = us_of(both(compute, communication));
  facts.two_percent = static_cast<double>(two) / 1e3 / facts.busy_us * 100;
  return facts;
}

void expect(const Facts& facts, const Facts& known) {
  EXPECT_EQ(facts.commands, known.commands);
  EXPECT_EQ(facts.streams, known.streams);
  EXPECT_NEAR(facts.span_us, known.span_us, 0.1);
  EXPECT_NEAR(facts.busy_us, known.busy_us, 0.1);
  EXPECT_NEAR(facts.compute_us, known.compute_us, 0.1);
  EXPECT_NEAR(facts.communication_us, known.communication_us, 0.1);
  EXPECT_NEAR(facts.hidden_us, known.hidden_us, 0.1);
  EXPECT_NEAR(facts.two_percent, known.two_percent, 0.05);
}

std::size_t joined(const Timeline& timeline) {
  std::size_t count = 0;
  for (const Span& span : timeline.spans) count += span.call != kNoCall ? 1 : 0;
  return count;
}

TEST_F(RealJson, A100WithFourStreams) {
  const ImportedTrace trace = import("kineto/a100_ddp_4streams.json.gz");
  expect(facts_of(trace.timeline, 0), {9450, 4, 464594.0, 388587.0, 281336.0, 163535.0, 75614.0, 26.8});
  EXPECT_TRUE(trace.timeline.dropped.empty());
  EXPECT_EQ(trace.timeline.processes.at(0).rank, 3);
  EXPECT_EQ(trace.timeline.calls.size(), 24692U);
  EXPECT_EQ(joined(trace.timeline), 9450U);
  EXPECT_EQ(trace.timeline.collectives.size(), 60U);
  EXPECT_EQ(trace.files.at(0).bytes, 34825284U);
  for (const CollectiveFacts& facts : trace.timeline.collectives) EXPECT_NE(facts.kind, CollectiveKind::unknown);
}

TEST_F(RealJson, Mi300xResnet) {
  const Timeline timeline = import("kineto/mi300x_ddp_resnet.json.gz").timeline;
  expect(facts_of(timeline, 0), {3653, 2, 86567.7, 84002.1, 25739.4, 71516.5, 15891.3, 19.3});
  EXPECT_TRUE(timeline.dropped.empty());
  EXPECT_EQ(timeline.queues.size(), 2U);
  EXPECT_GE(timeline.notes.size(), 2U);
  EXPECT_EQ(timeline.devices.at(0).label, "GPU 2: AMD Instinct MI300X");
}

TEST_F(RealJson, FourFusedRanks) {
  const Timeline timeline = import("kineto/mi300x_4ranks_fused_140MB.json.gz").timeline;
  ASSERT_EQ(timeline.processes.size(), 4U);
  EXPECT_EQ(timeline.devices.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(timeline.processes[i].rank, static_cast<int>(i));
  expect(facts_of(timeline, 0), {4095, 2, 140042.1, 91189.3, 47634.4, 64471.4, 23403.6, 26.7});
  EXPECT_EQ(timeline.spans.size(), 16287U);
  EXPECT_EQ(timeline.calls.size(), 20503U);
  EXPECT_TRUE(timeline.dropped.empty());
  EXPECT_EQ(timeline.collectives.size(), 84U);
  for (const CollectiveFacts& facts : timeline.collectives) {
    EXPECT_NE(facts.kind, CollectiveKind::unknown);
    EXPECT_EQ(facts.ranks, 4U);
    EXPECT_GT(facts.bytes, 0U);
  }
}

TEST_F(RealJson, EightRanksInAnArchive) {
  const ImportedTrace trace = import("kineto/v100_dlrm_8ranks.tar.gz");
  EXPECT_EQ(trace.files.size(), 8U);
  std::set<int> ranks;
  for (const TraceProcess& process : trace.timeline.processes) ranks.insert(process.rank);
  EXPECT_EQ(ranks.size(), 8U);
  EXPECT_EQ(trace.timeline.devices.size(), 8U);
  EXPECT_TRUE(trace.timeline.dropped.empty()) << trace.timeline.dropped[0].reason << trace.timeline.dropped[0].first;
  EXPECT_EQ(trace.timeline.spans.size(), 2244U);
  EXPECT_EQ(joined(trace.timeline), 2116U);  // the files lack the calls of the others
}

TEST_F(RealJson, EventWaitsTieStreams) {
  const Timeline timeline = import("kineto/a100_event_waits.json.gz").timeline;
  EXPECT_EQ(timeline.spans.size(), 6U);
  EXPECT_TRUE(timeline.has_dependencies);
  ASSERT_EQ(timeline.dependencies.size(), 1U);
  const auto stream = [&](std::uint32_t span) { return timeline.streams.at(timeline.spans.at(span).stream).id; };
  EXPECT_EQ(stream(timeline.dependencies[0].before), 20U);
  EXPECT_EQ(stream(timeline.dependencies[0].after), 24U);
  EXPECT_TRUE(timeline.dropped.empty());
}

TEST_F(RealJson, SmallOnes) {
  const Timeline small = import("kineto/mi250_minitoy.json.gz").timeline;
  EXPECT_EQ(small.spans.size(), 16U);
  EXPECT_EQ(joined(small), 16U);
  EXPECT_TRUE(small.dropped.empty());
  for (const Span& span : small.spans) EXPECT_EQ(span.bytes > 0, span.kind == SpanKind::copy);
  const Timeline none = import("kineto/cpu_only.json.gz").timeline;
  EXPECT_TRUE(none.spans.empty());
  EXPECT_TRUE(none.dropped.empty());
  EXPECT_EQ(none.processes.at(0).rank, 34);
}

TEST_F(RealJson, RocprofWithQueues) {
  const Timeline timeline = import("rocprof/mi350x_fsdp_567streams_5queues.json.gz").timeline;
  EXPECT_EQ(timeline.spans.size(), 43915U);
  EXPECT_EQ(timeline.streams.size(), 567U);
  EXPECT_EQ(timeline.queues.size(), 5U);
  EXPECT_TRUE(timeline.dropped.empty());
  EXPECT_NE(timeline.devices.at(0).label.find("MI350X"), std::string::npos);
  for (const Span& span : timeline.spans) ASSERT_NE(span.name, kNoName);
}

}  // namespace
}  // namespace weir
