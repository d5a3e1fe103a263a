#include "step/workload/workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "step/workload/tiny_step.h"

namespace weir {
namespace {

TEST(Workloads, HaveDistinctNamesAndFacts) {
  std::set<std::string> names;
  for (const Workload& workload : workloads()) {
    EXPECT_TRUE(names.insert(workload.name).second) << workload.name;
    EXPECT_FALSE(workload.summary.empty() || workload.shows.empty() || workload.unit.empty()) << workload.name;
    // Case A copies in, computes and copies out on streams of their own.
    EXPECT_EQ(workload.streams.min, workload.name == "case_a_cnn" ? 3 : 1) << workload.name;
    EXPECT_EQ(workload.streams.max, kMaxStreams) << workload.name;
    EXPECT_LE(workload.streams.min, workload.streams.recommended) << workload.name;
    EXPECT_LE(workload.streams.recommended, workload.streams.max) << workload.name;
  }
}

TEST(Workloads, GiveEveryStreamWork) {
  for (const Workload& workload : workloads()) {
    for (const int streams : {1, 2, 3, 5, workload.streams.recommended, 127, 128}) {
      if (streams < workload.streams.min) continue;
      const Step step = build(workload, streams);
      std::vector<int> commands(static_cast<std::size_t>(streams), 0);
      for (const Command& command : step.commands()) ++commands[command.stream];
      EXPECT_EQ(step.stream_count(), streams);
      EXPECT_GT(*std::min_element(commands.begin(), commands.end()), 0) << workload.name << " on " << streams;
      EXPECT_TRUE(step.work() > 0 || step.counted()) << workload.name;
    }
  }
}

TEST(Workloads, WorkGrowsWhereTheySaySo) {
  for (const Workload& workload : workloads()) {
    if (workload.scaling != Scaling::grows) continue;
    const int few = workload.streams.min * 2;
    const double ratio = build(workload, few * 2).work() / build(workload, few).work();
    EXPECT_NEAR(ratio, 2.0, 1e-9) << workload.name;
  }
}

// The stream count up to which docs/workloads.md says that the same work is divided; beyond, more of it is made.
int divided_up_to(const Workload& workload) {
  const std::map<std::string, int> counts = {
      {"fsdp_tp", 64},      {"ranking_transformer", 16}, {"activation_ckpt", 64},  {"grad_accum", 64},
      {"zero_offload", 96}, {"case_a_cnn", 10},          {"case_b_transformer", 8}};
  const auto found = counts.find(workload.name);
  return found == counts.end() ? workload.streams.max : found->second;
}

TEST(Workloads, MoreWorkIsMadeWhereItCannotBeDividedFurther) {
  for (const Workload& workload : workloads()) {
    if (workload.scaling != Scaling::divided) continue;
    const Step few = build(workload, divided_up_to(workload)), many = build(workload, workload.streams.max);
    EXPECT_EQ(many.work() > few.work(), divided_up_to(workload) < workload.streams.max) << workload.name;
    // Of the same kind: what a sample costs stays about the same.
    if (workload.name == "moe") continue;
    EXPECT_NEAR(many.cost().flop / many.work() / (few.cost().flop / few.work()), 1.0, 0.25) << workload.name;
  }
}

TEST(Workloads, WorkIsTheSameWhereItIsDivided) {
  for (const Workload& workload : workloads()) {
    if (workload.scaling != Scaling::divided) continue;
    const Step few = build(workload, workload.streams.min), many = build(workload, divided_up_to(workload));
    EXPECT_EQ(few.work(), many.work()) << workload.name;
    // More streams may mean more experts, hence a wider gate: what the experts do stays the same.
    const auto flop = [&](const Step& step) {
      double total = 0;
      for (const Command& command : step.commands())
        if (command.kind == CommandKind::kernel || command.kind == CommandKind::host)
          if (workload.name != "moe" || kernel(command.kernel).name == "ragged_gemm")
            total += kernel(command.kernel).cost(command.shape).flop;
      return total;
    };
    // Sums over more shards or chunks are a little more work.
    EXPECT_NEAR(flop(many) / flop(few), 1.0, 0.25) << workload.name;
    EXPECT_NEAR(flop(build(workload, std::min(32, divided_up_to(workload)))) / flop(few), 1.0, 1e-6) << workload.name;
  }
}

TEST(Workloads, RequestsGrowWithTheStreams) {
  for (const Workload& workload : workloads()) {
    if (workload.scaling != Scaling::requests) continue;
    const Step few = build(workload, 4), many = build(workload, 32);
    EXPECT_GT(many.cost().flop / few.cost().flop, 5.0) << workload.name;
    std::set<std::uint32_t> requests;
    for (const Step::Token& token : many.tokens()) requests.insert(token.request);
    EXPECT_GE(requests.size(), 8u) << workload.name;
  }
}

TEST(Workloads, KnowWhichStateTheyCarry) {
  // Caches, slots and optimisers live on from one iteration to the next; all others compute the same again, so that the
  // output of the measured iterations themselves can be checked.
  const std::set<std::string> stateful = {"moe",          "speculative_decode",    "continuous_batch",   "rag_pipeline",
                                          "zero_offload", "disaggregated_serving", "ranking_transformer"};
  for (const Workload& workload : workloads())
    EXPECT_EQ(build(workload, workload.streams.recommended).is_repeatable(), !stateful.contains(workload.name))
        << workload.name;
}

TEST(Workloads, UnknownNamesGetASuggestion) {
  try {
    workload_named("hetero_kernel");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.hint.find("'hetero_kernels'"), std::string::npos);
  }
}

TEST(TinyKernelStress, IssuesInTheOrderAskedFor) {
  const Workload& workload = workload_named("tiny_kernel_stress");
  const Step interleaved = build(workload, 3);
  EXPECT_EQ(interleaved.commands()[0].stream, 0);
  EXPECT_EQ(interleaved.commands()[1].stream, 1);
  EXPECT_EQ(interleaved.commands()[3].stream, 0);
  const Step major = build(workload, 3, {{"order", "stream_major"}});
  for (std::size_t i = 1; i < major.commands().size(); ++i)
    EXPECT_GE(major.commands()[i].stream, major.commands()[i - 1].stream);
  EXPECT_EQ(interleaved.commands().size(), 3u * 4 * 4);
  EXPECT_EQ(interleaved.work(), 3.0 * 4 * 4);
}

TEST(TinyKernelStress, FourKernelsOfAnOperationDependOnEachOther) {
  const Step step = build(workload_named("tiny_kernel_stress"), 1);
  for (CommandId id = 0; id < step.commands().size(); ++id) {
    const auto before = step.predecessors(id);
    if (id % 4 == 0) {
      EXPECT_TRUE(before.empty()) << id;
    } else {
      ASSERT_FALSE(before.empty()) << id;
      EXPECT_EQ(before.back(), id - 1);
    }
  }
}

TEST(HeteroKernels, HalfTheStreamsAreLarge) {
  const Workload& workload = workload_named("hetero_kernels");
  for (const char* order : {"alternating", "batched", "random"}) {
    const Step step = build(workload, 8, {{"order", order}});
    std::map<StreamId, std::set<int>> roles;
    std::map<StreamId, int> count;
    for (const Command& command : step.commands()) {
      roles[command.stream].insert(command.role);
      ++count[command.stream];
    }
    int large = 0;
    for (const auto& [stream, seen] : roles) {
      ASSERT_EQ(seen.size(), 1u);
      const bool is_large = *seen.begin() == 0;
      large += is_large;
      EXPECT_EQ(count[stream], is_large ? 1 : 10) << order;
    }
    EXPECT_EQ(large, 4) << order;
  }
}

TEST(HeteroKernels, OneStreamDoesTheWorkOfTwo) {
  const Workload& workload = workload_named("hetero_kernels");
  EXPECT_EQ(workload.streams.min, 1);
  for (const char* order : {"alternating", "batched", "random"}) {
    const Step one = build(workload, 1, {{"order", order}}), two = build(workload, 2, {{"order", order}});
    EXPECT_EQ(one.work(), two.work());
    ASSERT_EQ(one.commands().size(), two.commands().size());
    for (std::size_t i = 0; i < one.commands().size(); ++i) {
      EXPECT_EQ(one.commands()[i].role, two.commands()[i].role);
      EXPECT_EQ(one.commands()[i].stream, 0);
    }
  }
}

TEST(HeteroKernels, OrderFollowsTheSeed) {
  const Workload& workload = workload_named("hetero_kernels");
  const auto streams = [&](std::uint64_t seed) {
    Params params(workload.params, Scale::tiny, std::vector<std::pair<std::string, std::string>>{{"order", "random"}});
    params.seed = seed;
    std::vector<int> order;
    const Step step = workload.build(params, 8);
    for (const Command& command : step.commands()) order.push_back(command.stream);
    return order;
  };
  EXPECT_EQ(streams(1), streams(1));
  EXPECT_NE(streams(1), streams(2));
}

TEST(Params, RejectWhatDoesNotFit) {
  const Workload& workload = workload_named("hetero_kernels");
  using Assignments = std::vector<std::pair<std::string, std::string>>;
  for (const Assignments& bad :
       {Assignments{{"sise", "4"}}, {{"size", "big"}}, {{"size", "0"}}, {{"size", "1e3"}}, {{"order", "none"}}})
    EXPECT_THROW(Params(workload.params, Scale::tiny, bad), Error) << bad[0].first << "=" << bad[0].second;
  EXPECT_EQ(Params(workload.params, Scale::full, Assignments{}).integer("size"), 4096);
  EXPECT_EQ(Params(workload.params, Scale::full, Assignments{{"size", "128"}}).integer("size"), 128);
}

}  // namespace
}  // namespace weir
