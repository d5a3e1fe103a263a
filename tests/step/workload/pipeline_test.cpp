// The workloads whose total work is fixed and cut into pieces: that it is, and that their steps are built as they
// claim.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/error.h"
#include "step/workload/tiny_step.h"
#include "step/workload/workload.h"

namespace weir {
namespace {

constexpr const char* kPipelines[] = {"grad_accum", "graph_subgraphs", "async_dataload", "zero_offload",
                                      "torch_compile"};

struct Wish {
  Scale scale = Scale::tiny;
  std::vector<std::pair<std::string, std::string>> assignments = {};
  Precision precision = Precision::fp32;
  Ranks ranks = {};
};

Step build_wished(std::string_view name, int streams, const Wish& wish = {}) {
  const Workload& workload = workload_named(name);
  Params params(workload.params, wish.scale, wish.assignments);
  params.precision = wish.precision;
  params.ranks = wish.ranks;
  return workload.build(params, streams);
}

std::string_view kernel_of(const Step& step, CommandId id) {
  const Command& command = step.commands()[id];
  const bool is_kernel = command.kind == CommandKind::kernel || command.kind == CommandKind::host;
  return is_kernel ? kernel(command.kernel).name : std::string_view();
}

std::vector<CommandId> where(const Step& step, const std::function<bool(CommandId)>& claim) {
  std::vector<CommandId> found;
  for (CommandId id = 0; id < step.commands().size(); ++id)
    if (claim(id)) found.push_back(id);
  return found;
}

std::vector<CommandId> launches(const Step& step, std::string_view name, int role) {
  return where(step, [&](CommandId id) { return step.commands()[id].role == role && kernel_of(step, id) == name; });
}

std::vector<CommandId> copies(const Step& step, int role) {
  return where(step, [&](CommandId id) {
    return step.commands()[id].role == role && step.commands()[id].kind == CommandKind::copy;
  });
}

bool writes(const Step& step, CommandId id, BufferId buffer) {
  const auto accesses = step.accesses(id);
  return std::any_of(accesses.begin(), accesses.end(),
                     [&](const Access& access) { return access.writes && access.buffer == buffer; });
}

// Everything that must have ended before `id` starts, by data alone.
std::set<CommandId> ancestors(const Step& step, CommandId id) {
  std::set<CommandId> found;
  std::vector<CommandId> open{id};
  while (!open.empty()) {
    const CommandId next = open.back();
    open.pop_back();
    for (const CommandId before : step.predecessors(next))
      if (found.insert(before).second) open.push_back(before);
  }
  return found;
}

TEST(Pipelines, AreRegisteredAsSpecified) {
  struct Facts {
    const char *name, *category, *unit;
    int priority, recommended;
  };
  for (const Facts& facts :
       {Facts{"grad_accum", "distributed", "samples/s", 2, 6},
        Facts{"graph_subgraphs", "latency_sensitive", "samples/s", 2, 8},
        Facts{"async_dataload", "pipeline", "images/s", 3, 6}, Facts{"zero_offload", "pipeline", "samples/s", 3, 6},
        Facts{"torch_compile", "pipeline", "samples/s", 3, 8}}) {
    const Workload& workload = workload_named(facts.name);
    EXPECT_EQ(workload.category, facts.category) << facts.name;
    EXPECT_EQ(workload.unit, facts.unit) << facts.name;
    EXPECT_EQ(workload.priority, facts.priority) << facts.name;
    EXPECT_EQ(workload.scaling, Scaling::divided) << facts.name;
    EXPECT_EQ(workload.streams.recommended, facts.recommended) << facts.name;
  }
}

TEST(Pipelines, GiveEveryStreamWorkOfOneRole) {
  for (const char* name : kPipelines) {
    const Workload& workload = workload_named(name);
    for (const Scale scale : {Scale::tiny, Scale::small, Scale::full}) {
      for (int streams = static_cast<int>(workload.roles.size()); streams <= workload.streams.max; ++streams) {
        const Step step = build_wished(name, streams, {.scale = scale});
        std::vector<std::set<int>> roles(static_cast<std::size_t>(streams));
        std::set<int> seen;
        for (const Command& command : step.commands()) {
          roles[command.stream].insert(command.role);
          seen.insert(command.role);
        }
        for (const auto& of_stream : roles) EXPECT_EQ(of_stream.size(), 1u) << name << " on " << streams;
        EXPECT_EQ(seen.size(), workload.roles.size()) << name << " on " << streams;
      }
    }
  }
}

TEST(Pipelines, RolesShareStreamsWhereThereAreFewerThanRoles) {
  for (const char* name : kPipelines) {
    const Workload& workload = workload_named(name);
    const auto order = [&](int streams) {
      std::vector<std::pair<int, std::string_view>> commands;
      const Step step = build_wished(name, streams);
      for (CommandId id = 0; id < step.commands().size(); ++id)
        commands.emplace_back(step.commands()[id].role, kernel_of(step, id));
      return commands;
    };
    std::set<int> roles;
    for (const auto& [role, kernel] : order(1)) roles.insert(role);
    EXPECT_EQ(roles.size(), workload.roles.size()) << name << ": all roles on one stream";
  }
}

TEST(Pipelines, WorkDoesNotDependOnTheStreamCount) {
  for (const char* name : kPipelines) {
    const Workload& workload = workload_named(name);
    for (const Scale scale : {Scale::tiny, Scale::full}) {
      const Step least = build_wished(name, workload.streams.min, {.scale = scale});
      EXPECT_GT(least.cost().flop, 0) << name;
      for (int streams = workload.streams.min + 1; streams <= 32; ++streams) {
        const Step step = build_wished(name, streams, {.scale = scale});
        EXPECT_EQ(step.cost().flop, least.cost().flop) << name << " on " << streams;
        EXPECT_EQ(step.work(), least.work()) << name << " on " << streams;
        EXPECT_EQ(step.size_bytes(Place::device), least.size_bytes(Place::device)) << name << " on " << streams;
      }
    }
  }
}

TEST(Pipelines, FitADeviceInEveryPrecision) {
  for (const char* name : kPipelines)
    for (const Precision precision : {Precision::fp32, Precision::fp16, Precision::bf16})
      EXPECT_LT(build_wished(name, 8, {.scale = Scale::full, .precision = precision}).size_bytes(Place::device), 4e9)
          << name;
}

TEST(Pipelines, AreRepeatableWithoutAnOptimizer) {
  for (const char* name : kPipelines)
    EXPECT_EQ(build_wished(name, 8).is_repeatable(), std::string_view(name) != "zero_offload") << name;
}

TEST(GradAccum, ALayerIsReducedAfterItsLastMicroBatchAndBesideTheLayersBelow) {
  constexpr int kCompute = 0, kReduce = 1, kLayers = 3, kMicroBatches = 4;
  const Step step = build_wished("grad_accum", 6);
  const auto sums = launches(step, "sum_rows", kReduce);
  ASSERT_EQ(sums.size(), 16u * kLayers);
  std::set<CommandId> gradients_above;
  for (std::size_t layer = 0; layer < kLayers; ++layer) {  // the last layer comes first
    const BufferId parts = step.accesses(sums[16 * layer])[0].buffer;
    const auto made = where(step, [&](CommandId id) { return writes(step, id, parts); });
    ASSERT_EQ(made.size(), 3u * kMicroBatches);  // compute streams
    for (std::size_t i = 0; i < made.size(); ++i) {
      EXPECT_EQ(step.commands()[made[i]].role, kCompute);
      EXPECT_EQ(step.commands()[made[i]].shape.scalars[1], i < 3 ? 0 : 1);  // the first micro-batch sets, others add
    }
    gradients_above.insert(made.begin(), made.end());
    for (std::size_t i = 16 * layer; i < 16 * (layer + 1); ++i) {
      EXPECT_EQ(step.accesses(sums[i])[0].buffer, parts);
      for (std::size_t last = made.size() - 3; last < made.size(); ++last)
        EXPECT_TRUE(is_predecessor(step, made[last], sums[i]));
      for (const CommandId before : ancestors(step, sums[i]))
        if (step.commands()[before].shape.scalars[1] == 1 && kernel_of(step, before) == "gemm") {
          EXPECT_TRUE(gradients_above.contains(before)) << "waits for a layer below";
        }
    }
  }
}

TEST(GradAccum, RanksReduceWhatTheirStreamsHaveSummed) {
  const Step step = build_wished("grad_accum", 6, {.ranks = {1, 2}});
  const auto reductions =
      where(step, [&](CommandId id) { return step.commands()[id].kind == CommandKind::collective; });
  EXPECT_EQ(reductions.size(), 48u);
  for (const CommandId id : reductions) {
    ASSERT_EQ(step.predecessors(id).size(), 1u);
    const CommandId sum = step.predecessors(id)[0];
    EXPECT_EQ(kernel_of(step, sum), "sum_rows");
    EXPECT_EQ(step.commands()[sum].stream, step.commands()[id].stream);
  }
}

TEST(GraphSubgraphs, AreIndependentBetweenForkAndJoin) {
  for (const int streams : {4, 8, 64}) {
    const Step step = build_wished("graph_subgraphs", streams);
    const std::vector<CommandId> fork = where(step, [&](CommandId id) { return step.commands()[id].role == 0; });
    ASSERT_EQ(fork.size(), 1u);
    const auto gemms = launches(step, "gemm", 1);
    const std::size_t items = gemms.size() / 3;
    EXPECT_EQ(items, streams == 64 ? 64u : 8u);
    for (std::size_t i = 0; i < gemms.size(); ++i) {
      const auto before = ancestors(step, gemms[i]);
      EXPECT_TRUE(before.contains(fork[0]));
      EXPECT_EQ(before.size(), 1 + 2 * (i / items));  // beside the fork, its own layers below: a product, an activation
    }
    const auto last = static_cast<CommandId>(step.commands().size() - 1);
    EXPECT_EQ(ancestors(step, last).size(), last);  // the join needs all of it
  }
}

TEST(AsyncDataload, ASlotIsFilledAgainWhenItsImagesArePreprocessed) {
  constexpr std::size_t kChunks = 16, kBatches = 4;
  for (const int streams : {4, 6, 32}) {
    const Step step = build_wished("async_dataload", streams);
    const auto fills = copies(step, 0), augments = launches(step, "augment", 1);
    ASSERT_EQ(fills.size(), kChunks * kBatches);
    ASSERT_EQ(augments.size(), fills.size());
    for (std::size_t i = 0; i < fills.size(); ++i) {
      EXPECT_TRUE(is_predecessor(step, fills[i], augments[i]));
      if (i < 2 * kChunks) {
        EXPECT_TRUE(step.predecessors(fills[i]).empty());
        // The next iteration's first batches take the slots of this one's last.
        EXPECT_TRUE(std::ranges::binary_search(step.carried(fills[i]), augments[i + 2 * kChunks]));
        continue;
      }
      EXPECT_TRUE(is_predecessor(step, augments[i - 2 * kChunks], fills[i]));
      for (const CommandId before : ancestors(step, fills[i])) EXPECT_NE(step.commands()[before].role, 2);
    }
  }
}

TEST(ZeroOffload, LayersComputeWithWhatWasFetchedForThem) {
  const Step step = build_wished("zero_offload", 6);
  std::map<BufferId, std::set<BufferId>> held;  // by slot: host buffers that its pieces came from
  std::map<BufferId, std::vector<CommandId>> filled;
  std::vector<BufferId> used;
  for (CommandId id = 0; id < step.commands().size(); ++id) {
    if (step.commands()[id].kind == CommandKind::copy) {
      const Access &from = step.accesses(id)[0], &to = step.accesses(id)[1];
      auto& [slot, sources] = *held.try_emplace(to.buffer).first;
      if (to.offset_bytes == 0) {
        sources.clear();
        filled[slot].clear();
      }
      sources.insert(from.buffer);
      filled[slot].push_back(id);
    } else if (kernel_of(step, id) == "gemm" && held.contains(step.accesses(id)[1].buffer)) {
      const BufferId slot = step.accesses(id)[1].buffer;
      ASSERT_EQ(held[slot].size(), 1u);
      EXPECT_EQ(filled[slot].size(), 8u);
      for (const CommandId copy : filled[slot]) EXPECT_TRUE(is_predecessor(step, copy, id));
      if (used.empty() || used.back() != *held[slot].begin()) used.push_back(*held[slot].begin());
    }
  }
  ASSERT_EQ(used.size(), 7u);  // layers 0 1 2 3 and back: 2 1 0
  EXPECT_EQ(std::set(used.begin(), used.end()).size(), 4u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(used[i], used[6 - i]);
  // One layer ahead: the first two need nothing to have ended, later ones wait for their slot alone.
  const auto fetches = copies(step, 0);
  for (std::size_t i = 0; i < 16; ++i) EXPECT_TRUE(step.predecessors(fetches[i]).empty());
  const auto first_gemm = launches(step, "gemm", 1)[0];
  EXPECT_LT(fetches[15], first_gemm);
}

TEST(ZeroOffload, AdamTakesWhatWasCopiedOutAndGivesWhatIsCopiedBack) {
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    const Step step = build_wished("zero_offload", 6, {.precision = precision});
    const auto updates = launches(step, "adam", 3);
    ASSERT_EQ(updates.size(), 4u * 8);
    const auto out = copies(step, 2), in = copies(step, 0);
    for (std::size_t i = 0; i < updates.size(); ++i) {
      const CommandId update = updates[i], back = in[in.size() - updates.size() + i];
      EXPECT_EQ(step.commands()[update].kind, CommandKind::host);
      EXPECT_TRUE(is_predecessor(step, out[i], update));
      EXPECT_EQ(step.accesses(out[i])[1].buffer, step.accesses(update)[0].buffer);
      EXPECT_TRUE(is_predecessor(step, update, back));
      EXPECT_EQ(step.accesses(back)[0].buffer, step.accesses(update)[1].buffer);
    }
    // In f32 the master is what is fetched, so the next iteration's fetch waits for Adam.
    const bool is_master = step.buffers()[step.accesses(in[0])[0].buffer].is_written;
    EXPECT_EQ(is_master, precision == Precision::fp32);
    EXPECT_EQ(std::ranges::binary_search(step.carried(in[0]), updates[3 * 8]), is_master);
  }
}

class TorchCompile : public testing::TestWithParam<const char*> {
 protected:
  static Step step_of(const char* mode) { return build_wished("torch_compile", 8, {.assignments = {{"mode", mode}}}); }
};
INSTANTIATE_TEST_SUITE_P(, TorchCompile, testing::Values("compiled", "eager"));

TEST_P(TorchCompile, EachRegionGroupIsAGraphAndEachBreakIsAlone) {
  const Step step = step_of(GetParam());
  const auto segments = step.segments();
  ASSERT_EQ(segments.size(), 6u);
  for (const std::size_t pause : {1u, 3u}) {
    ASSERT_EQ(segments[pause + 1] - segments[pause], 1u);
    const CommandId host = segments[pause];
    EXPECT_EQ(step.commands()[host].kind, CommandKind::host);
    EXPECT_EQ(kernel_of(step, host), "graph_break");
    EXPECT_EQ(step.commands()[host].shape.dims[1], 50'000);
    EXPECT_EQ(step.commands()[host - 1].kind, CommandKind::copy);
    EXPECT_EQ(step.commands()[host + 1].kind, CommandKind::copy);
    // All that comes after waits for the host, which waits for all that came before.
    EXPECT_EQ(ancestors(step, host).size(), host);
    for (CommandId id = host + 1; id < segments[pause + 2]; ++id) {
      // In eager mode the sum of the regions is a kernel of its own, which does not need their means.
      const bool adds_regions = kernel_of(step, id) == "add" && step.commands()[id].shape.dims[2] == 0;
      EXPECT_EQ(ancestors(step, id).contains(host), pause == 1 || !adds_regions) << id;
    }
  }
}

TEST_P(TorchCompile, RegionsBAndCDoNotWaitForEachOther) {
  const Step step = step_of(GetParam());
  for (const int role : {1, 2})
    for (const CommandId id : launches(step, "gemm", role))
      for (const CommandId before : ancestors(step, id))
        EXPECT_FALSE(step.commands()[before].role == 3 - role && kernel_of(step, before) == "gemm");
}

// Compiled: a kernel per element-wise region and chunk. Eager: one per operation, none of them compiled, for the same
// work.
TEST(TorchCompileModes, DifferInTheirKernelsAlone) {
  const auto count = [](const Step& step, std::string_view name) {
    return where(step, [&](CommandId id) { return kernel_of(step, id) == name; }).size();
  };
  const Step compiled = build_wished("torch_compile", 8);
  const Step eager = build_wished("torch_compile", 8, {.assignments = {{"mode", "eager"}}});
  constexpr std::size_t kChunks = 8;
  EXPECT_EQ(count(compiled, "region"), 7 * kChunks);
  EXPECT_EQ(count(compiled, "chain") + count(compiled, "gelu") + count(compiled, "add"), 0u);
  EXPECT_EQ(count(eager, "region"), 0u);
  EXPECT_EQ(count(eager, "chain"), (3 + 2 + 2) * kChunks);
  EXPECT_EQ(count(eager, "gelu"), kChunks);
  EXPECT_EQ(count(eager, "add"), (2 + 2) * kChunks);
  for (const char* name : {"gemm", "reduce", "sum_rows", "layer_norm", "graph_break"})
    EXPECT_EQ(count(compiled, name), count(eager, name)) << name;
  EXPECT_EQ(compiled.work(), eager.work());
  EXPECT_LT(compiled.cost().bytes, eager.cost().bytes);
}

TEST(Pipelines, SizesThatDoNotFitAreRejectedWithAWayOut) {
  const auto rejects = [](const char* name, int streams, std::vector<std::pair<std::string, std::string>> assignments) {
    try {
      build_wished(name, streams, {.assignments = std::move(assignments)});
    } catch (const Error& error) {
      return error.fault == Fault::input && !error.hint.empty();
    }
    return false;
  };
  EXPECT_TRUE(rejects("grad_accum", 6, {{"batch", "20"}}));
  EXPECT_TRUE(rejects("zero_offload", 6, {{"rows", "20"}}));
  EXPECT_TRUE(rejects("graph_subgraphs", 64, {{"batch", "4"}}));
  EXPECT_TRUE(rejects("async_dataload", 6, {{"chunk", "3"}}));
  EXPECT_TRUE(rejects("async_dataload", 32, {{"chunk", "16"}}));
}

TEST(Pipelines, NameTheParameterThatDoesNotFit) {
  const auto said = [](const char* name, std::vector<std::pair<std::string, std::string>> assignments) {
    const Workload& workload = workload_named(name);
    try {
      workload.build(Params(workload.params, Scale::tiny, assignments), workload.streams.recommended);
    } catch (const Error& error) {
      return error.what() + (" | " + error.hint);
    }
    return std::string();
  };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  const std::string draft = said("speculative_decode", {{"draft_hidden", "9"}});
  EXPECT_TRUE(has(draft, "param draft_hidden=9: draft_heads") && has(draft, "draft_hidden=8 or 10")) << draft;
  const std::string rows = said("activation_ckpt", {{"batch", "1"}});
  EXPECT_TRUE(has(rows, "param batch=1:") && has(rows, "batch=2")) << rows;
  const std::string shards = said("grad_accum", {{"batch", "33"}});
  EXPECT_TRUE(has(shards, "param batch=33:") && has(shards, "batch=32 or 48")) << shards;
  const std::string wide = said("continuous_batch", {{"hidden", "32768"}});
  EXPECT_TRUE(has(wide, "param hidden=32768:") && has(wide, "hidden=256 or less")) << wide;
  const std::string many =
      said("speculative_decode", {{"rounds", "1000"}, {"layers", "256"}, {"speculate", "32"}, {"draft_layers", "256"}});
  EXPECT_TRUE(has(many, "more than 10000000 commands")) << many;
}

}  // namespace
}  // namespace weir
