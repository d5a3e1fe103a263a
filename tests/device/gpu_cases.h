// Steps, runs and expectations that hold on every device over the table, fake or real.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "kernel/chain.h"
#include "kernel/random.h"
#include "stream/submitter.h"

namespace weir::gpu_cases {

using Contents = std::vector<std::vector<std::byte>>;  // by buffer

// Draws numbers that depend on the seed alone.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : seed_(seed) {}
  std::uint32_t below(std::size_t bound) { return random_bits(seed_, ++count_) % static_cast<std::uint32_t>(bound); }

 private:
  std::uint64_t seed_, count_ = 0;
};

// Element-wise kernels, fills and copies between slices of few buffers: dense in hazards, and exact on any device,
// because every kernel rounds once.
struct Mix {
  bool has_host = false;  // host functions on the buffer in host memory
  bool has_cuts = false;  // more than one graph, some of a host function alone
};

inline Step random_step(std::uint64_t seed, int streams, Mix mix = {}) {
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
      KernelShape shape{.dims = {n, chain_ops({ChainOp::mul})}, .scalars = {0.75f}};
      if (kind == 1) shape.dims[1] = chain_ops({ChainOp::add}), shape.scalars = {0.5f};
      if (kind == 2) shape.dims[1] = chain_ops({ChainOp::abs}), shape.scalars = {};
      if (kind == 3) shape.dims[1] = chain_ops({ChainOp::clamp}), shape.scalars = {-1.0f, 2.0f};
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

inline Placement natural(const Step& step) {
  Placement placement{"natural", step.stream_count(), {}};
  for (const Command& command : step.commands()) placement.stream_of.push_back(command.stream);
  return placement;
}

inline Placement random_placement(const Step& step, std::uint64_t seed, int streams) {
  Dice dice(seed);
  Placement placement{"random", streams, {}};
  for (std::size_t i = 0; i < step.commands().size(); ++i)
    placement.stream_of.push_back(static_cast<StreamId>(dice.below(static_cast<std::size_t>(streams))));
  return placement;
}

// What `iterations` leave behind when commands run one after the other on the host.
inline Contents reference(const Step& step, int iterations) {
  Contents contents;
  for (const Buffer& buffer : step.buffers()) {
    contents.emplace_back(buffer.size_bytes());
    initialise(buffer, contents.back());
  }
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

inline Contents read_all(Session& session, const Step& step) {
  Contents contents;
  for (BufferId id = 0; id < step.buffers().size(); ++id) {
    contents.emplace_back(step.buffers()[id].size_bytes());
    session.read(id, contents.back());
  }
  return contents;
}

struct RunChoice {
  std::string submit = "inline";
  bool is_pipelined = false;
  int iterations = 1;
};

inline void iterate(Session& session, Submitter& submitter, const RunChoice& choice) {
  for (int i = 0; i < choice.iterations; ++i) {
    session.begin_iteration();
    submitter.submit_step();
    if (!choice.is_pipelined) session.finish();
  }
  session.finish();
}

// Runs the step and returns every buffer.
inline Contents run(Device& device, const Step& step, const Placement& placement, const RunChoice& choice) {
  const SubmitChoice submit = parse_submit(choice.submit, placement.stream_count);
  const auto session = device.prepare(step, placement, {.mode = submit.mode, .is_pipelined = choice.is_pipelined});
  const auto submitter = make_submitter(submit, step, placement, *session);
  iterate(*session, *submitter, choice);
  return read_all(*session, step);
}

// Any way to submit, any placement, pipelined or not: the same buffers, bit for bit.
inline void expect_same_buffers(Device& device, std::uint64_t seed) {
  Dice dice(seed + 1000);
  const int streams = 1 + static_cast<int>(dice.below(7));
  const Step step = random_step(seed, streams, {.has_host = seed % 2 == 0, .has_cuts = seed % 3 == 0});
  for (const char* submit :
       {"inline", "threads:2", "threads:3", "graph", "channel:mpsc:4", "channel:lanes:2", "channel:mpsc:3x2"}) {
    for (const bool is_pipelined : {false, true}) {
      const int iterations = 1 + static_cast<int>(dice.below(4));
      const Placement placement =
          dice.below(2) == 0 ? natural(step) : random_placement(step, seed, 1 + static_cast<int>(dice.below(9)));
      const Contents got = run(device, step, placement, {submit, is_pipelined, iterations});
      EXPECT_TRUE(got == reference(step, iterations))
          << "seed " << seed << ", " << submit << (is_pipelined ? ", pipelined, " : ", ") << placement.name << " on "
          << placement.stream_count << " streams, " << iterations << " iterations";
    }
  }
}

// To the host, changed there, and back, on every stream; in graph mode once in one graph, once with the host functions
// between graphs.
inline void expect_round_trips(Device& device) {
  constexpr std::uint64_t kCount = 50'000;
  for (const bool has_cuts : {false, true}) {
    StepBuilder builder(9);
    const KernelShape add{.dims = {static_cast<std::int64_t>(kCount), chain_ops({ChainOp::add})}, .scalars = {0.5f}};
    for (StreamId s = 0; s < 3; ++s) {
      const BufferId data = builder.uniform(ElementType::f32, kCount);
      const BufferId host = builder.host(ElementType::f32, kCount, Init::constant);
      const auto cut = [&] {
        if (has_cuts) builder.cut();
      };
      builder.launch("chain", {.stream = s}, add, {{data}, {data}});
      builder.copy({.stream = s}, {data}, {host});
      cut();
      builder.launch_on_host("chain", {.stream = s}, add, {{host}, {host}});
      cut();
      builder.copy({.stream = static_cast<StreamId>((s + 1) % 3)}, {host}, {data});
    }
    const Step step = std::move(builder).seal(3);
    for (const char* submit : {"inline", "threads:3", "graph"})
      for (const bool is_pipelined : {false, true})
        EXPECT_TRUE(run(device, step, natural(step), {submit, is_pipelined, 20}) == reference(step, 20))
            << submit << (is_pipelined ? ", pipelined" : "") << (has_cuts ? ", with cuts" : "");
  }
}

// Follows every kind of initial contents through prepare and reset.
inline void expect_initial_contents(Device& device) {
  StepBuilder builder(5);
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
    builder.uniform(type, 100'003, 3.7f, 0.3f);
    builder.constant(type, 777, 1.25f);
    builder.output(type, 1025);
    builder.host(type, 1000, Init::uniform);
  }
  builder.indices(10'007);
  builder.constant(ElementType::i32, 33, 7);
  builder.output(ElementType::i32, 33);
  const BufferId written = builder.output(ElementType::f32, 64);
  builder.launch("fill", {}, {.dims = {64, 0}, .scalars = {9}}, {{written}});
  const Step step = std::move(builder).seal(1);
  const Placement placement = natural(step);
  const auto session = device.prepare(step, placement, {});
  const Contents expected = reference(step, 0);
  EXPECT_TRUE(read_all(*session, step) == expected) << "after prepare";
  iterate(*session, *inline_submitter(step, *session), {});
  EXPECT_TRUE(read_all(*session, step) == reference(step, 1)) << "after a run";
  session->reset();
  EXPECT_TRUE(read_all(*session, step) == expected) << "after reset";
}

// Spans follow each other, and the timeline follows the edges.
inline void expect_sane_timeline(Device& device, std::uint64_t seed) {
  const Step step = random_step(seed, 3, {.has_host = seed % 2 == 0});
  const Placement placement = natural(step);
  const auto session = device.prepare(step, placement, {.is_traced = true, .trace_iterations = 2});
  iterate(*session, *inline_submitter(step, *session), {.iterations = 3});
  const Timeline timeline = session->timeline();
  const std::size_t count = step.commands().size();
  ASSERT_EQ(timeline.spans.size(), 2 * count);
  // Gaps are exact where a profiler tells them, and it knows queues too.
  EXPECT_EQ(timeline.has_exact_gaps, timeline.source.starts_with("activity records")) << timeline.source;
  for (std::size_t i = 0; i < timeline.spans.size(); ++i) {
    const Span& span = timeline.spans[i];
    ASSERT_EQ(span.command, i % count);
    EXPECT_EQ(span.iteration, 1 + i / count);  // the last two of three
    EXPECT_EQ(span.stream, placement.stream_of[span.command]);
    const bool has_queue = timeline.has_exact_gaps && step.commands()[span.command].kind != CommandKind::host;
    EXPECT_EQ(span.queue != kNoQueue, has_queue) << span.command;
    ASSERT_NE(span.started_ns, kNoTime);
    EXPECT_LE(span.started_ns, span.ended_ns);
    constexpr std::int64_t kResolution_ns = 1000;    // two floats of milliseconds
    constexpr std::int64_t kHostClock_ns = 200'000;  // a host function's times may be on the other clock
    const auto is_host = [&](CommandId id) { return step.commands()[id].kind == CommandKind::host; };
    for (const CommandId before : step.predecessors(span.command))
      EXPECT_LE(timeline.spans[i - span.command + before].ended_ns,
                span.started_ns + (is_host(before) != is_host(span.command) ? kHostClock_ns : kResolution_ns))
          << before << " -> " << span.command;
  }
}

// More iterations in flight than the ring of events holds.
inline void expect_spans_of_many_iterations(Device& device, const char* submit, int iterations) {
  const Step step = random_step(3, 4);
  const Placement placement = natural(step);
  const SubmitChoice choice = parse_submit(submit, 4);
  const auto session = device.prepare(step, placement, {.mode = choice.mode, .is_pipelined = true});
  const auto submitter = make_submitter(choice, step, placement, *session);
  iterate(*session, *submitter, {.is_pipelined = true, .iterations = iterations});
  const std::vector<IterationSpan> spans = session->take_spans();
  ASSERT_EQ(spans.size(), static_cast<std::size_t>(iterations));
  for (std::size_t i = 0; i < spans.size(); ++i) {
    ASSERT_NE(spans[i].started_ns, kNoTime) << i;
    EXPECT_LT(spans[i].started_ns, spans[i].ended_ns) << i;
    if (i > 0) {
      EXPECT_LE(spans[i - 1].ended_ns, spans[i].ended_ns) << i;
    }
  }
  EXPECT_TRUE(session->take_spans().empty());
  EXPECT_TRUE(read_all(*session, step) == reference(step, iterations));
}

}  // namespace weir::gpu_cases
