#include "lab/queues/convoy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "base/named_values.h"
#include "base/units.h"
#include "kernel/moment.h"
#include "lab/queues/queues_document.h"
#include "measure/result.h"
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

// All large streams together take half of the device, so a small kernel waits for the queue and not for room.
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

// (iteration, queue) of the large kernels; unknown queues are left out.
std::set<std::pair<std::uint32_t, std::int32_t>> queues_of_large(const Timeline& timeline) {
  std::set<std::pair<std::uint32_t, std::int32_t>> queues;
  for (const Span& span : timeline.spans)
    if (span.role == kLarge) queues.emplace(span.iteration, span.queue);
  return queues;
}

bool has_latency(const Json& json) { return json["latency_ns"].is_object(); }

// The ratio of two p99 values. The interval takes the worst of both sides, so its coverage is at least 95 %.
Json index_of(const Json& over, const Json& under) {
  if (!has_latency(over) || !has_latency(under)) return nullptr;
  const Json &a = over["latency_ns"], &b = under["latency_ns"];
  const auto ratio = [](const Json& x, const Json& y) -> Json {
    if (!x.is_number() || !y.is_number() || y.get<double>() <= 0) return nullptr;
    return number_or_null(x.get<double>() / y.get<double>());
  };
  Json index = {{"p99", ratio(a["p99"], b["p99"])}, {"p99_interval", nullptr}, {"p50", ratio(a["p50"], b["p50"])}};
  if (a["p99_interval"].is_array() && b["p99_interval"].is_array())
    index["p99_interval"] = {ratio(a["p99_interval"][0], b["p99_interval"][1]),
                             ratio(a["p99_interval"][1], b["p99_interval"][0])};
  return index;
}

// "beside large kernels 1.2 times as long", or a sentence that nothing can be concluded.
std::string words_of(const Json& index, const char* where, const char* than) {
  if (!index.is_object() || !index["p99"].is_number()) return fmt::format("{}: unknown", where);
  const Json& interval = index["p99_interval"];
  if (interval.is_array() && interval[0].is_number() && interval[1].is_number() && interval[0] <= 1 && interval[1] >= 1)
    return fmt::format("{} the slowest 1 % take no longer than {}, beyond noise", where, than);
  return fmt::format("{} the slowest 1 % take {:.2f} times as long as {}", where, index["p99"].get<double>(), than);
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

Json to_json(const ConvoyRequest& request, const ConvoyMeasurement& measurement) {
  const auto summary = summarise(measurement.latency_ns);
  Json json =
      WEIR_NAMED(named("case", request.which), named("latency_ns", summary ? to_json(*summary) : Json(nullptr)),
                 text_or_null(measurement.reason), positive_or_null(measurement.large_blocks), measurement.shared);
  json["clock"] = {{"source", measurement.source}, {"error_ns", number_or_null(measurement.clock_error_ns)}};
  json["samples_ns"] = summary ? Json(measurement.latency_ns) : Json(nullptr);
  return json;
}

void judge_convoy(Json& document) {
  Json convoy = document["convoy"];
  const Json &alone = convoy["cases"]["alone"], &beside = convoy["cases"]["beside"],
             &behind = convoy["cases"]["behind"];
  Json& unavailable = document["unavailable"];
  for (const auto& [name, json] : convoy["cases"].items()) {
    const std::string path = fmt::format("convoy.cases.{}.", name);
    if (!has_latency(json)) {
      unavailable[path + "latency_ns"] = json["reason"];
      continue;
    }
    if (json["latency_ns"]["p99_interval"].is_null())
      unavailable[path + "latency_ns.p99_interval"] = fmt::format("fewer than {} samples", min_for_quantile(0.99));
    if (json["shared"].is_null())
      unavailable[path + "shared"] = "the device does not report which queue a command was on";
    const Json& error = json["clock"]["error_ns"];
    if (error.is_number() && error.get<double>() > json["latency_ns"]["p50"].get<double>() / 4)
      warn(document, "coarse_clock",
           fmt::format("{}: the clocks of host and device agree within {} only", name,
                       format_duration(error.get<double>())),
           "Indices near 1 mean little here.");
  }
  const auto count = [](const Json& json) { return json["latency_ns"]["count"].get<std::size_t>(); };
  if (has_latency(beside) && beside["shared"].is_number() && beside["shared"] != 0)
    warn(document, "shared_queue",
         fmt::format("beside: {} of {} small kernels had a large one on their queue", beside["shared"].dump(),
                     count(beside)),
         "The convoy index then holds some head-of-line blocking.");
  if (has_latency(behind) && behind["shared"].is_number() && behind["shared"].get<std::size_t>() < count(behind))
    warn(document, "other_queue",
         fmt::format("behind: only {} of {} small kernels had a large one on their queue", behind["shared"].dump(),
                     count(behind)),
         "The head-of-line index is too low.");
  Json convoy_index = index_of(beside, alone), line_index = index_of(behind, beside);
  if (convoy_index.is_null()) unavailable["convoy.convoy_index"] = "a case has no latencies";
  if (line_index.is_null()) unavailable["convoy.head_of_line_index"] = "a case has no latencies";
  convoy["sentence"] =
      fmt::format("Small kernels: {}; {}.", words_of(convoy_index, "beside large ones on other queues", "alone"),
                  words_of(line_index, "behind them on one queue", "beside them"));
  convoy["convoy_index"] = std::move(convoy_index);
  convoy["head_of_line_index"] = std::move(line_index);
  document["convoy"] = std::move(convoy);
}

}  // namespace weir
