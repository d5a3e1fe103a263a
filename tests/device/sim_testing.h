// Steps of kernels with known durations on a simulated device whose costs a test chooses: every time can be worked out
// by hand. Times are counted from the start of the machine's clock.
#pragma once

#include <memory>
#include <numeric>
#include <vector>

#include "device/sim/machine.h"
#include "device/sim/sim.h"

namespace weir {

// One multiprocessor takes one block, nothing costs anything, and reading the clock takes no time.
inline sim::SimProfile plain_profile(std::int64_t queues = 8, std::int64_t multiprocessors = 1024) {
  sim::SimProfile profile;
  profile.queues = queues;
  profile.multiprocessors = multiprocessors;
  profile.slots_per_multiprocessor = 1;
  profile.host.clock_ns = 0;
  profile.host_threads = 1;
  return profile;
}

// Collects commands; independent unless they name the same data.
class TimedStep {
 public:
  CommandId spin(StreamId stream, std::int64_t ns, std::int64_t blocks = 1, std::int8_t priority = 0) {
    return spin_on(builder_.output(ElementType::f32, static_cast<std::uint64_t>(blocks)), stream, ns, blocks, priority);
  }
  CommandId spin_on(BufferId data, StreamId stream, std::int64_t ns, std::int64_t blocks = 1,
                    std::int8_t priority = 0) {
    note(stream);
    return builder_.launch("spin", {.stream = stream, .priority = priority}, {.dims = {ns, blocks}, .scalars = {}},
                           {{data, 0, static_cast<std::uint64_t>(blocks)}});
  }
  BufferId data(std::uint64_t count = 1) { return builder_.output(ElementType::f32, count); }
  CommandId copy(StreamId stream, Place from, Place to, std::uint64_t bytes) {
    note(stream);
    const auto buffer = [&](Place place) {
      return place == Place::host ? builder_.host(ElementType::f32, bytes / 4, Init::constant)
                                  : builder_.constant(ElementType::f32, bytes / 4, 1);
    };
    const BufferId source = buffer(from), target = buffer(to);
    return builder_.copy({.stream = stream}, {source}, {target});
  }
  struct Hold {
    CommandId command;
    BufferId flag, moment;
  };
  Hold hold(StreamId stream, std::int64_t limit_ns) {
    note(stream);
    const BufferId flag = builder_.host(ElementType::i32, 1, Init::constant);
    const BufferId moment = builder_.host(ElementType::i32, 4, Init::constant);
    const CommandId command = builder_.launch(
        "hold", {.stream = stream}, {.type = ElementType::i32, .dims = {limit_ns}, .scalars = {}}, {{flag}, {moment}});
    return {command, flag, moment};
  }
  struct Stamp {
    CommandId command;
    BufferId moments;
  };
  Stamp stamp(StreamId stream, std::int64_t ns, std::int64_t blocks = 1) {
    note(stream);
    const BufferId moments = builder_.host(ElementType::i32, static_cast<std::uint64_t>(4 * blocks), Init::constant);
    const CommandId command = builder_.launch(
        "stamp", {.stream = stream}, {.type = ElementType::i32, .dims = {ns, blocks}, .scalars = {}}, {{moments}});
    return {command, moments};
  }
  StepBuilder& builder() { return builder_; }
  Step seal() { return std::move(builder_).seal(last_stream_ + 1); }

 private:
  void note(StreamId stream) { last_stream_ = std::max(last_stream_, static_cast<int>(stream)); }
  StepBuilder builder_{1};
  int last_stream_ = 0;
};

// A step, its natural placement, and a traced session on it.
struct SimRun {
  SimRun(Device& device, TimedStep& timed, SessionOptions options = {})
      : step(timed.seal()), placement{"natural", step.stream_count(), {}}, ids(step.commands().size()) {
    for (const Command& command : step.commands()) placement.stream_of.push_back(command.stream);
    std::iota(ids.begin(), ids.end(), CommandId{0});
    options.is_traced = true;
    options.trace_iterations = 4;
    session = device.prepare(step, placement, options);
  }
  void iterate() {
    session->begin_iteration();
    session->submit(ids);
    session->finish();
  }
  Span span(CommandId command, std::uint32_t iteration = 0) const {
    for (const Span& found : session->timeline().spans)
      if (found.command == command && found.iteration == iteration) return found;
    return {};
  }
  std::int64_t started(CommandId command) const { return span(command).started_ns - sim::Machine::kStartNs; }
  std::int64_t ended(CommandId command) const { return span(command).ended_ns - sim::Machine::kStartNs; }
  std::int32_t queue(CommandId command) const { return span(command).queue; }
  std::int64_t now() const { return session->now_ns() - sim::Machine::kStartNs; }

  Step step;
  Placement placement;
  std::vector<CommandId> ids;
  std::unique_ptr<Session> session;
};

}  // namespace weir
