#include "lab/queues/convoy.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <utility>

#include "kernel/moment.h"
#include "submit/placement.h"

namespace weir {
namespace {

constexpr std::array<std::string_view, 3> kNames{"alone", "beside", "behind"};
constexpr int kWarmup = 5;
constexpr std::uint8_t kLarge = 0, kSmall = 1;

CommandId stamp(StepBuilder& builder, Lane lane, std::int64_t ns, int blocks) {
  const std::uint64_t elements = static_cast<std::uint64_t>(kMomentElements) * static_cast<std::uint64_t>(blocks);
  const BufferId moments = builder.host(ElementType::i32, elements, Init::constant);
  return builder.launch("stamp", lane, {.type = ElementType::i32, .dims = {ns, blocks}, .scalars = {}}, {{moments}});
}

Step step_of(const ConvoyRequest& request, int large_blocks) {
  StepBuilder builder(1);
  const int large = request.which == ConvoyCase::alone ? 0 : request.large_streams();
  for (int stream = 0; stream < large; ++stream)
    for (int i = 0; i < 2; ++i)
      stamp(builder, {.stream = static_cast<StreamId>(stream), .role = kLarge}, request.large_ns, large_blocks);
  for (int stream = 0; stream < request.small_streams(); ++stream)
    stamp(builder, {.stream = static_cast<StreamId>(large + stream), .role = kSmall}, request.small_ns, 1);
  return std::move(builder).seal(large + request.small_streams());
}

// Half of the device for all large streams together: what a small kernel then waits for is the queue, not a place.
int blocks_of_half(Device& device, const ConvoyRequest& request) {
  const DeviceInfo info = device.info();
  if (!info.multiprocessors.value) return 1;
  StepBuilder builder(1);
  stamp(builder, {}, 1, 1);
  const Step step = std::move(builder).seal(1);
  const Placement placement = place(step, "natural");
  const auto footprint = device.prepare(step, placement, {})->footprint(0);
  const int each = footprint ? static_cast<int>(footprint->blocks_per_multiprocessor) : 1;
  return std::max(1, *info.multiprocessors.value * each / (2 * request.large_streams()));
}

// (iteration, queue) of the large kernels; a queue that is not known has no place in it.
std::set<std::pair<std::uint32_t, std::int32_t>> queues_of_large(const Timeline& timeline) {
  std::set<std::pair<std::uint32_t, std::int32_t>> queues;
  for (const Span& span : timeline.spans)
    if (span.role == kLarge) queues.emplace(span.iteration, span.queue);
  return queues;
}

}  // namespace

std::string_view name_of(ConvoyCase which) { return kNames[static_cast<std::size_t>(which)]; }

std::optional<ConvoyCase> convoy_case_named(std::string_view name) {
  for (const ConvoyCase which : {ConvoyCase::alone, ConvoyCase::beside, ConvoyCase::behind})
    if (name_of(which) == name) return which;
  return std::nullopt;
}

ConvoyMeasurement measure_convoy(Device& device, const ConvoyRequest& request) {
  ConvoyMeasurement measurement;
  const bool is_alone = request.which == ConvoyCase::alone;
  if (!is_alone)
    measurement.large_blocks = request.large_blocks > 0 ? request.large_blocks : blocks_of_half(device, request);
  const Step step = step_of(request, measurement.large_blocks);
  const Placement placement = place(step, "natural");
  SessionOptions options;
  options.marks_iterations = false;
  options.is_traced = true;
  options.trace_iterations = kWarmup + request.iterations;
  const auto session = device.prepare(step, placement, options);
  std::vector<CommandId> commands(step.commands().size());
  std::iota(commands.begin(), commands.end(), CommandId{0});
  for (int i = 0; i < kWarmup + request.iterations; ++i) {
    session->begin_iteration();
    session->submit(commands);
    session->finish();
  }
  const Timeline timeline = session->timeline();
  measurement.source = timeline.source;
  measurement.clock_error_ns = timeline.clock_error_ns;
  const auto occupied = queues_of_large(timeline);
  std::size_t shared = 0;
  bool are_queues_known = true;
  for (const Span& span : timeline.spans) {
    if (span.role != kSmall || span.iteration < kWarmup) continue;
    if (span.submitted_ns == kNoTime || span.ended_ns == kNoTime) continue;
    measurement.latency_ns.push_back(static_cast<double>(span.ended_ns - span.submitted_ns));
    are_queues_known = are_queues_known && span.queue != kNoQueue;
    if (occupied.contains({span.iteration, span.queue})) ++shared;
  }
  if (are_queues_known) measurement.shared = shared;
  if (measurement.latency_ns.empty()) measurement.reason = "the device has no timeline with both clocks";
  return measurement;
}

}  // namespace weir
