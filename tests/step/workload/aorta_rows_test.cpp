// Rows of "What AORTA gets wrong" that a step shows without a device: every stream has work, no two commands race, the
// cache is read, generation goes token by token, gradients use what was recomputed, blocks use what was gathered.
// tests/run/aorta_rows_test.cpp has the list of all rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "kernel/attention.h"
#include "kernel/gemm.h"
#include "step/workload/tiny_step.h"
#include "step/workload/workload.h"
#include "support/replay.h"

namespace weir {
namespace {

using Assignments = std::vector<std::pair<std::string, std::string>>;

Step build_as_declared(const Workload& workload, int streams, const Assignments& assignments = {}) {
  Params params(workload.params, Scale::tiny, assignments);
  params.precision = workload.precision;
  return workload.build(params, streams);
}

bool is_same(const Access& a, const Access& b) {
  return a.buffer == b.buffer && a.offset_bytes == b.offset_bytes && a.size_bytes == b.size_bytes;
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Workload& workload : workloads()) all.push_back(workload.name);
  return all;
}

class AortaStep : public testing::TestWithParam<std::string> {
 protected:
  const Workload& workload() const { return workload_named(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Workloads, AortaStep, testing::ValuesIn(names()),
                         [](const testing::TestParamInfo<std::string>& info) { return info.param; });

// Row: at most 9 streams have work, extra streams idle.
TEST_P(AortaStep, EveryRequestedStreamReceivesWorkAtEveryCount) {
  for (int streams = workload().streams.min; streams <= workload().streams.max; ++streams) {
    // Long steps take their time: of the higher counts, those around which shards, chunks and groups change.
    const std::set<int> kHigh = {17, 31, 32, 33, 48, 49, 63, 64, 65, 96, 97, 111, 127, 128};
    if (streams > 16 && !kHigh.contains(streams)) continue;
    const Step step = build_as_declared(workload(), streams);
    std::vector<int> commands(static_cast<std::size_t>(streams), 0);
    for (const Command& command : step.commands()) ++commands.at(command.stream);
    EXPECT_EQ(std::count(commands.begin(), commands.end(), 0), 0) << "on " << streams;
    EXPECT_EQ(step.stream_count(), streams);
  }
}

// Which commands of two iterations in a row have ended before each, whatever the streams do: commands [0, n) are those
// of the first, [n, 2n) of the second.
class Order {
 public:
  explicit Order(const Step& step) : count_(step.commands().size()), words_((2 * count_ + 63) / 64) {
    before_.resize(2 * count_, std::vector<std::uint64_t>(words_, 0));
    for (std::size_t node = 0; node < 2 * count_; ++node) {
      const auto id = static_cast<CommandId>(node % count_);
      const std::size_t iteration = node - id;
      for (const CommandId before : step.predecessors(id)) follow(node, iteration + before);
      if (iteration == 0) continue;
      follow(node, id);  // on one stream, so in order
      for (const CommandId before : step.carried(id)) follow(node, before);
    }
  }
  bool has(std::size_t before, std::size_t node) const { return (before_[node][before / 64] >> before % 64 & 1) != 0; }

 private:
  void follow(std::size_t node, std::size_t before) {
    for (std::size_t w = 0; w < words_; ++w) before_[node][w] |= before_[before][w];
    before_[node][before / 64] |= std::uint64_t{1} << before % 64;
  }
  std::size_t count_, words_;
  std::vector<std::vector<std::uint64_t>> before_;
};

// Row: data races between streams. Two commands that touch the same bytes, one of them writing, are always in order,
// within an iteration and from one to the next.
TEST_P(AortaStep, NoTwoCommandsRace) {
  for (const int streams : {workload().streams.min, workload().streams.recommended, 33}) {
    const Step step = build_as_declared(workload(), streams);
    const Order order(step);
    const std::size_t count = step.commands().size();
    struct Use {
      std::size_t node;
      Access access;
    };
    std::vector<std::vector<Use>> uses(step.buffers().size());
    for (std::size_t node = 0; node < 2 * count; ++node)
      for (const Access& access : step.accesses(static_cast<CommandId>(node % count)))
        uses[access.buffer].push_back({node, access});
    std::size_t conflicts = 0, races = 0;
    for (const std::vector<Use>& of_buffer : uses)
      for (std::size_t j = 0; j < of_buffer.size(); ++j)
        for (std::size_t i = 0; i < j; ++i) {
          const auto& [earlier, a] = of_buffer[i];
          const auto& [later, b] = of_buffer[j];
          if (earlier == later || !(a.writes || b.writes) || !overlaps(a, b)) continue;
          ++conflicts;
          if (order.has(earlier, later)) continue;
          ++races;
          ADD_FAILURE_AT(__FILE__, __LINE__)
              << earlier << " and " << later << " of " << count << " race on buffer " << a.buffer;
          ASSERT_LT(races, 5u);
        }
    EXPECT_GT(conflicts, 0u);
  }
}

constexpr const char* kServing[] = {"continuous_batch", "speculative_decode", "disaggregated_serving", "rag_pipeline"};

// The gemm that made what a command reads there.
CommandId maker_of(const Step& step, const Access& access, CommandId reader) {
  const std::vector<CommandId> writers = last_writers(step, access, reader);
  EXPECT_EQ(writers.size(), 1u);
  return writers.at(0);
}

// Row: the KV cache is never read. Here attention reads all of a cache whose newest rows are keys and values of the
// tokens that ask: made from the same input as the queries, at the length that attention looks back from.
TEST(AortaKvCache, AttentionReadsTheWholeCacheThatItsOwnTokensWereAppendedTo) {
  for (const char* name : kServing) {
    const Workload& workload = workload_named(name);
    for (const int streams : {workload.streams.min, workload.streams.recommended}) {
      const Step step = build_as_declared(workload, streams);
      const std::vector<CommandId> attentions = launches_of(step, "attention");
      ASSERT_FALSE(attentions.empty()) << name;
      for (const CommandId id : attentions) {
        const auto accesses = step.accesses(id);
        const auto& dims = step.commands()[id].shape.dims;
        const auto elements = static_cast<std::uint64_t>(dims[0] * dims[2] * heads_in(dims[3]) * head_dim_in(dims[3]));
        const CommandId query = maker_of(step, accesses[0], id);
        std::set<BufferId> caches;
        for (const std::size_t cache : {1u, 2u}) {
          const Buffer& buffer = step.buffers()[accesses[cache].buffer];
          EXPECT_TRUE(accesses[cache].reads);
          EXPECT_EQ(accesses[cache].offset_bytes, 0u) << name;
          EXPECT_EQ(accesses[cache].size_bytes, buffer.size_bytes()) << name;
          EXPECT_EQ(buffer.count, elements) << name;
          caches.insert(accesses[cache].buffer);
          const CommandId append = maker_of(step, accesses[cache], id);
          ASSERT_EQ(kernel_name(step, append), "cache_write") << name;
          EXPECT_TRUE(is_predecessor(step, append, id));
          EXPECT_TRUE(is_same(step.accesses(append)[2], accesses[3])) << name << ": another length";
          const CommandId made = maker_of(step, step.accesses(append)[0], append);
          EXPECT_EQ(kernel_name(step, made), "gemm");
          EXPECT_TRUE(is_same(step.accesses(made)[0], step.accesses(query)[0])) << name << ": of other tokens";
          EXPECT_FALSE(is_same(step.accesses(made)[1], step.accesses(query)[1])) << name;
        }
        EXPECT_EQ(caches.size(), 2u) << name;
      }
    }
  }
}

// What a prompt's pass left in its cache is what the decoding side's cache is filled with.
TEST(AortaKvCache, DecodingSidesAreFilledFromThePromptsCaches) {
  for (const char* name : {"disaggregated_serving", "continuous_batch"}) {
    const Workload& workload = workload_named(name);
    const Step step = build_as_declared(workload, workload.streams.recommended);
    std::map<BufferId, CommandId> prompts;  // caches that prefill's attention read
    std::set<BufferId> decoding;
    for (const CommandId id : launches_of(step, "attention"))
      for (const std::size_t cache : {1u, 2u}) {
        const BufferId buffer = step.accesses(id)[cache].buffer;
        if (workload.roles[step.commands()[id].role] == "prefill") {
          prompts[buffer] = maker_of(step, step.accesses(id)[cache], id);
        } else {
          decoding.insert(buffer);
        }
      }
    std::set<BufferId> filled;
    for (CommandId id = 0; id < step.commands().size(); ++id) {
      const auto accesses = step.accesses(id);
      if (!prompts.contains(accesses[0].buffer) || kernel_name(step, id) == "attention") continue;
      EXPECT_EQ(accesses[0].size_bytes, step.buffers()[accesses[0].buffer].size_bytes()) << name;
      EXPECT_TRUE(is_predecessor(step, prompts.at(accesses[0].buffer), id)) << name;
      EXPECT_TRUE(decoding.contains(accesses.back().buffer)) << name;
      filled.insert(accesses.back().buffer);
    }
    // Every prompt goes to one cache; where each request is a prompt, every cache is filled.
    EXPECT_EQ(filled.size(), prompts.size()) << name;
    if (std::string_view(name) == "disaggregated_serving") {
      EXPECT_EQ(filled, decoding);
    }
  }
}

void store(ElementType type, std::span<std::byte> bytes, std::size_t i, double value) {
  with_float_type(type, [&]<class T>(T*) { reinterpret_cast<T*>(bytes.data())[i] = from_float<T>(float(value)); });
}

// Overwrites one position of a slot: values by a constant, keys by what its query looks for.
void change_position(const Step& step, Replay& replay, CommandId id, std::size_t cache, std::int64_t sequence,
                     std::int64_t position) {
  const auto accesses = step.accesses(id);
  const auto [sequences, queries, positions, packed] = step.commands()[id].shape.dims;
  const std::int64_t width = heads_in(packed) * head_dim_in(packed);
  const ElementType type = step.buffers()[accesses[cache].buffer].type;
  const auto query = floats(type, replay.bytes(accesses[0]));
  for (std::int64_t c = 0; c < width; ++c) {
    const double wanted = 16 * query[static_cast<std::size_t>((sequence * queries + queries - 1) * width + c)];
    store(type, replay.bytes(accesses[cache]), static_cast<std::size_t>((sequence * positions + position) * width + c),
          cache == 1 ? wanted : 8.0);
  }
}

// By value: each position that is valid decides the result, those beyond do not.
TEST(AortaKvCache, EveryValidPositionCountsAndNoOther) {
  for (const char* name : kServing) {
    const Workload& workload = workload_named(name);
    const Step step = build_as_declared(workload, workload.streams.min);
    std::set<CommandId> looked_at;  // of each role the first and the last
    for (std::size_t role = 0; role < workload.roles.size(); ++role) {
      std::vector<CommandId> of_role = launches_of(step, "attention");
      std::erase_if(of_role, [&](CommandId id) { return step.commands()[id].role != role; });
      if (!of_role.empty()) looked_at.insert({of_role.front(), of_role.back()});
    }
    std::size_t valid = 0;
    Replay replay(step);
    replay.run([&](CommandId id) {
      if (!looked_at.contains(id)) return;
      const auto accesses = step.accesses(id);
      const auto [sequences, queries, positions, packed] = step.commands()[id].shape.dims;
      const std::vector<std::int32_t> lengths = integers(replay.bytes(accesses[3]));
      replay.run_body(id);
      const std::vector<std::byte> expected = replay.copy_of(accesses[4]);
      for (std::int64_t s = 0; s < sequences; ++s)
        for (std::int64_t p = 0; p < positions; ++p)
          for (const std::size_t cache : {1u, 2u}) {
            const std::int64_t length = lengths[static_cast<std::size_t>(s)];
            if (cache == 1 && length == 1) continue;  // one key alone has all the weight, whatever it is
            const std::vector<std::byte> whole = replay.copy_of(accesses[cache]);
            change_position(step, replay, id, cache, s, p);
            replay.run_body(id);
            EXPECT_EQ(replay.copy_of(accesses[4]) != expected, p < length)
                << name << " command " << id << " operand " << cache << " sequence " << s << " position " << p;
            std::ranges::copy(whole, replay.bytes(accesses[cache]).begin());
            valid += p < length ? 1 : 0;
          }
    });
    EXPECT_GT(valid, 4u) << name;
  }
}

// And it matters in the end: one cached position changed, and the scores of the next token are others.
TEST(AortaKvCache, ADecodedTokensScoresFollowTheCache) {
  for (const char* name : kServing) {
    const Workload& workload = workload_named(name);
    const Step step = build_as_declared(workload, workload.streams.min);
    const auto scores_where = [&](bool is_changed) {
      std::vector<std::vector<std::byte>> scores;
      bool is_done = !is_changed;
      Replay replay(step);
      replay.run([&](CommandId id) {
        if (kernel_name(step, id) == "arg_max") scores.push_back(replay.copy_of(step.accesses(id)[0]));
        if (is_done || kernel_name(step, id) != "attention") return;
        if (workload.roles[step.commands()[id].role] == "prefill") return;
        const std::int32_t length = integers(replay.bytes(step.accesses(id)[3]))[0];
        if (length < 2) return;
        change_position(step, replay, id, 2, 0, length - 2);  // an earlier token's, not the one at hand
        is_done = true;
      });
      EXPECT_TRUE(is_done) << name;
      return scores;
    };
    EXPECT_NE(scores_where(false), scores_where(true)) << name;
    EXPECT_EQ(scores_where(false), scores_where(false)) << name;
  }
}

// Row: generation is one forward. Each token of a request needs the one before, through a pass of its own.
TEST(AortaGeneration, EveryTokenComesFromAPassOverTheOneBefore) {
  const std::map<std::string, std::size_t> tokens_of = {{"disaggregated_serving", 3}, {"rag_pipeline", 3}};
  for (const auto& [name, tokens] : tokens_of) {
    const Workload& workload = workload_named(name);
    const Step step = build_as_declared(workload, workload.streams.recommended);
    const Order order(step);
    std::map<std::uint32_t, std::vector<CommandId>> handed_out;
    for (const Step::Token& token : step.tokens()) handed_out[token.request].push_back(token.command);
    const std::vector<CommandId> attentions = launches_of(step, "attention");
    for (const auto& [request, commands] : handed_out) {
      ASSERT_EQ(commands.size(), tokens) << name;
      for (std::size_t i = 0; i < commands.size(); ++i) {
        EXPECT_EQ(kernel_name(step, commands[i]), "arg_max");
        if (i == 0) continue;
        EXPECT_TRUE(order.has(commands[i - 1], commands[i])) << name;
        const auto passes = std::count_if(attentions.begin(), attentions.end(), [&](CommandId id) {
          return order.has(commands[i - 1], id) && order.has(id, commands[i]);
        });
        EXPECT_EQ(passes, 1) << name << ": one layer, one attention per token";
      }
    }
    EXPECT_FALSE(handed_out.empty());
  }
}

// Row: recomputation that nobody uses. Gradients read what the recompute role wrote, never what forward left, and it is
// bit for bit what forward computed for that block.
TEST(AortaCheckpoints, GradientsReadRecomputedActivationsOfTheirBlock) {
  constexpr std::size_t kBlocks = 4, kChunks = 16;
  const Workload& workload = workload_named("activation_ckpt");
  for (const int streams : {2, 4, 6, 32}) {
    const Step step = build_as_declared(workload, streams);
    const auto role = [&](CommandId id) { return workload.roles[step.commands()[id].role]; };
    // Forward comes first, chunk by chunk, block by block: normal, up, active.
    std::vector<std::vector<std::byte>> up, active, normal;
    std::size_t gradients = 0, backward = 0;
    Replay replay(step);
    const auto expect_recomputed = [&](CommandId id, std::size_t operand, const std::vector<std::byte>& forward) {
      const Access& access = step.accesses(id)[operand];
      const CommandId writer = maker_of(step, access, id);
      EXPECT_EQ(role(writer), "recompute");
      EXPECT_TRUE(is_predecessor(step, writer, id));
      EXPECT_NE(step.commands()[writer].stream, step.commands()[id].stream) << "from another stream";
      EXPECT_EQ(replay.copy_of(access), forward);
      ++gradients;
    };
    std::size_t block = 0, chunk = 0;
    replay.run([&](CommandId id) {
      const auto accesses = step.accesses(id);
      const std::string_view kernel = kernel_name(step, id);
      if (role(id) != "compute") return;
      const bool is_gelu = kernel == "gelu";
      const bool is_second_gemm = kernel == "gemm" && !transposes_a(step.commands()[id].shape) &&
                                  !transposes_b(step.commands()[id].shape) && up.size() > active.size();
      if (is_gelu) {
        normal.push_back(replay.copy_of(step.accesses(id - 2)[3]));
        up.push_back(replay.copy_of(accesses[0]));
      } else if (is_second_gemm) {
        active.push_back(replay.copy_of(accesses[0]));
      } else if (kernel == "gelu_backward") {
        // Backward goes from the last block down, segment by segment of two, chunk by chunk within each.
        const std::size_t segment = backward / (2 * kChunks), within = backward % (2 * kChunks);
        chunk = within / 2;
        block = kBlocks - 1 - 2 * segment - within % 2;
        ++backward;
        expect_recomputed(id, 0, up.at(chunk * kBlocks + block));
      } else if (kernel == "gemm" && transposes_a(step.commands()[id].shape)) {
        const bool is_down = step.accesses(id)[0].size_bytes == active.at(chunk * kBlocks + block).size();
        expect_recomputed(id, 0, (is_down ? active : normal).at(chunk * kBlocks + block));
      } else if (kernel == "layer_norm_backward") {
        EXPECT_EQ(role(maker_of(step, accesses[0], id)), "recompute");
      }
    });
    EXPECT_EQ(up.size(), kBlocks * kChunks);
    EXPECT_EQ(backward, kBlocks * kChunks);
    EXPECT_EQ(gradients, 3 * kBlocks * kChunks);
  }
}

// Row: parameters that were gathered are not the ones used. Every product with a parameter reads a slot that was last
// filled, in all its parts, from the shards of one block, in their order; blocks go up and then down again.
TEST(AortaShards, EveryBlockComputesWithWhatWasGatheredForIt) {
  constexpr std::size_t kBlocks = 4;
  const Workload& workload = workload_named("fsdp_tp");
  const Step step = build_as_declared(workload, 10, {{"blocks", std::to_string(kBlocks)}});
  const auto role = [&](CommandId id) { return workload.roles[step.commands()[id].role]; };
  std::set<BufferId> slots, shards;
  for (CommandId id = 0; id < step.commands().size(); ++id) {
    if (role(id) != "all_gather") continue;
    EXPECT_EQ(step.commands()[id].kind, CommandKind::copy);
    shards.insert(step.accesses(id)[0].buffer);
    slots.insert(step.accesses(id)[1].buffer);
  }
  EXPECT_EQ(shards.size(), kBlocks * 2);                   // two tensor-parallel halves
  EXPECT_EQ(slots.size(), 2 * 2u);                         // which have two slots each
  std::map<BufferId, std::set<std::uint64_t>> parts_used;  // by shard: offsets of its matrices
  std::map<BufferId, std::size_t> half_of;
  for (const BufferId shard : shards) half_of[shard] = (shard - *shards.begin()) % 2;
  std::vector<BufferId> used[2];
  for (const CommandId id : launches_of(step, "gemm")) {
    const auto accesses = step.accesses(id);
    for (const std::size_t operand : {0u, 1u})
      EXPECT_TRUE(step.buffers()[accesses[operand].buffer].is_written) << "a parameter that nobody gathered";
    if (!slots.contains(accesses[1].buffer)) continue;
    std::set<BufferId> sources;
    for (const CommandId gather : last_writers(step, accesses[1], id)) {
      EXPECT_EQ(role(gather), "all_gather");
      EXPECT_TRUE(is_predecessor(step, gather, id));
      const Access &from = step.accesses(gather)[0], &to = step.accesses(gather)[1];
      EXPECT_EQ(from.offset_bytes, to.offset_bytes);
      sources.insert(from.buffer);
    }
    ASSERT_EQ(sources.size(), 1u) << "of one block alone";
    const BufferId shard = *sources.begin();
    parts_used[shard].insert(accesses[1].offset_bytes);
    auto& order = used[half_of[shard]];
    if (order.empty() || order.back() != shard) order.push_back(shard);
  }
  for (const std::size_t half : {0u, 1u}) {
    // Up through the blocks and down again; the last one stays where it is. Shards were made in the order of blocks.
    ASSERT_EQ(used[half].size(), 2 * kBlocks - 1);
    for (std::size_t i = 0; i < used[half].size(); ++i) {
      const std::size_t block = i < kBlocks ? i : 2 * kBlocks - 2 - i;
      EXPECT_EQ(used[half][i], *std::next(shards.begin(), static_cast<std::ptrdiff_t>(2 * block + half)));
    }
  }
  for (const auto& [shard, offsets] : parts_used) EXPECT_EQ(offsets.size(), 4u) << "all four matrices of a block";
  EXPECT_EQ(parts_used.size(), shards.size());
}

}  // namespace
}  // namespace weir
