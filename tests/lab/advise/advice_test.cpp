// Advice about programs made by hand, whose every gap is known: what is predicted is what the same program takes when
// it is made the other way.
#include "lab/advise/advice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "lab/advise/step_times.h"

namespace weir::advise {
namespace {

// One host thread, one stream, written down as it goes on.
class Program {
 public:
  // `host`: a factor on what the host does.
  explicit Program(double host = 1) : host_(host) {
    timeline_.names = {"cudaLaunchKernel", "cudaStreamSynchronize", "gemm",
                       "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"};
    timeline_.processes = {{0, "a test"}};
    timeline_.devices = {{0, 0, "GPU 0"}};
    timeline_.streams = {{0, 7, "stream 7"}};
    timeline_.has_dependencies = true;
  }

  void think(std::int64_t ns) { now_ += scaled(ns); }
  void launch(std::int64_t ns) {
    HostCall call;
    call.name = 0;
    call.kind = CallKind::launch;
    call.started_ns = now_;
    now_ += scaled(5'000);
    call.ended_ns = now_;
    Span span;
    span.name = 2;
    span.call = static_cast<std::uint32_t>(timeline_.calls.size());
    span.submitted_ns = call.started_ns;
    span.started_ns = std::max(now_ + 2'000, free_ns_ + 1'000);
    span.ended_ns = free_ns_ = span.started_ns + ns;
    timeline_.calls.push_back(call);
    timeline_.spans.push_back(span);
  }
  void synchronize() {
    HostCall call;
    call.name = 1;
    call.kind = CallKind::synchronize;
    call.started_ns = now_;
    now_ = call.ended_ns = std::max(now_, free_ns_) + 3'000;
    timeline_.calls.push_back(call);
  }
  // The loader has the next batch every `pace_ns`.
  void fetch(std::int64_t pace_ns) {
    ready_ns_ += pace_ns;
    const std::int64_t begun = now_;
    now_ = std::max(now_, ready_ns_);
    timeline_.ranges.push_back({3, 0, begun, now_});
  }
  void end_step() {
    timeline_.names.push_back("ProfilerStep#" + std::to_string(step_++));
    timeline_.ranges.push_back({static_cast<std::uint32_t>(timeline_.names.size() - 1), 0, begun_ns_, now_});
    begun_ns_ = now_;
  }

  const Timeline& timeline() const { return timeline_; }
  std::int64_t now() const { return now_; }

 private:
  std::int64_t scaled(std::int64_t ns) const { return static_cast<std::int64_t>(host_ * static_cast<double>(ns)); }

  double host_;
  Timeline timeline_;
  std::int64_t now_ = 1'000'000, free_ns_ = 0, ready_ns_ = 1'000'000, begun_ns_ = 1'000'000;
  int step_ = 0;
};

const Prediction* prediction(const Advice& advice, const std::string& kind) {
  for (const Prediction& one : advice.predictions)
    if (one.what.kind == kind) return &one;
  return nullptr;
}

Program host_bound(double host = 1) {
  Program program(host);
  for (int step = 0; step < 6; ++step) {
    for (int i = 0; i < 20; ++i) {
      program.think(10'000);
      program.launch(2'000);
    }
    program.synchronize();
    program.end_step();
  }
  return program;
}

TEST(Advice, graphs_first_where_the_host_is_too_slow) {
  const Advice advice = advise::advise(host_bound().timeline(), {});
  ASSERT_EQ(advice.reason, "");
  EXPECT_LT(std::abs(advice.error), 0.001);
  ASSERT_NE(advice.first(), nullptr);
  EXPECT_EQ(advice.first()->what.kind, "graphs");
  // Thinking once, the graph's launch, its first kernel's latency, 20 kernels, the gaps between them, waking up.
  EXPECT_NEAR(advice.first()->step_ns, 10'000 + 8'000 + 2'000 + 20 * 2'000 + 19 * 450 + 3'000, 3'000);
  EXPECT_LE(advice.first()->low_ns, advice.first()->step_ns);
  EXPECT_GE(advice.first()->high_ns, advice.first()->step_ns);
}

Program with_wait(bool waits) {
  Program program;
  for (int step = 0; step < 8; ++step) {
    for (int i = 0; i < 8; ++i) {
      program.launch(50'000);
      program.think(20'000);
    }
    if (waits) program.synchronize();
    program.think(150'000);
    for (int i = 0; i < 4; ++i) program.launch(50'000);
    program.end_step();
  }
  program.synchronize();
  return program;
}

TEST(Advice, without_a_wait_the_host_goes_on) {
  const Advice advice = advise::advise(with_wait(true).timeline(), {});
  const Prediction* const wait = prediction(advice, "wait");
  ASSERT_NE(wait, nullptr);
  EXPECT_TRUE(wait->is_advised);
  const Program other = with_wait(false);
  const ReplayModel model = replay_model(other.timeline(), sim::profile_named("h200"));
  const double made = observed_step_ns(model, other.timeline());
  EXPECT_LT(made, 0.9 * advice.step_ns);
  EXPECT_NEAR(wait->step_ns, made, 0.02 * made);
}

Program behind_loader(std::int64_t pace_ns, double host = 1) {
  Program program(host);
  for (int step = 0; step < 8; ++step) {
    program.fetch(pace_ns);
    for (int i = 0; i < 12; ++i) {
      program.think(8'000);
      program.launch(10'000);
    }
    program.synchronize();
    program.end_step();
  }
  return program;
}

TEST(Advice, data_come_at_their_own_pace_until_they_are_ready_in_time) {
  const Advice advice = advise::advise(behind_loader(2'000'000).timeline(), {});
  ASSERT_EQ(advice.reason, "");
  EXPECT_NEAR(advice.step_ns, 2'000'000, 20'000);
  const Prediction* const data = prediction(advice, "data");
  ASSERT_NE(data, nullptr);
  EXPECT_TRUE(data->is_advised);
  EXPECT_NEAR(data->step_ns, 12 * 13'000 + 15'000, 10'000);
  // A faster host only waits longer.
  for (const Prediction& one : advice.predictions)
    if (one.what.kind == "host") {
      EXPECT_NEAR(one.step_ns, advice.step_ns, 0.01 * advice.step_ns);
    }
  EXPECT_EQ(prediction(advise::advise(host_bound().timeline(), {}), "data"), nullptr);
}

TEST(Advice, takes_out_what_the_profiler_costs) {
  const Program untraced = host_bound(0.5);
  const ReplayModel model = replay_model(untraced.timeline(), sim::profile_named("h200"));
  AdviceOptions options;
  options.untraced_ns = observed_step_ns(model, untraced.timeline());
  const Advice advice = advise::advise(host_bound(1).timeline(), options);
  EXPECT_NEAR(advice.host, 0.5, 0.02);
  EXPECT_NEAR(advice.scale, 1, 0.01);
  const Advice own = advise::advise(untraced.timeline(), {});
  EXPECT_NEAR(prediction(advice, "graphs")->step_ns, prediction(own, "graphs")->step_ns, 3'000);
}

// Kernels on one stream, collectives on another one, as FSDP and DDP have them.
class Training {
 public:
  Training() {
    timeline_.names = {"cudaLaunchKernel", "gemm", "ncclDevKernel", "FSDP::forward"};
    timeline_.processes = {{0, "a test"}};
    timeline_.devices = {{0, 0, "GPU 0"}};
    timeline_.streams = {{0, 7, "stream 7"}, {0, 20, "stream 20"}, {0, 21, "stream 21"}};
    timeline_.has_dependencies = true;
  }
  // Starts after what is before it on its stream and after `after`.
  std::uint32_t add(std::uint16_t stream, std::int64_t ns, std::optional<std::uint32_t> after,
                    CollectiveKind kind = CollectiveKind::unknown, std::uint64_t bytes = 0) {
    HostCall call;
    call.kind = CallKind::launch;
    call.started_ns = now_;
    now_ = call.ended_ns = now_ + 1'000;
    Span span;
    span.stream = stream;
    span.name = kind == CollectiveKind::unknown ? 1 : 2;
    span.kind = kind == CollectiveKind::unknown ? SpanKind::kernel : SpanKind::collective;
    span.call = static_cast<std::uint32_t>(timeline_.calls.size());
    span.submitted_ns = call.started_ns;
    span.started_ns = std::max(now_ + 2'000, free_ns_[stream] + 1'000);
    const auto index = static_cast<std::uint32_t>(timeline_.spans.size());
    if (after) {
      span.started_ns = std::max(span.started_ns, timeline_.spans[*after].ended_ns + 1'000);
      timeline_.dependencies.push_back({*after, index});
    }
    span.ended_ns = free_ns_[stream] = span.started_ns + ns;
    if (kind != CollectiveKind::unknown) timeline_.collectives.push_back({index, kind, 8, kNoName, bytes});
    timeline_.calls.push_back(call);
    timeline_.spans.push_back(span);
    return index;
  }
  Timeline& timeline() { return timeline_; }

 private:
  Timeline timeline_;
  std::int64_t now_ = 1'000'000, free_ns_[3] = {};
};

// Ten layers whose gradients are reduced on `stream`; an optimizer on stream 1 waits for each by an event.
Training with_reductions(std::uint16_t stream) {
  Training training;
  for (int i = 0; i < 10; ++i) {
    const std::uint32_t layer = training.add(0, 100'000, {});
    const std::uint32_t reduced = training.add(stream, 80'000, layer, CollectiveKind::all_reduce, 1 << 20);
    training.add(1, 1'000, reduced);
  }
  // There is room for the collectives beside the kernels.
  training.timeline().devices[0].multiprocessors = 100;
  for (Span& span : training.timeline().spans) span.blocks = 50;
  return training;
}

TEST(Advice, collectives_that_events_wait_for_leave_the_stream_of_their_kernels) {
  const Advice advice = advise::advise(with_reductions(0).timeline(), {});
  ASSERT_EQ(advice.reason, "");
  EXPECT_NEAR(advice.step_ns, 10 * 182'000 + 2'000, 3'000);
  const Prediction* const overlap = prediction(advice, "overlap");
  ASSERT_NE(overlap, nullptr);
  EXPECT_EQ(overlap->what.title, "communication overlapped as far as dependencies allow");
  EXPECT_TRUE(overlap->is_advised);
  EXPECT_NEAR(overlap->step_ns, 10 * 101'000 + 81'000 + 2'000, 3'000);
  EXPECT_LE(overlap->low_ns, overlap->step_ns);
  EXPECT_GE(overlap->high_ns, overlap->step_ns);
  EXPECT_TRUE(advice.unanswered.empty());
  // The same program with its collectives on a stream of their own takes as long as predicted, and has nothing left to
  // gain.
  const Advice other = advise::advise(with_reductions(2).timeline(), {});
  ASSERT_EQ(other.reason, "");
  EXPECT_NEAR(overlap->step_ns, other.step_ns, 5'000);
  ASSERT_NE(prediction(other, "overlap"), nullptr);
  EXPECT_NEAR(prediction(other, "overlap")->gain, 0, 0.001);
}

TEST(Advice, collectives_whose_readers_are_unknown_stay_with_a_reason) {
  Training training;
  for (int i = 0; i < 10; ++i) {
    training.add(0, 100'000, {});
    training.add(0, 80'000, {}, CollectiveKind::all_reduce, 1 << 20);
  }
  training.add(0, 100'000, {});
  Advice advice = advise::advise(training.timeline(), {});
  ASSERT_EQ(advice.reason, "");
  EXPECT_EQ(prediction(advice, "overlap"), nullptr);
  ASSERT_EQ(advice.unanswered.size(), 1U);
  EXPECT_NE(advice.unanswered[0].reason.find("no event waits for any"), std::string::npos);
  // One of them is waited for.
  training.add(1, 1'000, training.add(0, 80'000, {}, CollectiveKind::all_reduce, 1 << 20));
  training.add(0, 100'000, {});
  advice = advise::advise(training.timeline(), {});
  ASSERT_NE(prediction(advice, "overlap"), nullptr);
  EXPECT_NE(prediction(advice, "overlap")->what.title.find("(1 of 11"), std::string::npos);
  EXPECT_NEAR(prediction(advice, "overlap")->step_ns, advice.step_ns - 80'000 + 8'000, 5'000);

  Timeline without_waits = with_reductions(0).timeline();
  without_waits.has_dependencies = false;
  without_waits.dependencies.clear();
  advice = advise::advise(without_waits, {});
  ASSERT_EQ(advice.reason, "");
  EXPECT_EQ(prediction(advice, "overlap"), nullptr);
  ASSERT_EQ(advice.unanswered.size(), 1U);
  EXPECT_NE(advice.unanswered[0].reason.find("does not record"), std::string::npos);
}

TEST(Advice, parameters_that_are_fetched_in_time_cost_nothing) {
  Training training;
  std::optional<std::uint32_t> layer;
  for (int i = 0; i < 10; ++i) {
    // Asked for when the layer before has ended, so that its kernels wait for it.
    const std::uint32_t gather = training.add(1, 80'000, layer, CollectiveKind::all_gather, 1 << 24);
    layer = training.add(0, 100'000, gather);
  }
  const Advice advice = advise::advise(training.timeline(), {});
  ASSERT_EQ(advice.reason, "");
  const Prediction* const prefetch = prediction(advice, "prefetch");
  ASSERT_NE(prefetch, nullptr);
  EXPECT_TRUE(prefetch->is_advised);
  // A collective takes a tenth of the device from the kernels beside it.
  EXPECT_NEAR(prefetch->step_ns, 80'000 + 10 * 101'000 + 9 * 8'000, 12'000);
  training.timeline().names[3] = "forward";  // in other programs all-gathers may need what kernels have computed
  EXPECT_EQ(prediction(advise::advise(training.timeline(), {}), "prefetch"), nullptr);
}

TEST(Advice, buckets_twice_as_large_save_every_second_latency) {
  Training training;
  std::optional<std::uint32_t> last;
  for (int i = 0; i < 12; ++i) {
    const std::uint64_t bytes = static_cast<std::uint64_t>(i % 3 + 1) * 100'000;
    last = training.add(1, 40'000 + static_cast<std::int64_t>(bytes) / 10, training.add(0, 5'000, {}),
                        CollectiveKind::all_reduce, bytes);
  }
  training.add(0, 50'000, last);
  const Advice advice = advise::advise(training.timeline(), {});
  const Prediction* const buckets = prediction(advice, "buckets");
  ASSERT_NE(buckets, nullptr);
  EXPECT_NEAR(advice.step_ns - buckets->step_ns, 6 * 40'000, 20'000);
}

TEST(Advice, leaves_what_gains_nothing) {
  Program program;
  for (int step = 0; step < 5; ++step) {
    for (int i = 0; i < 5; ++i) program.launch(1'000'000);
    program.end_step();
  }
  program.synchronize();
  const Advice advice = advise::advise(program.timeline(), {});
  EXPECT_EQ(advice.reason, "");
  EXPECT_EQ(advice.first(), nullptr);
  for (const Prediction& one : advice.predictions)
    if (one.what.kind == "work") {
      EXPECT_NEAR(one.gain, 0.5, 0.01);  // Amdahl, of all of it
    }
}

TEST(Advice, gives_none_where_starts_are_unexplained) {
  Timeline timeline = host_bound().timeline();
  for (std::size_t i = 60; i < timeline.spans.size(); ++i) {  // as if something else had held the device
    timeline.spans[i].started_ns += 700'000;
    timeline.spans[i].ended_ns += 700'000;
  }
  for (HostCall& call : timeline.calls)
    if (call.started_ns >= timeline.calls[timeline.spans[60].call].started_ns && call.kind == CallKind::synchronize)
      call.ended_ns += 700'000;
  const Advice advice = advise::advise(timeline, {});
  EXPECT_NE(advice.reason.find("for reasons that the trace does not show"), std::string::npos) << advice.error;
  EXPECT_TRUE(advice.predictions.empty());
}

TEST(Advice, gives_none_without_calls_and_refuses_an_empty_trace) {
  Timeline timeline = host_bound().timeline();
  timeline.calls.clear();
  for (Span& span : timeline.spans) span.call = kNoCall;
  EXPECT_NE(advise::advise(timeline, {}).reason.find("no calls of the host"), std::string::npos);
  EXPECT_ANY_THROW(advise::advise(Timeline(), {}));
}

}  // namespace
}  // namespace weir::advise
