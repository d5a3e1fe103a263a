// The slowest rank of each phase and why: made by hand, one reason at a time; and real ranks, whose phases add up.
#include "trace/analyse/rank_phases.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>

#include "trace/clock_alignment.h"
#include "trace/device_spans.h"
#include "trace/import/import.h"
#include "trace/intervals.h"
#include "trace/merge.h"

namespace weir {
namespace {

RankPhases phases_of(const Timeline& timeline, std::vector<RankOfPhases> ranks) {
  std::vector<std::uint16_t> devices;
  for (const RankOfPhases& rank : ranks) devices.push_back(rank.device);
  const std::vector<RankUse> uses = rank_uses(timeline, devices);
  RankPhases found = slowest_ranks(std::move(ranks), uses);
  explain_slowest(found, uses);
  return found;
}

struct Work {
  std::uint32_t name = 0;
  std::int64_t submitted = 0, started = 0, lasts = 0;
  SpanKind kind = SpanKind::kernel;
};

// Three ranks of six kernels of a backward pass, 100 each, one after the other; the last rank is changed.
RankPhases phases_with(const std::function<void(std::vector<Work>&)>& change, std::optional<double> waiting = {}) {
  Timeline timeline;
  timeline.has_operations = true;
  timeline.names = {"k0", "k1", "k2", "k3", "k4", "k5", "aten::mm_backward"};
  timeline.operations = {{.name = 6, .phase = Phase::backward}};
  std::vector<RankOfPhases> ranks;
  for (std::uint16_t rank = 0; rank < 3; ++rank) {
    timeline.processes.push_back({rank, "job"});
    timeline.devices.push_back({.process = rank, .label = "GPU"});
    timeline.streams.push_back({rank, 7, "stream 7"});
    std::vector<Work> work;
    for (std::uint32_t i = 0; i < 6; ++i) work.push_back({i, 0, 100 * i, 100});
    if (rank == 2) change(work);
    for (const Work& one : work) {
      HostCall call;
      call.process = rank;
      call.operation = 0;
      timeline.calls.push_back(call);
      Span span;
      span.name = one.name;
      span.kind = one.kind;
      span.stream = rank;
      span.call = static_cast<std::uint32_t>(timeline.calls.size() - 1);
      span.submitted_ns = one.submitted;
      span.started_ns = one.started;
      span.ended_ns = one.started + one.lasts;
      timeline.spans.push_back(span);
    }
    ranks.push_back({.device = rank, .steps = 2});
    if (waiting) ranks.back().waiting_ns = rank == 2 ? *waiting : 0;
  }
  return phases_of(timeline, std::move(ranks));
}

SlowestRank backward_of(const RankPhases& found) {
  for (const SlowestRank& each : found.phases)
    if (each.phase == RankPhase::backward) return each;
  ADD_FAILURE();
  return {};
}

TEST(RankPhases, says_why_a_rank_is_slower) {
  const SlowestRank alike = backward_of(phases_with([](auto&) {}));
  EXPECT_EQ(alike.reason, SlowReason::alike);
  EXPECT_EQ(alike.ns, 300) << "of each of two steps";

  const SlowestRank longer = backward_of(phases_with([](auto& work) { work[5].lasts = 200; }));
  EXPECT_EQ(longer.slowest, 2U);
  EXPECT_EQ(longer.reason, SlowReason::longer_kernels);
  EXPECT_EQ(longer.longer_ns, 50);
  ASSERT_TRUE(longer.most);
  EXPECT_EQ(longer.most->name, 5U);
  EXPECT_EQ(longer.most->operator_name, 6U);

  const SlowestRank clock = backward_of(phases_with([](auto& work) {
    for (std::size_t i = 0; i < work.size(); ++i) work[i] = {work[i].name, 0, static_cast<std::int64_t>(110 * i), 110};
  }));
  EXPECT_EQ(clock.reason, SlowReason::slower_clock);
  EXPECT_NEAR(clock.ratio.value_or(0), 1.1, 1e-9);

  const SlowestRank more = backward_of(phases_with([](auto& work) { work.push_back({3, 0, 600, 100}); }));
  EXPECT_EQ(more.reason, SlowReason::more_work);
  EXPECT_EQ(more.more_work_ns, 50);
  EXPECT_EQ(more.longer_ns, 0);

  const SlowestRank late = backward_of(phases_with([](auto& work) {
    work[5].submitted = 580;
    work[5].started = 590;
  }));
  EXPECT_EQ(late.reason, SlowReason::late_host);
  EXPECT_EQ(late.late_host_ns, 40);
  EXPECT_EQ(late.waiting_ns, 5);

  const SlowestRank waiting = backward_of(phases_with([](auto& work) { work[5].started = 590; }));
  EXPECT_EQ(waiting.reason, SlowReason::waiting);
  EXPECT_EQ(waiting.waiting_ns, 45);
}

TEST(RankPhases, communication_is_what_is_exposed) {
  const auto with_collective = [](std::vector<Work>& work) {
    // Half of it beside the last kernel.
    work.push_back({0, 0, 550, 100, SpanKind::collective});
  };
  for (const bool is_known : {false, true}) {
    const RankPhases found = phases_with(with_collective, is_known ? std::optional(40.0) : std::nullopt);
    const SlowestRank& communication = found.phases.back();
    ASSERT_EQ(communication.phase, RankPhase::communication);
    EXPECT_EQ(communication.ns, 25);
    EXPECT_EQ(communication.median_ns, 0);
    EXPECT_EQ(communication.reason, is_known ? SlowReason::waiting : SlowReason::more_work);
    EXPECT_EQ(backward_of(found).reason, SlowReason::alike);
  }
}

TEST(RankPhases, real_ranks_add_up) {
  const char* const folder = std::getenv("WEIR_REAL_DATA");
  if (folder == nullptr || *folder == '\0') GTEST_SKIP() << "WEIR_REAL_DATA is not set: no real captures to read";
  ImportOptions options;
  options.has_operations = true;
  for (const char* const name : {"mi300x_4ranks_fused_140MB.json.gz", "v100_dlrm_8ranks.tar.gz"}) {
    std::vector<Timeline> parts;
    for (ImportedTrace& trace : import_traces({std::filesystem::path(folder) / "kineto" / name}, options))
      parts.push_back(std::move(trace.timeline));
    const Timeline timeline = merge(std::move(parts));
    std::vector<RankOfPhases> ranks;
    std::vector<std::pair<std::int64_t, std::int64_t>> spans(timeline.devices.size(), {INT64_MAX, INT64_MIN});
    for (const Span& span : timeline.spans) {
      if (!is_device_work(span)) continue;
      auto& [from, to] = spans[timeline.streams[span.stream].device];
      from = std::min(from, span.started_ns);
      to = std::max(to, span.ended_ns);
    }
    for (std::uint16_t device = 0; device < spans.size(); ++device)
      if (spans[device].first < spans[device].second) ranks.push_back({.device = device});
    const RankPhases found = phases_of(timeline, ranks);
    ASSERT_GE(found.ranks.size(), 4U) << name;
    EXPECT_FALSE(found.are_steps);
    for (const RankOfPhases& rank : found.ranks) {
      double sum = 0;
      for (const double ns : rank.ns) sum += ns;
      EXPECT_NEAR(sum, length_between(spans[rank.device].first, spans[rank.device].second), 1) << name;
    }
    for (const SlowestRank& each : found.phases) {
      const double parts_ns = each.longer_ns + each.more_work_ns + each.late_host_ns + each.waiting_ns;
      EXPECT_NEAR(parts_ns, each.ns - each.median_ns, 1) << name << ", " << to_string(each.phase);
    }
    // The last rank of the fused file computes longest, because of its host, and so waits least for others.
    if (std::string_view(name).starts_with("mi300x")) {
      EXPECT_EQ(backward_of(found).slowest, 3U);
      EXPECT_EQ(backward_of(found).reason, SlowReason::late_host);
    }
  }
}

}  // namespace
}  // namespace weir
