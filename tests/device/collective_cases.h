// Random steps with collectives between ranks, and a serial model of what they leave.
#pragma once

#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "device/rank/threads.h"
#include "kernel/chain.h"
#include "kernel/kernel.h"
#include "step/step.h"

namespace weir::collective_cases {

inline constexpr std::array kOps = {CollectiveOp::all_gather, CollectiveOp::reduce_scatter, CollectiveOp::all_reduce,
                                    CollectiveOp::all_to_all, CollectiveOp::shift};
inline constexpr std::array kTypes = {ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::i32};
inline constexpr std::uint64_t kElements = 240;

using Random = std::mt19937;

inline std::uint64_t below(Random& random, std::uint64_t limit) {
  return std::uniform_int_distribution<std::uint64_t>(0, limit - 1)(random);
}

// The same commands on every rank, on values of its own. Depends on the seed alone.
inline Step random_collective_step(unsigned seed, Ranks ranks, int stream_count) {
  Random random(seed);
  StepBuilder builder(seed, ranks);
  std::vector<std::vector<BufferId>> buffers(kTypes.size());
  for (std::size_t t = 0; t < kTypes.size(); ++t)
    for (int i = 0; i < 3; ++i)
      buffers[t].push_back(kTypes[t] == ElementType::i32 ? builder.integers(kElements, 100 + ranks.rank)
                                                         : builder.sharded(kTypes[t], kElements));
  const BufferId host = builder.host(ElementType::f32, kElements, Init::uniform);
  const auto parts = static_cast<std::uint64_t>(ranks.count);
  const auto range = [&](BufferId buffer, std::uint64_t count) {
    return Operand{buffer, below(random, kElements - count + 1), count};
  };
  const auto streams = static_cast<std::uint64_t>(stream_count);
  const std::uint64_t commands = streams + 10 + below(random, 40);
  for (std::uint64_t i = 0; i < commands; ++i) {
    if (below(random, 10) == 0) builder.cut();
    const Lane lane{.stream = static_cast<StreamId>(i < streams ? i : below(random, streams))};
    const std::size_t type = below(random, kTypes.size());
    const std::size_t a = below(random, 3), b = (a + 1 + below(random, 2)) % 3;
    const BufferId from = buffers[type][a], to = buffers[type][b];
    const std::uint64_t n = 1 + below(random, kElements / parts);
    switch (below(random, 5)) {
      case 0: {
        const Operand source = range(from, n), target = range(to, n);
        builder.copy(lane, source, target);
        break;
      }
      case 1: {  // keeps values where sums can do them no harm
        const KernelShape shape{.dims = {static_cast<std::int64_t>(n), chain_ops({ChainOp::mul, ChainOp::clamp})},
                                .scalars = {0.5f, -2.0f, 2.0f}};
        builder.launch("chain", lane, shape, {range(buffers[0][a], n), range(buffers[0][b], n)});
        break;
      }
      case 2: {
        const Operand there = range(host, n);
        builder.launch_on_host("chain", lane,
                               {.dims = {static_cast<std::int64_t>(n), chain_ops({ChainOp::add})}, .scalars = {0.25f}},
                               {there, there});
        builder.copy(lane, there, range(buffers[0][b], n));
        break;
      }
      default: {
        const CollectiveOp op = kOps[below(random, kOps.size())];
        const bool is_split = op == CollectiveOp::reduce_scatter || op == CollectiveOp::all_to_all;
        const bool is_joined = op == CollectiveOp::all_gather || op == CollectiveOp::all_to_all;
        const Operand source = range(from, is_split ? n * parts : n), target = range(to, is_joined ? n * parts : n);
        builder.collective(op, lane, source, target);
      }
    }
  }
  return std::move(builder).seal(stream_count);
}

using Contents = std::vector<std::vector<std::byte>>;  // by buffer

// All ranks command by command.
inline std::vector<Contents> run_serially(const std::vector<Step>& steps, int iterations) {
  std::vector<Contents> ranks(steps.size());
  for (std::size_t r = 0; r < steps.size(); ++r) {
    for (const Buffer& buffer : steps[r].buffers()) {
      ranks[r].emplace_back(buffer.size_bytes());
      initialise(buffer, ranks[r].back());
    }
  }
  const auto at = [&](std::size_t r, CommandId id, std::size_t i) {
    const Access& access = steps[r].accesses(id)[i];
    return ranks[r][access.buffer].data() + access.offset_bytes;
  };
  for (int iteration = 0; iteration < iterations; ++iteration) {
    for (CommandId id = 0; id < steps[0].commands().size(); ++id) {
      const Command& command = steps[0].commands()[id];
      const std::uint64_t size = steps[0].accesses(id)[0].size_bytes;
      if (command.kind == CommandKind::collective) {
        std::vector<const void*> from;
        std::vector<void*> to;
        for (std::size_t r = 0; r < steps.size(); ++r) {
          from.push_back(at(r, id, 0));
          to.push_back(at(r, id, 1));
        }
        apply_collective(command.collective, command.shape.type, from, to, size / size_of(command.shape.type));
        continue;
      }
      for (std::size_t r = 0; r < steps.size(); ++r) {
        if (command.kind == CommandKind::copy) {
          std::memmove(at(r, id, 1), at(r, id, 0), size);
          continue;
        }
        const Kernel& body = kernel(command.kernel);
        KernelCall call{.shape = command.shape, .operands = {}};
        for (std::size_t i = 0; i < command.access_count; ++i) call.operands[i] = at(r, id, i);
        for (std::uint32_t block = 0; block < body.blocks(call.shape); ++block) body.run_block(call, block);
      }
    }
  }
  return ranks;
}

}  // namespace weir::collective_cases
