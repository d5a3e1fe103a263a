#include "device/cpu/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <thread>

#include "base/error.h"
#include "base/spare_threads.h"
#include "base/units.h"
#include "device/cpu/blocks.h"
#include "device/cpu/queue.h"
#include "kernel/fp8.h"

namespace weir::cpu {

void PreparedCommand::run(std::uint32_t block) const {
  if (region != nullptr) {
    run_region_block(call, block, region);
    return;
  }
  if (run_block != nullptr) {
    run_block(call, block);
    return;
  }
  const std::uint64_t begin = blocks == 1 ? 0 : block * kChunkBytes;
  const std::uint64_t count = blocks == 1 ? size_bytes : std::min(kChunkBytes, size_bytes - begin);
  std::memmove(to + begin, from + begin, count);
}

PreparedStep::PreparedStep(const Step& step, const Placement& placement, const SessionOptions& options,
                           std::vector<std::uint8_t> queues, KernelTable kernel_of, Communicator* communicator,
                           std::shared_ptr<RegionCode> region_code)
    : step(step),
      communicator(communicator),
      region_code(std::move(region_code)),
      plan(make_plan(step, placement, options)),
      commands(step.commands().size()),
      unit_of(step.commands().size(), Unit::workers),
      queue_of_stream(std::move(queues)),
      streams(static_cast<std::size_t>(placement.stream_count)),
      submitted(streams.size()),
      stream_commands(streams.size(), 0),
      events(plan.event_count),
      times(step, placement, options, queue_of_stream) {
  if (plan.event_count >= 1u << 30) fail("more than 2^30 events");
  const auto is_collective = [](const Command& command) { return command.kind == CommandKind::collective; };
  const auto all = step.commands();
  if (communicator == nullptr && std::any_of(all.begin(), all.end(), is_collective))
    reject("device 'cpu': the step has collectives, but there are no other ranks to talk to",
           "Start the run with --ranks.");

  constexpr std::size_t kAlignment = 64;
  for (const Buffer& buffer : step.buffers()) {
    const std::uint64_t size = (buffer.size_bytes() + kAlignment - 1) / kAlignment * kAlignment;
    memory_.emplace_back(static_cast<std::byte*>(std::aligned_alloc(kAlignment, size)));
    if (memory_.back() == nullptr)
      reject(fmt::format("device 'cpu' could not allocate a buffer of {}", format_bytes(size)),
             "Use a smaller --scale or smaller sizes.");
  }
  for (CommandId id = 0; id < commands.size(); ++id) {
    resolve(id, kernel_of);
    unit_of[id] = commands[id].unit;
    woken |= wakes(unit_of[id]);
    ++stream_commands[commands[id].stream];
  }
  compile_regions();
  check_delays(step, options);
  hold_up(options.disturbance);
  if (options.mode == SubmitMode::graph) {
    const auto segments = step.segments();
    for (std::uint32_t i = 0; i + 1 < segments.size(); ++i) {
      graphs.push_back(std::make_unique<Graph>(plan, segments[i], segments[i + 1]));
      segment_of.resize(segments[i + 1], i);
    }
  }
  reset();
}

void PreparedStep::resolve(CommandId id, KernelTable kernel_of) {
  const Command& command = step.commands()[id];
  PreparedCommand& prepared = commands[id];
  const auto accesses = step.accesses(id);
  const auto address = [&](const Access& access) { return bytes(access.buffer).data() + access.offset_bytes; };
  prepared.level = level_of(command.priority);
  prepared.stream = plan.hops[id].stream;
  if (command.kind == CommandKind::collective) {
    prepared.unit = Unit::collective;
    prepared.collective = {command.collective, command.group};
    prepared.call.shape = command.shape;
    prepared.from = address(accesses[0]);
    prepared.to = address(accesses[1]);
    prepared.size_bytes = accesses[0].size_bytes;
    return;
  }
  if (command.kind == CommandKind::copy) {
    prepared.from = address(accesses[0]);
    prepared.to = address(accesses[1]);
    prepared.size_bytes = accesses[0].size_bytes;
    // Chunks run out of order, which would corrupt the copy if source and destination overlap.
    const bool overlaps = accesses[0].buffer == accesses[1].buffer &&
                          accesses[0].offset_bytes < accesses[1].offset_bytes + accesses[1].size_bytes &&
                          accesses[1].offset_bytes < accesses[0].offset_bytes + accesses[0].size_bytes;
    const std::uint64_t chunks = (prepared.size_bytes + prepared.kChunkBytes - 1) / prepared.kChunkBytes;
    prepared.blocks = overlaps ? 1 : static_cast<std::uint32_t>(chunks);
    prepared.unit = Unit::copy;
    return;
  }
  if (command.kind == CommandKind::host) prepared.unit = Unit::host;
  const Kernel& body = kernel_of(command.kernel);
  prepared.run_block = body.run_block;
  prepared.blocks = body.blocks(command.shape);
  if (prepared.blocks == 0) fail(fmt::format("kernel '{}' has a launch of 0 blocks", body.name));
  prepared.call.shape = command.shape;
  prepared.is_fp8 = body.name == "gemm" && rounds_to_fp8(command.shape);
  for (std::size_t i = 0; i < accesses.size(); ++i) prepared.call.operands[i] = address(accesses[i]);
}

void PreparedStep::compile_regions() {
  std::map<std::int64_t, RegionFunction> known;  // by their operations: they run on any size and type
  for (CommandId id = 0; id < commands.size(); ++id) {
    const Command& command = step.commands()[id];
    if (command.kind != CommandKind::kernel || !is_region(kernel(command.kernel))) continue;
    if (!compilation) compilation.emplace();
    const auto [place, is_new] = known.try_emplace(command.shape.dims[2], nullptr);
    if (is_new) place->second = region_code->find(command.shape, *compilation);
    commands[id].region = place->second;
  }
}

void PreparedStep::hold_up(const Disturbance& disturbance) {
  for (const Disturbance::Delay& delay : disturbance.delays) {
    HeldCommand& mine = held.emplace_back();
    mine.command = delay.command;
    mine.ns = delay.ns;
    mine.iteration = delay.iteration;
    if (!delay.until) continue;
    mine.has_end = true;
    mine.until_stream = commands[*delay.until].stream;
    mine.until_count = std::uint64_t{delay.iterations_later} * stream_commands[mine.until_stream];
    for (CommandId id = 0; id <= *delay.until; ++id)
      if (commands[id].stream == mine.until_stream) ++mine.until_count;
  }
}

bool PreparedStep::holds(CommandId command, std::uint32_t iteration) noexcept {
  for (HeldCommand& mine : held) {
    if (mine.command != command || mine.iteration.value_or(iteration) != iteration) continue;
    const std::int64_t now = now_ns();
    if (mine.since_ns == kNoTime) mine.since_ns = now;
    const std::uint64_t until = mine.until_count + std::uint64_t{iteration} * stream_commands[mine.until_stream];
    if (mine.has_end && streams[mine.until_stream].ended() >= until) return false;
    return now - mine.since_ns < mine.ns;
  }
  return false;
}

void PreparedStep::let_go(CommandId command) noexcept {
  for (HeldCommand& mine : held)
    if (mine.command == command) mine.since_ns = kNoTime;
}

void PreparedStep::reset() {
  constexpr std::uint64_t kWorthThreads = 4 << 20;
  const auto buffers = step.buffers();
  std::atomic<std::size_t> next{0};  // pairs with itself; joining the threads publishes their writes
  const auto work = [&] {
    for (std::size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < buffers.size();)
      initialise(buffers[i], bytes(static_cast<BufferId>(i)));
  };
  const std::uint64_t total = step.size_bytes(Place::device) + step.size_bytes(Place::host);
  const std::size_t count = std::min<std::size_t>(buffers.size(), std::thread::hardware_concurrency());
  const auto threads = start_spare_threads(total > kWorthThreads && count > 0 ? count - 1 : 0, work);
  work();
}

std::uint64_t PreparedStep::size_bytes() const noexcept {
  std::uint64_t graph_bytes = segment_of.capacity() * sizeof(std::uint32_t);
  for (const auto& graph : graphs) graph_bytes += graph->size_bytes();
  return sizeof(*this) + step.size_bytes(Place::device) + step.size_bytes(Place::host) + times.size_bytes() +
         commands.capacity() * sizeof(PreparedCommand) + unit_of.capacity() +
         plan.hops.capacity() * sizeof(StepPlan::Hop) + plan.waits.capacity() * sizeof(EventId) +
         streams.capacity() * sizeof(StreamState) + submitted.capacity() * sizeof(SubmitCount) +
         events.capacity() * sizeof(EventState) + graph_bytes;
}

}  // namespace weir::cpu
