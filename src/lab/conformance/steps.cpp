#include "lab/conformance/steps.h"

#include <cstring>

#include "kernel/chain.h"

namespace weir::conformance {

Step random_step(std::uint64_t seed, int streams, Mix mix) {
  constexpr std::uint64_t kSlice = 96, kSlices = 4;
  Dice dice(seed);
  StepBuilder step(seed);
  std::vector<BufferId> buffers;
  for (int i = 0; i < 4; ++i) buffers.push_back(step.uniform(ElementType::f32, kSlice * kSlices, 4.0f));
  buffers.push_back(step.host(ElementType::f32, kSlice * kSlices, Init::uniform));
  const auto any_slice = [&](std::size_t buffer_count) {
    return Operand{buffers[dice.below(buffer_count)], dice.below(kSlices) * kSlice, kSlice};
  };
  const auto n = static_cast<std::int64_t>(kSlice);
  const int commands = streams + 20 + static_cast<int>(dice.below(40));
  for (int i = 0; i < commands; ++i) {
    const Lane lane{.stream = static_cast<StreamId>(
                        i < streams ? i : static_cast<int>(dice.below(static_cast<std::size_t>(streams)))),
                    .priority = static_cast<std::int8_t>(dice.below(3))};
    if (mix.has_cuts && dice.below(6) == 0) step.cut();
    if (mix.has_host && dice.below(4) == 0) {
      const bool is_alone = mix.has_cuts && dice.below(3) == 0;
      if (is_alone) step.cut();
      const Operand from{buffers[4], dice.below(kSlices) * kSlice, kSlice};
      const Operand to{buffers[4], dice.below(kSlices) * kSlice, kSlice};
      step.launch_on_host("chain", lane, {.dims = {n, chain_ops({ChainOp::add})}, .scalars = {0.25f}}, {from, to});
      if (is_alone) step.cut();
      continue;
    }
    const std::uint32_t kind = dice.below(8);
    if (kind < 5) {
      // Few of these operations discard the previous value: later commands must not hide one that ran too early.
      KernelShape shape{.dims = {n, chain_ops({ChainOp::mul})}, .scalars = {kind == 4 ? 0.75f : -1.0f}};
      if (kind == 1) shape.dims[1] = chain_ops({ChainOp::add}), shape.scalars = {0.5f};
      if (kind == 2) shape.dims[1] = chain_ops({ChainOp::abs}), shape.scalars = {};
      if (kind == 3) shape.dims[1] = chain_ops({ChainOp::clamp}), shape.scalars = {-64.0f, 64.0f};
      step.launch("chain", lane, shape, {any_slice(4), any_slice(4)});
    } else if (kind == 5) {
      step.launch("fill", lane, {.dims = {n, 1, static_cast<std::int64_t>(i)}, .scalars = {2.0f, 0.5f}},
                  {any_slice(4)});
    } else {
      const Operand from = any_slice(5);
      Operand to = any_slice(5);
      if (to.buffer == from.buffer && to.offset == from.offset) to.offset = (to.offset + kSlice) % (kSlice * kSlices);
      step.copy(lane, from, to);
    }
  }
  return std::move(step).seal(streams);
}

Placement natural(const Step& step) {
  Placement placement{"natural", step.stream_count(), {}};
  for (const Command& command : step.commands()) placement.stream_of.push_back(command.stream);
  return placement;
}

Placement random_placement(const Step& step, std::uint64_t seed, int streams) {
  Dice dice(seed);
  Placement placement{"random", streams, {}};
  for (std::size_t i = 0; i < step.commands().size(); ++i)
    placement.stream_of.push_back(static_cast<StreamId>(dice.below(static_cast<std::size_t>(streams))));
  return placement;
}

Contents initial_contents(const Step& step) {
  Contents contents;
  for (const Buffer& buffer : step.buffers()) {
    contents.emplace_back(buffer.size_bytes());
    initialise(buffer, contents.back());
  }
  return contents;
}

Contents reference(const Step& step, int iterations) {
  Contents contents = initial_contents(step);
  for (int i = 0; i < iterations; ++i) {
    for (CommandId id = 0; id < step.commands().size(); ++id) {
      const Command& command = step.commands()[id];
      const auto accesses = step.accesses(id);
      const auto at = [&](std::size_t a) { return contents[accesses[a].buffer].data() + accesses[a].offset_bytes; };
      if (command.kind == CommandKind::copy) {
        std::memmove(at(1), at(0), accesses[0].size_bytes);
        continue;
      }
      KernelCall call{command.shape, {}};
      for (std::size_t a = 0; a < accesses.size(); ++a) call.operands[a] = at(a);
      kernel(command.kernel).reference(call);
    }
  }
  return contents;
}

Contents read_all(Session& session, const Step& step) {
  Contents contents;
  for (BufferId id = 0; id < step.buffers().size(); ++id) {
    contents.emplace_back(step.buffers()[id].size_bytes());
    session.read(id, contents.back());
  }
  return contents;
}

SessionOptions options_of(const SubmitChoice& submit, bool is_pipelined) {
  SessionOptions options = submit.session_options();
  options.is_pipelined = is_pipelined;
  return options;
}

void iterate(Session& session, Submitter& submitter, const RunChoice& choice) {
  for (int i = 0; i < choice.iterations; ++i) {
    session.begin_iteration();
    submitter.submit_step();
    if (!choice.is_pipelined) session.finish();
  }
  session.finish();
}

Contents run(Device& device, const Step& step, const Placement& placement, const RunChoice& choice) {
  const SubmitChoice submit = parse_submit(choice.submit, placement.stream_count);
  const auto session = device.prepare(step, placement, options_of(submit, choice.is_pipelined));
  const auto submitter = make_submitter(submit, step, placement, *session);
  iterate(*session, *submitter, choice);
  return read_all(*session, step);
}

}  // namespace weir::conformance
