// Waits between streams: each kind of hazard alone, after a command that takes long enough for a missing wait to show;
// chains, forks and joins; and more iterations in flight than rings of events hold.
#include <fmt/format.h>

#include "kernel/chain.h"
#include "lab/conformance/checks.h"
#include "lab/conformance/list.h"

namespace weir::conformance {
namespace {

constexpr std::uint64_t kLarge = 1 << 19, kSmall = 64;

KernelShape chain_shape(std::uint64_t count, ChainOp op, float scalar) {
  return {.dims = {static_cast<std::int64_t>(count), chain_ops({op})}, .scalars = {scalar}};
}

enum class Hazard { read_after_write, write_after_read, write_after_write };

// A long command on stream 0, and a short one on stream 1 that must not overtake it.
Step hazard_step(Hazard hazard) {
  StepBuilder builder(17);
  const BufferId input = builder.uniform(ElementType::f32, kLarge), data = builder.uniform(ElementType::f32, kLarge);
  const BufferId output = builder.output(ElementType::f32, kLarge);
  const KernelShape large = chain_shape(kLarge, ChainOp::mul, 1.5f), small = chain_shape(kSmall, ChainOp::add, 2.25f);
  const Operand last_input{input, kLarge - kSmall, kSmall}, last_data{data, kLarge - kSmall, kSmall};
  switch (hazard) {
    case Hazard::read_after_write:
      builder.launch("chain", {.stream = 0}, large, {{input}, {data}});
      builder.launch("chain", {.stream = 1}, small, {last_data, {output, 0, kSmall}});
      break;
    case Hazard::write_after_read:
      builder.launch("chain", {.stream = 0}, large, {{data}, {output}});
      builder.launch("chain", {.stream = 1}, small, {last_input, last_data});
      break;
    case Hazard::write_after_write:
      builder.launch("chain", {.stream = 0}, large, {{input}, {data}});
      builder.launch("chain", {.stream = 1}, small, {last_input, last_data});
      break;
  }
  return std::move(builder).seal(2);
}

// A value passed from stream to stream. A command that runs too early leaves a permanent difference.
Step relay_step(int streams, int rounds) {
  StepBuilder builder(18);
  const BufferId data = builder.uniform(ElementType::f32, kSmall);
  for (int i = 0; i < streams * rounds; ++i) {
    const KernelShape shape = i % 2 == 0 ? chain_shape(kSmall, ChainOp::add, 0.25f * static_cast<float>(i % 7 + 1))
                                         : chain_shape(kSmall, ChainOp::mul, -1.0f);
    builder.launch("chain", {.stream = static_cast<StreamId>(i % streams)}, shape, {{data}, {data}});
  }
  return std::move(builder).seal(streams);
}

// One long producer, readers on every stream, and one command that needs all of them: forked and joined twice.
Step fork_step(int streams) {
  StepBuilder builder(19);
  const auto count = static_cast<std::uint64_t>(streams - 1) * kSmall;
  const BufferId source = builder.uniform(ElementType::f32, kLarge), parts = builder.output(ElementType::f32, count);
  const BufferId sum = builder.uniform(ElementType::f32, count);
  for (int round = 0; round < 2; ++round) {
    builder.launch("chain", {.stream = 0}, chain_shape(kLarge, ChainOp::mul, 0.5f), {{source}, {source}});
    for (int s = 1; s < streams; ++s) {
      const Operand part{parts, static_cast<std::uint64_t>(s - 1) * kSmall, kSmall};
      builder.launch("chain", {.stream = static_cast<StreamId>(s)}, chain_shape(kSmall, ChainOp::add, 1.25f),
                     {{source, kLarge - kSmall, kSmall}, part});
    }
    builder.launch("chain", {.stream = 0}, chain_shape(count, ChainOp::add, 0.25f), {{parts}, {sum}});
  }
  return std::move(builder).seal(streams);
}

}  // namespace

Cases events() {
  Cases cases;
  const auto add = [&](std::string name, auto make, int iterations) {
    for (const bool is_pipelined : {false, true})
      cases.push_back({"events", name + (is_pipelined ? ", pipelined" : ""), {.runs = true}, [=](Subject& subject) {
                         const Step step = make();
                         return same_buffers(subject, step, natural(step), {"inline", is_pipelined, iterations});
                       }});
  };
  add("read after write", [] { return hazard_step(Hazard::read_after_write); }, 3);
  add("write after read", [] { return hazard_step(Hazard::write_after_read); }, 3);
  add("write after write", [] { return hazard_step(Hazard::write_after_write); }, 3);
  for (const int streams : {2, 5, 16})
    add(fmt::format("relay over {} streams", streams), [streams] { return relay_step(streams, 8); }, 4);
  for (const int streams : {3, 9})
    add(fmt::format("fork to {} streams", streams), [streams] { return fork_step(streams); }, 3);
  for (const char* submit : {"inline", "threads:2", "channel:mpsc:2"})
    cases.push_back(
        {"events", fmt::format("700 iterations in flight/{}", submit), {.runs = true}, [submit](Subject& subject) {
           return many_iterations(subject, submit, 700);
         }});
  return cases;
}

}  // namespace weir::conformance
