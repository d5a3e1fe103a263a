#include "run/switch_cost.h"

#include <algorithm>
#include <vector>

#include "kernel/chain.h"
#include "measure/statistics.h"
#include "submit/placement.h"
#include "submit/submitter.h"

namespace weir {
namespace {

constexpr int kHops = 64;
constexpr std::size_t kRepetitions = 15;
// Longer than submitting a kernel with its events takes on a slow host, so that all are queued ahead.
constexpr std::int64_t kHoldNsPerHop = 20'000;

// Each hop goes to the next stream.
Step chain(int streams, int hops) {
  StepBuilder step(1);
  const BufferId data = step.output(ElementType::f32, 256);
  const BufferId gate = step.output(ElementType::f32, 1);
  // Both come before the chain and on its first stream, so that they cost the same in every placement of the chain.
  step.launch("fill", {}, {.dims = {256, 0, 0}, .scalars = {1.0f}}, {{data}});
  step.launch("spin", {}, {.dims = {kHoldNsPerHop * (hops + 11), 1}, .scalars = {}}, {{gate}});
  // The first hop reads the held kernel's output, each later one its predecessor's.
  for (int hop = 0; hop <= hops; ++hop) {
    const KernelShape shape{.dims = {hop == 0 ? 1 : 256, chain_ops({ChainOp::mul})}, .scalars = {0.5f}};
    const Operand in = hop == 0 ? Operand{gate} : Operand{data, 0, 256};
    const Operand out = hop == 0 ? Operand{data, 0, 1} : Operand{data, 0, 256};
    step.launch("chain", {.stream = static_cast<StreamId>(hop % streams)}, shape, {in, out});
  }
  return std::move(step).seal(streams);
}

std::vector<double> times(Device& device, const Step& step, const std::string& policy) {
  const Placement placement = place(step, policy);
  const auto session = device.prepare(step, placement, {});
  const auto submitter = inline_submitter(step, *session);
  std::vector<double> spans;
  for (std::size_t i = 0; i <= kRepetitions; ++i) {
    session->begin_iteration();
    submitter->submit_step();
    session->finish();
    for (const IterationSpan& span : session->take_spans())
      if (i > 0) spans.push_back(static_cast<double>(span.ended_ns - span.started_ns));  // the first one is a warm-up
  }
  return spans;
}

}  // namespace

SwitchCost measure_switch_cost(Device& device, int streams) {
  SwitchCost cost;
  cost.streams = streams;
  if (streams < 2) {
    cost.reason = "there is only one stream";
    return cost;
  }
  // Towards the end of a chain streams run out of commands, and hops get cheaper the fewer queues are in use. Two
  // chains of different length end in the same way, so that their difference is hops between streams that all have
  // commands.
  const auto difference = [&](const std::string& policy) -> std::optional<double> {
    const std::vector<double> shorter = times(device, chain(streams, streams), policy);
    const std::vector<double> longer = times(device, chain(streams, streams + kHops), policy);
    if (shorter.empty() || longer.empty()) return std::nullopt;
    cost.repetitions = std::min(shorter.size(), longer.size());
    return median(longer) - median(shorter);
  };
  const auto one = difference("serial");
  const auto many = difference("natural");
  if (!one || !many) {
    cost.repetitions = 0;
    cost.reason = "the device has no clock of its own";
    return cost;
  }
  cost.hops = kHops;
  cost.ns_per_hop = (*many - *one) / kHops;
  return cost;
}

}  // namespace weir
