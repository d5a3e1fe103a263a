// Submitting through a channel: every channel, any number of producers and submitters, on devices that log, run, fail
// or dawdle.
#include "submit/channel.h"

#include <gtest/gtest.h>
#include <time.h>

#include <random>

#include "base/error.h"
#include "step/workload/workload.h"
#include "submit/order_session.h"
#include "submit/placement.h"

namespace weir {
namespace {

// How many producers and submitters each channel is tried with.
std::vector<std::string> ways(int most) {
  std::vector<std::string> all;
  for (const ChannelWay& way : channel_ways())
    for (int producers = 1; producers <= std::min(most, way.max_producers); producers += producers < 4 ? 1 : 2) {
      all.push_back("channel:" + std::string(way.name) + ":" + std::to_string(producers));
      if (producers != 3) all.push_back(all.back() + "x" + std::to_string(1 + producers % 3));
    }
  return all;
}

Placement random_placement(const Step& step, int streams, unsigned seed) {
  std::mt19937 random(seed);
  Placement placement{"random", streams, {}};
  for (std::size_t i = 0; i < step.commands().size(); ++i)
    placement.stream_of.push_back(static_cast<StreamId>(random() % static_cast<unsigned>(streams)));
  return placement;
}

void expect_clean(const OrderSession& session, const std::string& what) {
  EXPECT_TRUE(session.all_arrived()) << what;
  EXPECT_EQ(session.too_early(), 0) << what;
  EXPECT_EQ(session.out_of_order(), 0) << what;
  EXPECT_EQ(session.repeated(), 0) << what;
}

TEST(ChannelSubmitter, SubmitsEveryWorkloadInASafeOrder) {
  unsigned seed = 0;
  for (const Workload& workload : workloads()) {
    const int streams = workload.streams.recommended;
    const Step step = workload.build(Params(workload.params, Scale::tiny, {}), streams);
    for (const std::string& way : ways(8)) {
      if (++seed % 4 != 0) continue;  // others for each workload
      // Policies in turn, and every other time a placement that no policy would make.
      const Placement placement =
          seed % 8 == 0 ? random_placement(step, streams, seed) : placement_policies()[seed / 8 % 4].place(step);
      OrderSession session(step, placement);
      const auto submitter = make_submitter(parse_submit(way, streams), step, placement, session);
      for (int iteration = 0; iteration < 3; ++iteration) {
        session.begin_iteration();
        submitter->submit_step();
        expect_clean(session, workload.name + " " + way + " " + placement.name);
      }
    }
  }
}

TEST(ChannelSubmitter, ManyIterationsOfTangledSteps) {
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    const Step step = random_step(seed, 8, 200);
    const Placement placement = random_placement(step, 8, static_cast<unsigned>(seed));
    for (const std::string& way : ways(8)) {
      OrderSession session(step, placement);
      const auto submitter = make_submitter(parse_submit(way, 8), step, placement, session);
      for (int iteration = 0; iteration < 6; ++iteration) {
        session.begin_iteration();
        submitter->submit_step();
      }
      expect_clean(session, way);
    }
  }
}

// Waits where the submitter calls it, so that the channel fills up and producers have to wait.
class SlowSession final : public Session {
 public:
  explicit SlowSession(OrderSession& session) : session_(session) {}
  void begin_iteration() noexcept override { session_.begin_iteration(); }
  void submit(std::span<const CommandId> commands) noexcept override {
    const timespec pause{0, 2'000'000};  // long enough for 5000 commands to be pushed, and for producers to park
    const std::size_t before = commands_.fetch_add(commands.size());
    if (before / 1500 != (before + commands.size()) / 1500) nanosleep(&pause, nullptr);
    session_.submit(commands);
  }
  void finish() override {}
  std::vector<IterationSpan> take_spans() override { return {}; }
  Timeline timeline() override { return {}; }
  void reset() override {}
  void read(BufferId, std::span<std::byte>) override {}
  MemoryUse memory() const override { return {}; }

 private:
  OrderSession& session_;
  std::atomic<std::size_t> commands_{0};
};

TEST(ChannelSubmitter, ProducersWaitWhereTheChannelIsFull) {
  const Step step = random_step(2, 6, 5000);  // several times what a channel holds
  const Placement placement = place(step, "natural");
  for (const std::string& way : ways(4)) {
    OrderSession session(step, placement);
    SlowSession slow(session);
    const auto submitter = make_submitter(parse_submit(way, 6), step, placement, slow);
    for (int iteration = 0; iteration < 2; ++iteration) {
      slow.begin_iteration();
      submitter->submit_step();
      expect_clean(session, way);
    }
  }
}

TEST(ChannelSubmitter, ThreadsWakeAfterAPauseAndEndWithIt) {
  const Step step = random_step(1, 4);
  const Placement placement = place(step, "natural");
  for (const std::string& way : ways(4)) {
    OrderSession session(step, placement);
    make_submitter(parse_submit(way, 4), step, placement, session);  // never used
    const auto submitter = make_submitter(parse_submit(way, 4), step, placement, session);
    for (int i = 0; i < 2; ++i) {
      session.begin_iteration();
      submitter->submit_step();
      expect_clean(session, way);
      const timespec pause{0, 5'000'000};  // long enough for the threads to park
      nanosleep(&pause, nullptr);
    }
  }
}

TEST(ChannelSubmitter, MoreProducersThanStreamsHaveNothingToDo) {
  const Step step = random_step(4, 4);
  const Placement placement = place(step, "serial");
  for (const std::string& way : ways(4)) {
    OrderSession session(step, placement);
    const auto submitter = make_submitter(parse_submit(way, 4), step, placement, session);
    for (int i = 0; i < 3; ++i) {
      session.begin_iteration();
      submitter->submit_step();
      expect_clean(session, way);
    }
  }
}

// Real runs: what the cpu device computes must be what it computes with one thread.
TEST(ChannelSubmitter, GivesTheSameResultsAsOneThread) {
  const auto device = open_device("cpu", {});
  for (const char* name : {"moe", "hetero_kernels", "zero_offload", "tiny_kernel_stress", "graph_subgraphs"}) {
    const Workload& workload = workload_named(name);
    const int streams = workload.streams.recommended;
    const Step step = workload.build(Params(workload.params, Scale::tiny, {}), streams);
    const auto contents = [&](const std::string& way, const Placement& placement, bool is_pipelined) {
      const SubmitChoice choice = parse_submit(way, streams);
      SessionOptions options;
      options.host_threads = choice.host_threads();
      options.is_pipelined = is_pipelined;
      const auto session = device->prepare(step, placement, options);
      const auto submitter = make_submitter(choice, step, placement, *session);
      for (int i = 0; i < 6; ++i) {
        session->begin_iteration();
        submitter->submit_step();
        if (!is_pipelined) session->finish();
      }
      session->finish();
      std::vector<std::vector<std::byte>> all;
      for (BufferId buffer = 0; buffer < step.buffers().size(); ++buffer) {
        all.emplace_back(step.buffers()[buffer].size_bytes());
        session->read(buffer, all.back());
      }
      return all;
    };
    const auto expected = contents("inline", place(step, "serial"), false);
    for (const char* way : {"channel:mpsc:4", "channel:lanes:3", "channel:mpmc:2", "channel:spsc",
                            "channel:mutex_deque:3", "channel:mpsc:4x3"})
      for (const bool is_pipelined : {false, true})
        EXPECT_TRUE(contents(way, random_placement(step, streams, 7), is_pipelined) == expected)
            << name << " " << way << (is_pipelined ? ", pipelined" : "");
  }
}

TEST(ChannelSubmitter, StampsCommandsBeforeTheyAreSubmitted) {
  const Step step = random_step(6, 4);
  const Placement placement = place(step, "natural");
  const std::size_t count = step.commands().size();
  for (const std::string& way : ways(4)) {
    OrderSession session(step, placement);
    const auto submitter = make_submitter(parse_submit(way, 4), step, placement, session, 2);
    Timeline timeline;
    std::vector<std::int64_t> begun, ended;
    for (std::uint32_t iteration = 0; iteration < 3; ++iteration) {
      session.begin_iteration();
      begun.push_back(now_ns());
      submitter->submit_step();
      ended.push_back(now_ns());
      for (CommandId id = 0; id < count; ++id) {
        Span span;
        span.command = id;
        span.iteration = iteration;
        timeline.spans.push_back(span);
      }
    }
    submitter->stamp(timeline);
    for (const Span& span : timeline.spans) {
      if (span.iteration == 2) {
        EXPECT_EQ(span.enqueued_ns, kNoTime) << "only two were to be traced";
        continue;
      }
      EXPECT_GE(span.enqueued_ns, begun[span.iteration]) << way;
      EXPECT_LE(span.enqueued_ns, ended[span.iteration]) << way;
    }
    Timeline none = timeline;
    for (Span& span : none.spans) span.enqueued_ns = kNoTime;
    make_submitter(parse_submit("inline", 4), step, placement, session)->stamp(none);
    for (const Span& span : none.spans) EXPECT_EQ(span.enqueued_ns, kNoTime);
  }
}

}  // namespace
}  // namespace weir
