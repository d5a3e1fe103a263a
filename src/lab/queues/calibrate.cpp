// Builds a simulated device on which a step takes as long as on the real one. Measures and fits; predicts nothing.

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/stop.h"
#include "device/sim/cost.h"
#include "device/sim/sim.h"
#include "lab/queues/calibrate_fit.h"
#include "lab/queues/queue_cost.h"
#include "lab/queues/stamps.h"
#include "lab/queues/switch_gaps.h"
#include "measure/statistics.h"
#include "run/passes.h"
#include "submit/placement.h"
#include "submit/submitter.h"

namespace weir {
namespace {

constexpr int kCalls = 64;  // calls of one kind in a row, to measure the cost of one
constexpr int kCalibrationRepetitions = 15;
constexpr int kSimulated = 3;  // iterations; virtual time has no noise
constexpr double kMinFactor = 0.2, kMaxFactor = 5;

// Medians over the iterations of one step: host time in submit, and time until everything has ended.
struct Priced {
  double submit_ns = 0;
  double total_ns = 0;
};
Priced time_steps(Session& session, Submitter& submitter, int warmup, int iterations) {
  std::vector<double> submits, totals;
  for (int i = 0; i < warmup + iterations; ++i) {
    session.begin_iteration();
    const std::int64_t begun = session.now_ns();
    submitter.submit_step();
    const std::int64_t submitted = session.now_ns();
    session.finish();
    const std::int64_t ended = session.now_ns();
    if (i < warmup) continue;  // the first iterations load code and wake threads
    submits.push_back(static_cast<double>(submitted - begun));
    totals.push_back(static_cast<double>(ended - begun));
  }
  return {median(submits), median(totals)};
}

Priced price(Device& device, const Step& step) {
  const Placement placement = place(step, "natural");
  const auto session = device.prepare(step, placement, {.marks_iterations = false});
  return time_steps(*session, *inline_submitter(step, *session), 2, kCalibrationRepetitions);
}

Step stamps(int count, int streams, bool is_chain) {
  StepBuilder builder(1);
  const BufferId moments =
      builder.host(ElementType::i32, static_cast<std::uint64_t>(count) * kMomentElements, Init::constant, 1, 0);
  for (int i = 0; i < count; ++i) {
    // A shared range makes each kernel depend on the previous one.
    const std::uint64_t at = is_chain ? 0 : static_cast<std::uint64_t>(i) * kMomentElements;
    builder.launch("stamp", {.stream = static_cast<StreamId>(i % streams)},
                   {.type = ElementType::i32, .dims = {0, 1}, .scalars = {}}, {{moments, at, kMomentElements}});
  }
  return std::move(builder).seal(streams);
}

Step copies(int count) {
  StepBuilder builder(1);
  const BufferId from = builder.host(ElementType::f32, 256, Init::constant);
  const BufferId to = builder.output(ElementType::f32, 256);
  for (int i = 0; i < count; ++i) builder.copy({}, {from}, {to});
  return std::move(builder).seal(1);
}

Step host_functions(int count) {
  StepBuilder builder(1);
  const BufferId from = builder.host(ElementType::f32, 16, Init::constant);
  const BufferId to = builder.host(ElementType::f32, 16, Init::constant);
  for (int i = 0; i < count; ++i)
    builder.launch_on_host("graph_break", {}, {.dims = {16, 0}, .scalars = {}}, {{from}, {to}});
  return std::move(builder).seal(1);
}

bool has(const Step& step, CommandKind kind) {
  return std::any_of(step.commands().begin(), step.commands().end(),
                     [&](const Command& command) { return command.kind == kind; });
}

std::int64_t whole(double ns) { return std::max<std::int64_t>(0, std::llround(ns)); }

void price_calls(Device& device, const Step& step, sim::SimProfile& profile) {
  // No more than a queue takes, or the host would wait for room.
  const int calls = static_cast<int>(std::clamp<std::int64_t>(profile.queue_depth / 4, 2, kCalls));
  const double launch = price(device, stamps(calls, 1, false)).submit_ns / calls;
  profile.host.launch_ns = profile.host.copy_ns = profile.host.host_function_ns = whole(launch);
  profile.host.collective_ns = whole(launch);
  const double hop = price(device, stamps(calls, 2, true)).submit_ns / calls;
  profile.host.record_ns = profile.host.wait_ns = whole((hop - launch) / 2);
  const Priced one = price(device, stamps(1, 1, false));
  // The queue's own time for the launch is known; the rest is before and after it.
  const double around = std::max(0.0, one.total_ns - one.submit_ns - static_cast<double>(profile.device.launch_ns));
  profile.device.doorbell_ns = whole(around / 2);
  profile.host.finish_ns = whole(around / 2);
  if (has(step, CommandKind::copy)) profile.host.copy_ns = whole(price(device, copies(calls)).submit_ns / calls);
  if (has(step, CommandKind::host)) {
    const Priced chain = price(device, host_functions(calls));
    profile.host.host_function_ns = whole(chain.submit_ns / calls);
    profile.device.host_function_latency_ns = whole((chain.total_ns - one.total_ns) / calls);
  }
}

// Measures how long a dependent kernel waits after its predecessor: on the same stream, and from one queue to another.
void price_gaps(Device& device, const QueueProbe& probe, std::optional<double> own_ns, sim::SimProfile& profile) {
  SwitchRequest request;
  // No more than half of what a queue takes, or the host would wait for room.
  request.hops = static_cast<int>(std::clamp<std::int64_t>(profile.queue_depth / 2, 2, 100));
  request.repetitions = 3;
  const auto gap = [&](int streams) { return measure_hop_gaps(device, streams, request); };
  const std::optional<Gaps> within = gap(1);
  if (!within) return;
  // A queue took no longer than this from one launch of the chain to the next, whatever else an experiment suggests.
  const double chain_ns = within->p50_ns + static_cast<double>(request.stamp_ns);
  profile.device.launch_ns = std::min(profile.device.launch_ns, whole(chain_ns));
  // Different kernels after each other may take longer than the probe's, which are all the same.
  profile.device.stream_gap_ns = whole(own_ns.value_or(within->p50_ns));
  const int queues = probe.queues.value_or(1);
  const std::optional<Gaps> two = gap(2);
  if (!two) return;
  const double extra = std::max(0.0, two->p50_ns - within->p50_ns);
  if (queues == 1) {
    profile.device.event_gap_ns = whole(extra);
    return;
  }
  const int many = std::min(queues, 8);
  const std::optional<Gaps> spread = many > 2 ? gap(many) : std::nullopt;
  // Two queues are one doubling, eight are three.
  const double doublings = std::log2(many) - 1;
  const double slope = spread ? std::max(0.0, (spread->p50_ns - two->p50_ns) / doublings) : extra;
  profile.device.switch_per_doubling_ns = whole(slope);
  profile.device.switch_ns = whole(std::max(0.0, extra - slope));
}

struct TracedStep {
  Timeline timeline;  // without the first iteration, which is warm-up
  double submit_ns = 0;
  std::map<sim::Signature, Footprint> footprints;
};
TracedStep trace_step(Device& device, const Step& step, const Placement& placement) {
  constexpr int kIterations = 3;
  SessionOptions options;
  options.is_traced = true;
  options.marks_iterations = false;
  options.trace_iterations = kIterations + 1;
  const auto session = device.prepare(step, placement, options);
  TracedStep traced;
  traced.submit_ns = time_steps(*session, *inline_submitter(step, *session), 1, kIterations).submit_ns;
  traced.timeline = session->timeline();
  std::erase_if(traced.timeline.spans, [](const Span& span) { return span.iteration == 0; });
  for (CommandId id = 0; id < step.commands().size(); ++id)
    if (const auto footprint = session->footprint(id))
      traced.footprints.emplace(sim::signature_of(step, id), *footprint);
  return traced;
}

// The time between neighbours of one stream that the host had submitted well ahead: what the device takes from one to
// the next of this step's kernels. Nothing if there are too few.
std::optional<double> gap_between(const Step& step, std::vector<Span> spans) {
  constexpr std::int64_t kAheadNs = 10'000;
  constexpr std::size_t kFewest = 8;
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    return a.iteration != b.iteration ? a.iteration < b.iteration : a.started_ns < b.started_ns;
  });
  std::vector<double> gaps;
  for (std::size_t i = 1; i < spans.size(); ++i) {
    const Span &before = spans[i - 1], &after = spans[i];
    const bool are_kernels = step.commands()[before.command].kind == CommandKind::kernel &&
                             step.commands()[after.command].kind == CommandKind::kernel;
    if (!are_kernels || before.iteration != after.iteration || before.started_ns == kNoTime) continue;
    if (before.ended_ns == kNoTime || after.submitted_ns == kNoTime) continue;
    if (after.submitted_ns + kAheadNs > before.ended_ns) continue;
    gaps.push_back(static_cast<double>(std::max<std::int64_t>(0, after.started_ns - before.ended_ns)));
  }
  if (gaps.size() < kFewest) return std::nullopt;
  const double most = 10 * median(gaps);  // an interruption is no gap
  double sum = 0;
  for (const double gap : gaps) sum += std::min(gap, most);
  return sum / static_cast<double>(gaps.size());
}

// Measures the step's commands one after the other on one stream, so that none shares the device.
void time_commands(Device& device, const Step& step, Calibration& calibration) {
  const TracedStep traced = trace_step(device, step, place(step, "serial"));
  calibration.timeline = traced.timeline.source;
  std::map<sim::Signature, std::vector<double>> times, held;
  for (const Span& span : traced.timeline.spans) {
    if (span.started_ns == kNoTime || span.ended_ns == kNoTime) continue;
    if (sim::is_timed(step.commands()[span.command])) continue;
    const sim::Signature signature = sim::signature_of(step, span.command);
    times[signature].push_back(static_cast<double>(span.ended_ns - span.started_ns));
    if (span.launched_ns != kNoTime && span.launched_ns > span.started_ns)
      held[signature].push_back(static_cast<double>(span.launched_ns - span.started_ns));
  }
  for (const auto& [signature, samples] : times) {
    sim::Duration duration;
    duration.of = signature;
    duration.ns = std::max(1.0, median(samples));
    if (const auto found = held.find(signature); found != held.end())
      duration.held_ns = std::min(duration.ns, median(found->second));
    if (const auto found = traced.footprints.find(signature); found != traced.footprints.end()) {
      duration.blocks = found->second.blocks;
      duration.blocks_per_multiprocessor = found->second.blocks_per_multiprocessor;
    }
    calibration.profile.durations.push_back(duration);
  }
  if (traced.timeline.has_exact_gaps) calibration.gap_ns = gap_between(step, traced.timeline.spans);
}

sim::Mapping mapping_of(MappingPolicy policy) {
  switch (policy) {
    case MappingPolicy::least_referenced:
      return sim::Mapping::least_referenced;
    case MappingPolicy::rotating:
      return sim::Mapping::rotating;
    case MappingPolicy::round_robin:
    case MappingPolicy::fixed:
      return sim::Mapping::round_robin;
    default:
      return sim::Mapping::load_based;
  }
}

sim::SimProfile shell_of(const DeviceInfo& info, const QueueProbe& probe) {
  sim::SimProfile profile;
  profile.name = "calibrated";
  // A profile's model must be short and without quotes.
  std::string model = info.model.substr(0, 60);
  std::erase_if(model, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '"' || c == '\\' || c == 127; });
  profile.model = model + ", calibrated";
  profile.queues = probe.queues.value_or(info.hardware_queues.value.value_or(1));
  profile.mapping = mapping_of(probe.policy);
  profile.max_streams = 4096;
  profile.multiprocessors = info.multiprocessors.value.value_or(1);
  if (info.is_gpu) {
    // As NVIDIA GPUs do, unless experiments say otherwise: copies and host functions leave their stream's queue for an
    // engine's, and one thread runs all callbacks.
    profile.engine_queues = 1;
    profile.host_threads = 1;
    profile.record_blocks = probe.record_blocks.value_or(false) ? 1 : 0;
  }
  // A worker of the cpu device runs one block at a time, and any number of kernels may wait for a worker.
  if (!info.is_gpu) {
    profile.slots_per_multiprocessor = 1;
    profile.resident_kernels = 4096;
  }
  profile.priorities = sim::Priorities::blocks;
  profile.kernel_ns = 0;
  if (info.memory_bytes.value) profile.memory_bytes = static_cast<std::int64_t>(*info.memory_bytes.value);
  return profile;
}

template <class T>
void learn(const Known<T>& known, auto& setting) {
  if (known.value) setting = static_cast<std::remove_reference_t<decltype(setting)>>(*known.value);
}

void learn_rules(const DeviceRules& rules, sim::SimProfile& profile) {
  learn(rules.queue_depth, profile.queue_depth);
  learn(rules.resident_kernels, profile.resident_kernels);
  learn(rules.slots, profile.slots_per_multiprocessor);
  learn(rules.barrier, profile.barrier);
  learn(rules.copy_queues, profile.engine_queues);
  learn(rules.copies[0], profile.copy_engines.to_device);
  learn(rules.copies[1], profile.copy_engines.to_host);
  learn(rules.copies[2], profile.copy_engines.on_device);
  learn(rules.host_in_queue, profile.host_in_queue);
  learn(rules.host_functions, profile.host_threads);
  if (rules.packet_ns.value) profile.device.launch_ns = whole(*rules.packet_ns.value);
  if (rules.event_gap_ns.value) profile.device.event_gap_ns = whole(*rules.event_gap_ns.value);
}

}  // namespace

void scale_host(sim::SimProfile& profile, double factor) {
  for (std::int64_t* cost : {&profile.host.launch_ns, &profile.host.copy_ns, &profile.host.host_function_ns,
                             &profile.host.collective_ns, &profile.host.record_ns, &profile.host.wait_ns})
    *cost = whole(static_cast<double>(*cost) * factor);
}

Simulated simulate(const sim::SimProfile& profile, const StepRun& run, bool is_traced) {
  const auto device = open_sim(profile);
  const SubmitChoice submit = run.built.submit.fitted_to(run.built.placement.stream_count);
  SessionOptions options = submit.session_options();
  options.is_traced = is_traced;
  options.trace_iterations = kSimulated + 1;
  const auto session = device->prepare(run.built.step, run.built.placement, options);
  // The simulated host has its own threads, but none that chooses the next command.
  const auto submitter = submit.policy.empty() ? inline_submitter(run.built.step, *session)
                                               : make_submitter(submit, run.built.step, run.built.placement, *session);
  const Priced priced = time_steps(*session, *submitter, 1, kSimulated);
  Simulated simulated{priced.total_ns, priced.submit_ns, {}};
  if (is_traced) simulated.timeline = session->timeline();
  return simulated;
}

MeasuredStep measure(Device& device, const StepRun& run, const RunControl& control) {
  const Step& step = run.built.step;
  const SubmitChoice submit = run.built.submit.fitted_to(run.built.placement.stream_count);
  RunRequest request;
  request.iterations = run.iterations;
  request.warmup = run.warmup;
  SessionOptions options = submit.session_options();
  options.marks_iterations = false;
  const auto session = device.prepare(step, run.built.placement, options);
  const auto submitter = make_submitter(submit, step, run.built.placement, *session);
  const TimedPass pass = run_timed_pass(device, *session, *submitter, request, {.stop = control.stop});
  if (pass.failure != nullptr) std::rethrow_exception(pass.failure);
  const auto summary = summarise(pass.latency_ns);
  if (!summary) throw Interrupted();
  MeasuredStep measured{summary->p50, median(pass.submit_ns), {summary->p50}, nullptr};
  if (summary->p50_interval) measured.interval = Json{summary->p50_interval->low, summary->p50_interval->high};
  return measured;
}

Calibration calibrate(Device& device, const StepRun& run, const QueueProbe& probe, const RunControl& control) {
  const Step& step = run.built.step;
  const auto report = [&](std::string_view phase, int done) {
    if (control.is_stopped()) throw Interrupted();
    if (control.progress) control.progress(phase, done, 5);
  };
  Calibration calibration;
  calibration.profile = shell_of(device.info(), probe);
  report("measure the step", 0);
  calibration.measured = run.measured ? *run.measured : measure(device, run, control);
  report("time its commands alone", 1);
  time_commands(device, step, calibration);
  report("learn the queues' rules", 2);
  calibration.rules = measure_rules(
      device, probe, {.has_copies = has(step, CommandKind::copy), .has_host_functions = has(step, CommandKind::host)});
  learn_rules(calibration.rules, calibration.profile);
  report("price calls and gaps", 3);
  price_gaps(device, probe, calibration.gap_ns, calibration.profile);
  price_calls(device, step, calibration.profile);
  report("fit", 4);
  const Simulated plain = simulate(calibration.profile, run, false);
  calibration.first_ns = plain.step_ns;
  if (plain.submit_ns > 0) {
    calibration.host_factor = std::clamp(calibration.measured.submit_ns / plain.submit_ns, kMinFactor, kMaxFactor);
    scale_host(calibration.profile, calibration.host_factor);
  }
  const TracedStep traced = trace_step(device, step, run.built.placement);
  fit_kernels(calibration, run, {mean_durations(step, traced.timeline), traced.submit_ns});
  return calibration;
}

}  // namespace weir
