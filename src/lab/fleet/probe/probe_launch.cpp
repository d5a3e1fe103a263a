// What it costs to hand commands to a device: by one thread, by several, in a graph, with a wait after each, and to
// another queue.
#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "lab/fleet/probe/meter.h"
#include "run/switch_cost.h"

namespace weir::fleet {
namespace {

// Few enough to fit into any driver's queue, so that the host never waits for the device.
constexpr int kCommands = 200;
// Fixed, because nodes are compared: not the number of their cores.
constexpr int kThreads = 4;
constexpr int kSwitchStreams = 4;
constexpr int kElements = 64;

Step small_kernels(int count, int streams) {
  StepBuilder builder(1);
  std::vector<BufferId> outputs;
  for (int stream = 0; stream < streams; ++stream) outputs.push_back(builder.output(ElementType::f32, kElements));
  for (int i = 0; i < count; ++i) {
    const int stream = i % streams;
    builder.launch("fill", {.stream = static_cast<StreamId>(stream)}, {.dims = {kElements}, .scalars = {1.0f}},
                   {{outputs[static_cast<std::size_t>(stream)]}});
  }
  return std::move(builder).seal(streams);
}

std::unique_ptr<Meter> launch_meter(const MeterContext& context, const std::string& figure, const std::string& submit,
                                    int commands, int streams, bool times_submit, int iterations) {
  MeterPlan plan{.figure = figure, .to = {}, .step = small_kernels(commands, streams)};
  plan.submit = submit;
  plan.amount = commands;
  plan.times_submit = times_submit;
  plan.iterations = iterations;
  plan.extra = context.extra(figure);
  return std::make_unique<StepMeter>(context.device, std::move(plan));
}

class SwitchMeter final : public Meter {
 public:
  explicit SwitchMeter(Device& device) : Meter("queue_switch"), device_(device) {}

  double sample() override {
    const SwitchCost cost = measure_switch_cost(device_, kSwitchStreams);
    if (!cost.ns_per_hop) reject(cost.reason);
    return *cost.ns_per_hop;
  }

 private:
  Device& device_;
};

}  // namespace

void add_launch_meters(const MeterContext& context, Meters& meters) {
  const auto add = [&](const std::string& figure, const std::string& submit, int commands, int streams,
                       bool times_submit, int iterations) {
    meters.add(figure,
               [&] { return launch_meter(context, figure, submit, commands, streams, times_submit, iterations); });
  };
  add("launch", "inline", kCommands, 1, true, 20);
  add("launch_threads", "threads:" + std::to_string(kThreads), kCommands, kThreads, true, 20);
  if (context.info.graphs)
    add("launch_graph", "graph", kCommands, 1, false, 20);
  else
    meters.lacks("launch_graph", context.info.graphs.reason);
  if (!context.info.runs()) {
    for (const char* const figure : {"round_trip", "queue_switch"})
      meters.lacks(figure, "commands take no time on this device");
    return;
  }
  add("round_trip", "inline", 1, 1, false, 100);
  if (!context.info.kernel_clock)
    meters.lacks("queue_switch", context.info.kernel_clock.reason);
  else
    meters.add("queue_switch", [&] { return std::make_unique<SwitchMeter>(context.device); });
}

}  // namespace weir::fleet
