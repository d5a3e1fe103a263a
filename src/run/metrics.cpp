#include "run/metrics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/named_values.h"
#include "base/units.h"
#include "kernel/region.h"
#include "run/switch_cost.h"
#include "submit/placement.h"
#include "trace/analyse/concurrency.h"
#include "trace/analyse/queue_switch.h"
#include "trace/analyse/service.h"

namespace weir {
namespace {

constexpr double kNoisyRatio = 1.5;    // p99 / p50
constexpr double kDriftChange = 0.05;  // from the first to the last sample
constexpr double kWidestInterval = 4;  // high / low: if streams run ahead, iterations end in bunches
constexpr double kSteadyClock = 0.95;  // after / before
constexpr std::size_t kTracedSpans = 100'000;

void put(Result& result, const std::string& metric, std::optional<double> value, const std::string& reason) {
  result.metrics[metric] = number_or_null(value);
  if (!value) result.unavailable["metrics." + metric] = reason;
}

void warn_about_noise(Result& result, const char* what, const std::vector<double>& samples) {
  if (const auto ratio = noise_ratio(samples); ratio && *ratio > kNoisyRatio && samples.size() >= 20)
    result.warnings.push_back(
        {"noisy", fmt::format("{} p99 is {:.1f} times p50", what, *ratio),
         "Close other programs, pin the clocks, or take more iterations; compare p50 rather than mean."});
  if (const auto drift = trend(samples); drift && drift->is_clear && std::fabs(drift->change) > kDriftChange)
    result.warnings.push_back({"drift", drift_text(drift->end_ratio),
                               "Raise --warmup until it is steady, or let the machine reach its working temperature."});
}

void note_missing_intervals(Result& result, const std::string& metric, const Summary& summary) {
  const std::pair<const char*, const std::optional<Interval>*> intervals[] = {{"mean", &summary.mean_interval},
                                                                              {"p50", &summary.p50_interval},
                                                                              {"p95", &summary.p95_interval},
                                                                              {"p99", &summary.p99_interval}};
  for (const auto& [name, interval] : intervals)
    if (!*interval)
      result.unavailable[fmt::format("metrics.{}.{}_interval", metric, name)] =
          fmt::format("{} samples are too few to say how certain it is", summary.count);
}

void add_energy(Result& result, const TimedPass& pass, std::size_t iterations) {
  const auto& [before, after] = std::pair(pass.before.energy_j, pass.after.energy_j);
  if (pass.sync == SyncMode::none) {
    result.metrics["energy"] = nullptr;
    result.unavailable["metrics.energy"] = "warm-up and measurement overlap in sync mode none";
    return;
  }
  if (before && after && *after > *before && iterations > 0) {
    const double joules = *after - *before;
    result.metrics["energy"] = {{"joules_per_iteration", joules / static_cast<double>(iterations)},
                                {"watts", {{"mean", joules / (pass.total_ns * 1e-9)}}}};
    return;
  }
  result.metrics["energy"] = nullptr;
  result.unavailable["metrics.energy"] =
      before ? "the energy counter did not advance during the run, or wrapped: take more iterations"
             : "no energy counter on this device (NVML or RAPL)";
}

void add_telemetry(Result& result, const TimedPass& pass) {
  const Telemetry& after = pass.after;
  result.metrics["telemetry"] = {{"clock_mhz_before", number_or_null(pass.before.clock_mhz)},
                                 {"clock_mhz_after", number_or_null(after.clock_mhz)}};
  result.metrics["telemetry"].update(
      WEIR_NAMED(after.max_clock_mhz, after.temperature_c, after.power_w, after.throttle));
  if (!after.clock_mhz || !after.temperature_c || !after.power_w)
    result.unavailable["metrics.telemetry"] = "the device does not tell what is null there";
  if (pass.before.clock_mhz && after.clock_mhz && *after.clock_mhz < kSteadyClock * *pass.before.clock_mhz)
    result.warnings.push_back({"clocks",
                               fmt::format("the clock fell from {:.0f} to {:.0f} MHz during the run",
                                           *pass.before.clock_mhz, *after.clock_mhz),
                               "Warm the device up for longer, or lock its clocks, before comparing."});
  if (!after.throttle.empty())
    result.warnings.push_back(
        {"throttled", fmt::format("the device held its clocks back: {}", fmt::join(after.throttle, ", ")),
         "Lower the power draw or cool it, and compare only with runs under the same conditions."});
}

void add_memory(Result& result, const MemoryUse& use) {
  result.metrics["memory"] = WEIR_NAMED(use.allocated_bytes, use.reserved_bytes, use.peak_bytes);
  if (!use.allocated_bytes || !use.reserved_bytes || !use.peak_bytes) result.unavailable["metrics.memory"] = use.reason;
}

Json count_or_null(bool is_known, std::size_t count) { return is_known ? Json(count) : Json(nullptr); }

// Time to the first token and per further token, if the workload marks tokens.
void add_serving(Result& result, const Timeline& timeline, const Step& step, const std::string& no_timeline) {
  result.metrics["serving"] = nullptr;
  std::vector<TokenMark> marks;
  for (const Step::Token& token : step.tokens()) marks.push_back({token.command, token.request});
  const TokenLatencies tokens = token_latencies(timeline, marks);
  const auto first = summarise(tokens.first_ns);
  const auto next = summarise(tokens.next_ns);
  if (!first) {
    result.unavailable["metrics.serving"] = marks.empty() ? "the workload hands out no tokens" : no_timeline;
    return;
  }
  result.metrics["serving"] = {{"first_token_ns", to_json(*first)},
                               {"next_token_ns", next ? to_json(*next) : Json(nullptr)}};
  if (!next) result.unavailable["metrics.serving.next_token_ns"] = "each request gets one token per iteration";
}

}  // namespace

void add_timed_metrics(Result& result, const TimedPass& pass, const Step& step, bool runs) {
  const auto commands = static_cast<double>(step.commands().size());
  const bool has_device_clock = !pass.device_ns.empty();
  result.samples.submit_ns = pass.submit_ns;
  if (has_device_clock) {
    result.samples.device_ns = pass.device_ns;
    result.device_ns = summarise(pass.device_ns);
    if (result.device_ns) note_missing_intervals(result, "device_ns", *result.device_ns);
  } else {
    result.unavailable["metrics.device_ns"] = result.unavailable["samples.device_ns"] =
        pass.sync == SyncMode::per_iteration && runs
            ? "not marked: events behind a stream's last command would hold its "
              "hardware queue up (--sync-mode end_only "
              "marks them)"
            : "the device has no clock of its own";
  }

  // Iterations that overlap have no latency that a host could see: what they have is device_ns, under its own name.
  if (pass.sync == SyncMode::per_iteration) {
    result.samples.latency_ns = pass.latency_ns;
    result.latency_ns = summarise(pass.latency_ns);
    note_missing_intervals(result, "latency_ns", *result.latency_ns);
    warn_about_noise(result, "latency", pass.latency_ns);
  } else {
    result.unavailable["metrics.latency_ns"] = result.unavailable["samples.latency_ns"] =
        pass.sync == SyncMode::none ? "sync mode none measures throughput only"
        : has_device_clock          ? "pipelined iterations overlap: device_ns is the time of each on the device"
                                    : "pipelined iterations need the device's clock, and it has none";
    if (pass.sync == SyncMode::end_only && has_device_clock) warn_about_noise(result, "device time", pass.device_ns);
  }

  result.samples.interval_ns = pass.interval_ns;
  const auto counted = static_cast<double>(pass.interval_ns.size());
  // `end_only` uses the host's clock, from the first submit to the end of the drain.
  const double seconds = (pass.sync == SyncMode::end_only ? pass.total_ns : mean(pass.interval_ns) * counted) * 1e-9;
  if (seconds > 0) result.commands_per_s = static_cast<double>(result.commands_per_iteration) * counted / seconds;
  if (!runs) {
    result.unavailable["metrics.throughput"] = "the device runs nothing";
  } else if (result.work_per_iteration <= 0) {
    result.unavailable["metrics.throughput"] = result.unavailable["work_per_iteration"] =
        "the data decides how much work there is, and this device has none";
  } else if (seconds > 0) {
    Throughput throughput;
    throughput.value = result.work_per_iteration * counted / seconds;
    const auto summary = summarise(pass.interval_ns);
    const bool has_interval = summary && summary->mean_interval && summary->mean_interval->low > 0;
    if (has_interval && summary->mean_interval->high < kWidestInterval * summary->mean_interval->low) {
      // Around the value above, which in `end_only` includes the drain.
      throughput.interval = Interval{throughput.value * summary->mean / summary->mean_interval->high,
                                     throughput.value * summary->mean / summary->mean_interval->low};
    } else {
      result.unavailable["metrics.throughput.interval"] =
          has_interval ? "iterations depend on each other so much that their spread says nothing about the mean"
                       : "too few iterations to say how certain it is";
    }
    result.throughput = throughput;
  } else {
    result.unavailable["metrics.throughput"] = "no time passed on the clock";
  }
  if (!result.commands_per_s) result.unavailable["metrics.commands_per_s"] = "no time passed on the clock";
  result.host_ns_per_command = median(pass.submit_ns) / commands;
  add_memory(result, pass.memory);
  add_energy(result, pass, pass.iterations);
  add_telemetry(result, pass);
}

void add_compilation(Result& result, const Step& step, const Session& session, const DeviceInfo& info) {
  std::set<std::pair<std::int64_t, ElementType>> regions;
  for (const Command& command : step.commands())
    if (command.kind == CommandKind::kernel && is_region(kernel(command.kernel)))
      regions.emplace(command.shape.dims[2], command.shape.type);
  if (regions.empty()) return;
  const std::optional<Compilation> done = session.compilation();
  Json& metric = result.metrics["compile"];
  metric["regions"] = done ? done->regions : regions.size();
  metric["compiled"] = count_or_null(done.has_value(), done ? done->compiled : 0);
  metric["from_disk"] = count_or_null(done.has_value(), done ? done->from_disk : 0);
  metric["from_memory"] = count_or_null(done.has_value(), done ? done->from_memory : 0);
  metric["uncompiled"] = count_or_null(done.has_value(), done ? done->uncompiled : 0);
  metric["compiler"] = done && !done->compiler.empty() ? Json(done->compiler) : Json(nullptr);
  metric["compile_ns"] = done && done->compile_ns ? Json(*done->compile_ns) : Json(nullptr);
  if (!done) {
    result.unavailable["metrics.compile"] = info.is_virtual ? "simulated: the time of compiling is not modelled"
                                                            : fmt::format("device '{}' compiles nothing", info.name);
  } else if (done->uncompiled > 0) {
    result.unavailable["metrics.compile"] = done->reason;
    result.warnings.push_back({"uncompiled",
                               fmt::format("{} of {} regions could not be compiled and ran operation by operation: {}",
                                           done->uncompiled, done->regions, done->reason),
                               done->hint});
  }
}

double floor_ns_per_command(const Step& step, const Placement& placement, const SubmitChoice& submit) {
  const auto device = open_device("null", {});
  const auto session = device->prepare(step, placement, submit.session_options());
  const auto submitter = make_submitter(submit, step, placement, *session);
  // Short steps are repeated within a sample, so that the cost of reading the clock is negligible.
  const auto commands = static_cast<double>(step.commands().size());
  int repeat = std::max(1, static_cast<int>(2000 / commands));
  // Threads that pass work to each other wait for a core if all are busy: 480 steps would then take seconds.
  constexpr std::int64_t kBusyNs = 20'000'000;
  std::vector<double> samples;
  for (int i = 0; i < 12; ++i) {
    const std::int64_t begun = now_ns();
    for (int k = 0; k < repeat; ++k) submitter->submit_step();
    const std::int64_t taken = now_ns() - begun;
    if (i >= 2) samples.push_back(static_cast<double>(taken) / repeat);
    if (i == 1 && taken > kBusyNs) repeat = 1;
  }
  // The least, because a floor is what no run goes below; a busy machine only adds to it.
  return *std::min_element(samples.begin(), samples.end()) / commands;
}

void note_untraced(Result& result, const std::string& reason) {
  for (const char* metric : {"tracing", "concurrency", "fairness", "queue_switch", "convoy", "serving"}) {
    result.metrics[metric] = nullptr;
    result.unavailable[std::string("metrics.") + metric] = reason;
  }
}

Timeline add_traced_metrics(Result& result, Device& device, const Workload& workload, const Step& step,
                            const Placement& placement, const SubmitChoice& submit, const RunControl& control) {
  const int iterations = std::clamp(static_cast<int>(kTracedSpans / step.commands().size()), 1, 20);
  if (control.progress) control.progress("trace", 0, iterations);
  TracedPass pass =
      run_traced_pass(device, step, placement, submit, TraceSchedule(iterations), control, workload.roles);
  const bool has_spans = !pass.timeline.spans.empty();
  const std::string why = fmt::format("no timeline: {}", pass.timeline.source);

  Json tracing = Json::object();
  tracing["source"] = pass.timeline.source;
  std::set<std::uint32_t> kept;
  for (const Span& span : pass.timeline.spans) kept.insert(span.iteration);
  tracing["iterations"] = kept.size();
  tracing["clock_error_ns"] = pass.timeline.clock_error_ns;
  const bool comparable = result.latency_ns && result.sync_mode == "per_iteration" && has_spans;
  if (!comparable)
    result.unavailable["metrics.tracing.latency_ratio"] =
        "only a per_iteration run with a timeline can be compared with its traced pass";
  tracing["latency_ratio"] =
      comparable ? number_or_null(median(pass.latency_ns) / result.latency_ns->p50) : Json(nullptr);
  result.metrics["tracing"] = std::move(tracing);

  const auto running = concurrency_profile(pass.timeline).all;
  result.metrics["concurrency"] = running ? WEIR_NAMED(running->mean, running->max) : Json();
  if (!running) result.unavailable["metrics.concurrency"] = why;
  put(result, "fairness", fairness(pass.timeline), has_spans ? "no two streams have the same work" : why);

  const QueueSwitch gaps = queue_switch(pass.timeline);
  const auto gap = [](const std::optional<SwitchGap>& found) {
    return found ? WEIR_NAMED(named("p50", found->median_ns), found->count) : Json();
  };
  Json timeline = Json::object();
  timeline["same_stream_ns"] = gap(gaps.same_stream);
  timeline["same_queue_ns"] = gap(gaps.same_queue);
  timeline["other_queue_ns"] = gap(gaps.other_queue);
  timeline.update(WEIR_NAMED(gaps.same_queue_overhead_ns, gaps.other_queue_overhead_ns));
  timeline["unknown_queue_ns"] = gap(gaps.unknown_queue);
  timeline["unknown_queue_overhead_ns"] = number_or_null(gaps.unknown_queue_overhead_ns);
  timeline["host_bound_pairs"] = gaps.host_bound;
  if (!gaps.reason.empty()) result.unavailable["metrics.queue_switch.timeline"] = gaps.reason;
  for (const auto& [name, value] : timeline.items())
    if (value.is_null() && gaps.reason.empty())
      result.unavailable["metrics.queue_switch.timeline." + name] = fmt::format("fewer than {} such pairs", kMinGaps);

  const SwitchCost controlled =
      control.is_stopped() ? SwitchCost{} : measure_switch_cost(device, placement.stream_count);
  result.metrics["queue_switch"] = {
      {"timeline", timeline},
      {"controlled", WEIR_NAMED(controlled.ns_per_hop, controlled.hops, controlled.repetitions, controlled.streams)}};
  if (!controlled.ns_per_hop)
    result.unavailable["metrics.queue_switch.controlled"] =
        controlled.reason.empty() ? "interrupted" : controlled.reason;

  add_serving(result, pass.timeline, step, why);
  result.metrics["convoy"] = nullptr;
  if (!workload.convoy_role) {
    result.unavailable["metrics.convoy"] = "the workload has no small commands beside large ones";
    return std::move(pass.timeline);
  }
  if (!has_spans || submit.mode == SubmitMode::graph) {
    result.unavailable["metrics.convoy"] = has_spans ? "commands of a graph are submitted as one" : why;
    return std::move(pass.timeline);
  }
  const Step small = only_role(step, *workload.convoy_role);
  // The same placement policy; threads that would have no stream are not started.
  const Placement small_placement = place(small, placement.name);
  const TracedPass alone =
      run_traced_pass(device, small, small_placement, submit.fitted_to(small_placement.stream_count),
                      TraceSchedule(iterations), control, workload.roles);
  const auto mixed_summary = summarise(role_latencies(pass.timeline, *workload.convoy_role));
  const auto alone_summary = summarise(role_latencies(alone.timeline, *workload.convoy_role));
  if (!mixed_summary || !alone_summary) {
    result.unavailable["metrics.convoy"] = "the timeline holds no complete command of that role";
    return std::move(pass.timeline);
  }
  result.metrics["convoy"] = {{"role", workload.roles[*workload.convoy_role]},
                              {"alone_ns", to_json(*alone_summary)},
                              {"mixed_ns", to_json(*mixed_summary)},
                              {"index", number_or_null(mixed_summary->p99 / alone_summary->p99)}};
  return std::move(pass.timeline);
}

}  // namespace weir
