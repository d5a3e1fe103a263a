// Builds a simulated device on which a step takes as long as on the real one. Measures and fits; predicts nothing.

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "base/error.h"
#include "device/sim/cost.h"
#include "device/sim/sim.h"
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
constexpr int kSimulated = 3;     // iterations; virtual time has no noise
constexpr double kClose = 0.005;  // fraction of the measured step at which fitting ends
constexpr int kFits = 24;
constexpr double kMinFactor = 0.2, kMaxFactor = 5;
constexpr double kMaxContention = 3;  // a larger value would stand for something else

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
  const double launch = price(device, stamps(kCalls, 1, false)).submit_ns / kCalls;
  profile.host.launch_ns = profile.host.copy_ns = profile.host.host_function_ns = whole(launch);
  profile.host.collective_ns = whole(launch);
  const double hop = price(device, stamps(kCalls, 2, true)).submit_ns / kCalls;
  profile.host.record_ns = profile.host.wait_ns = whole((hop - launch) / 2);
  const Priced one = price(device, stamps(1, 1, false));
  const double around = std::max(0.0, one.total_ns - one.submit_ns);
  profile.device.doorbell_ns = whole(around / 2);
  profile.host.finish_ns = whole(around / 2);
  if (has(step, CommandKind::copy)) profile.host.copy_ns = whole(price(device, copies(kCalls)).submit_ns / kCalls);
  if (has(step, CommandKind::host)) {
    const Priced chain = price(device, host_functions(kCalls));
    profile.host.host_function_ns = whole(chain.submit_ns / kCalls);
    profile.device.host_function_latency_ns = whole((chain.total_ns - one.total_ns) / kCalls);
  }
}

// Measures how long a dependent kernel waits after its predecessor: on the same stream, and from one queue to another.
void price_gaps(Device& device, const QueueProbe& probe, sim::SimProfile& profile) {
  SwitchRequest request;
  request.hops = 100;
  request.repetitions = 3;
  const auto gap = [&](int streams) { return measure_hop_gaps(device, streams, request); };
  const std::optional<Gaps> within = gap(1);
  if (!within) return;
  profile.device.stream_gap_ns = whole(within->p50_ns);
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

// Measures the step's commands one after the other on one stream, so that none shares the device.
void time_commands(Device& device, const Step& step, Calibration& calibration) {
  constexpr int kIterations = 3;
  const Placement serial = place(step, "serial");
  SessionOptions options;
  options.is_traced = true;
  options.marks_iterations = false;
  options.trace_iterations = kIterations + 1;
  const auto session = device.prepare(step, serial, options);
  const auto submitter = inline_submitter(step, *session);
  for (int i = 0; i <= kIterations; ++i) {
    session->begin_iteration();
    submitter->submit_step();
    session->finish();
  }
  const Timeline timeline = session->timeline();
  calibration.timeline = timeline.source;
  std::map<sim::Signature, std::vector<double>> times, held;
  std::map<sim::Signature, Footprint> footprints;
  for (const Span& span : timeline.spans) {
    if (span.iteration == 0 || span.started_ns == kNoTime || span.ended_ns == kNoTime) continue;
    if (sim::is_timed(step.commands()[span.command])) continue;
    const sim::Signature signature = sim::signature_of(step, span.command);
    times[signature].push_back(static_cast<double>(span.ended_ns - span.started_ns));
    if (span.launched_ns != kNoTime && span.launched_ns > span.started_ns)
      held[signature].push_back(static_cast<double>(span.launched_ns - span.started_ns));
    if (const auto footprint = session->footprint(span.command)) footprints.emplace(signature, *footprint);
  }
  for (const auto& [signature, samples] : times) {
    sim::Duration duration;
    duration.of = signature;
    duration.ns = std::max(1.0, median(samples));
    if (const auto found = held.find(signature); found != held.end())
      duration.held_ns = std::min(duration.ns, median(found->second));
    if (const auto found = footprints.find(signature); found != footprints.end()) {
      duration.blocks = found->second.blocks;
      duration.blocks_per_multiprocessor = found->second.blocks_per_multiprocessor;
    }
    calibration.profile.durations.push_back(duration);
  }
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
    // Copies and host functions leave their stream's queue for an engine's queue; one thread runs all callbacks.
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

void scale_host(sim::SimProfile& profile, double factor) {
  for (std::int64_t* cost : {&profile.host.launch_ns, &profile.host.copy_ns, &profile.host.host_function_ns,
                             &profile.host.collective_ns, &profile.host.record_ns, &profile.host.wait_ns})
    *cost = whole(static_cast<double>(*cost) * factor);
}

// Finds the value in a range with which the simulated step takes as long as the measured one. Larger values must make
// steps longer, or at least not shorter.
double fit(double low, double high, double measured_ns, const std::function<double(double)>& step_ns) {
  double value = high;
  for (int i = 0; i < kFits; ++i) {
    value = std::sqrt(low * high);  // both ends are positive and decades apart
    const double simulated_ns = step_ns(value);
    if (std::fabs(simulated_ns / measured_ns - 1) < kClose) break;
    (simulated_ns < measured_ns ? low : high) = value;
  }
  return value;
}

// Fits what neither durations nor footprints show: kernels take longer beside others than alone (contention), or use
// less of the device than their grids suggest (room), because most of their blocks exit at once.
void fit_kernels(Calibration& calibration, const StepRun& run) {
  sim::SimProfile& profile = calibration.profile;
  const auto simulated = [&] { return simulate(profile, run, false).step_ns; };
  const auto is_close = [&] {
    calibration.simulated_ns = simulated();
    return std::fabs(calibration.simulated_ns / calibration.measured.step_ns - 1) < kClose;
  };
  if (is_close()) return;
  const bool is_short = calibration.simulated_ns < calibration.measured.step_ns;
  double& setting = is_short ? profile.contention : profile.room;
  const double neutral = setting;
  const double plain_ns = calibration.simulated_ns;
  setting = is_short ? fit(0.001, kMaxContention, calibration.measured.step_ns,
                           [&](double value) { return setting = value, simulated(); })
                     : fit(0.001, 1, calibration.measured.step_ns,
                           [&](double value) { return setting = value, simulated(); });
  if (is_close()) return;
  // If contention cannot explain the step, an extreme value is worse than none.
  const auto error = [&](double ns) { return std::fabs(ns / calibration.measured.step_ns - 1); };
  if (error(calibration.simulated_ns) < 0.5 * error(plain_ns)) return;
  setting = neutral;
  calibration.simulated_ns = plain_ns;
}

}  // namespace

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
  if (!summary) fail("the step could not be measured: interrupted");
  MeasuredStep measured{summary->p50, median(pass.submit_ns), {summary->p50}, nullptr};
  if (summary->p50_interval) measured.interval = Json{summary->p50_interval->low, summary->p50_interval->high};
  return measured;
}

Calibration calibrate(Device& device, const StepRun& run, const QueueProbe& probe, const RunControl& control) {
  const Step& step = run.built.step;
  const auto report = [&](std::string_view phase, int done) {
    if (control.progress) control.progress(phase, done, 4);
  };
  Calibration calibration;
  calibration.profile = shell_of(device.info(), probe);
  report("measure the step", 0);
  calibration.measured = run.measured ? *run.measured : measure(device, run, control);
  report("time its commands alone", 1);
  time_commands(device, step, calibration);
  report("price calls and gaps", 2);
  price_calls(device, step, calibration.profile);
  price_gaps(device, probe, calibration.profile);
  report("fit", 3);
  const Simulated plain = simulate(calibration.profile, run, false);
  calibration.first_ns = plain.step_ns;
  if (plain.submit_ns > 0) {
    calibration.host_factor = std::clamp(calibration.measured.submit_ns / plain.submit_ns, kMinFactor, kMaxFactor);
    scale_host(calibration.profile, calibration.host_factor);
  }
  fit_kernels(calibration, run);
  return calibration;
}

}  // namespace weir
