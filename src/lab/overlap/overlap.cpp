#include "lab/overlap/overlap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/clock.h"
#include "base/error.h"
#include "base/units.h"
#include "lab/overlap/overlap_summary.h"
#include "run/check.h"
#include "run/describe_timeline.h"
#include "run/passes.h"
#include "step/workload/ranking_transformer.h"
#include "submit/placement.h"
#include "submit/submitter.h"
#include "trace/clock_alignment.h"
#include "trace/timeline_bytes.h"

namespace weir {
namespace {

constexpr const char* kLabel = "weir overlap";

float loss_in(Session& session, BufferId loss) {
  std::byte bytes[sizeof(float)] = {};
  session.read(loss, bytes);
  float value = 0;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// One way to run the step: the whole step or a part of it, with one placement.
struct Variant {
  const char* name;
  const Step& step;
  Placement placement;
};

// What this rank records of an untraced training run (overlapped or serial).
struct Training {
  TimedPass pass;
  std::vector<double> losses;  // includes warm-up
  std::string collectives;
  CheckReport check;
};

// Labels each stream whose commands all have one role with that role.
void label_streams(Timeline& timeline, const Step& step, const Placement& placement, const Workload& workload) {
  constexpr int kMixed = -2;
  std::vector<int> role_of(timeline.streams.size(), -1);
  for (CommandId id = 0; id < step.commands().size(); ++id) {
    int& role = role_of[placement.stream_of[id]];
    const int own = step.commands()[id].role;
    role = role == -1 || role == own ? own : kMixed;
  }
  for (std::size_t i = 0; i < role_of.size(); ++i)
    if (role_of[i] >= 0)
      timeline.streams[i].label =
          fmt::format("{} (stream {})", workload.roles[static_cast<std::size_t>(role_of[i])], i);
}

class OverlapRunner {
 public:
  OverlapRunner(Device& device, const OverlapConfig& config, Communicator& ranks, const RunControl& control)
      : device_(device),
        info_(device.info()),
        config_(config),
        ranks_(ranks),
        control_(control),
        request_(config.request()),
        built_(build_run(info_, request_, ranks.ranks())) {}

  const BuiltRun& built() const { return built_; }
  const DeviceInfo& info() const { return info_; }
  void trace_by_events() { is_by_events_ = true; }

  // Trains from the initial parameters. `is_checked` runs one more iteration and compares its output with the
  // reference.
  Training train(const Variant& variant, bool is_checked) {
    SessionOptions options = built_.submit.session_options();
    options.marks_iterations = built_.submit.mode == SubmitMode::graph;
    options.follows_progress |= control_.wants_progress();
    const auto session = device_.prepare(variant.step, variant.placement, options);
    const auto submitter = make_submitter(built_.submit, variant.step, variant.placement, *session);
    Training training;
    RunControl control = control_;
    control.progress = [&](std::string_view phase, int done, int total) {
      report(fmt::format("{}: {}", variant.name, phase), done, total);
    };
    if (info_.computes) {
      const BufferId loss = ranking_buffers(variant.step).loss;
      control.after_iteration = [&training, loss](Session& ended) { training.losses.push_back(loss_in(ended, loss)); };
    }
    SessionWatch watch(control_, info_, *session, variant.step, variant.placement, roles());
    training.pass = run_timed_pass(device_, *session, *submitter, request_, control, &watch);
    if (training.pass.failure != nullptr) std::rethrow_exception(training.pass.failure);
    training.collectives = session->collectives();
    if (is_checked) training.check = check_run(variant.step, *session, *submitter, &ranks_, watch);
    return training;
  }

  // Traces some iterations and describes the timeline. Appends each iteration's loss to `losses` unless it is null.
  TracedPass trace(const Variant& variant, std::vector<double>* losses) {
    RunControl control = control_;
    report(fmt::format("{}: trace", variant.name), 0, 1);
    if (losses != nullptr && info_.computes) {
      const BufferId loss = ranking_buffers(variant.step).loss;
      control.after_iteration = [losses, loss](Session& ended) { losses->push_back(loss_in(ended, loss)); };
    }
    TracedPass pass = run_traced_pass(device_, variant.step, variant.placement, built_.submit, config_.trace_schedule(),
                                      control, roles(), is_by_events_);
    describe_timeline(pass, info_, variant.step, variant.placement, built_.submit, kLabel);
    label_streams(pass.timeline, variant.step, variant.placement, workload_named(kOverlapWorkload));
    return pass;
  }

 private:
  static std::span<const std::string> roles() { return workload_named(kOverlapWorkload).roles; }
  void report(std::string_view phase, int done, int total) const {
    if (control_.progress) control_.progress(phase, done, total);
  }

  Device& device_;
  DeviceInfo info_;
  const OverlapConfig& config_;
  Communicator& ranks_;
  const RunControl& control_;
  RunRequest request_;
  BuiltRun built_;
  bool is_by_events_ = false;
};

bool is_collective(const Step& step, CommandId id) { return step.commands()[id].kind == CommandKind::collective; }

// Rejects what the workload or the runner rejects, but names the config's keys: the user gave no flags of `weir run`.
BuiltRun checked_build(const DeviceInfo& info, const OverlapConfig& config, Ranks ranks) {
  try {
    return build_run(info, config.request(), ranks);
  } catch (const Error& error) {
    throw config.in_keys(error);
  }
}

// Groups of ranks that share parameters are neighbours of equal number, so hosts must have as many ranks each.
void find_hosts(OverlapConfig& config, Communicator& ranks) {
  const int here = ranks.local_ranks().count, count = ranks.ranks().count;
  std::string verdict;
  const std::vector<std::string> hosts = ranks.gather(fmt::format("{} {}", here, ranks.host()));
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    const std::size_t first = rank / static_cast<std::size_t>(here) * static_cast<std::size_t>(here);
    if (hosts[rank] != hosts[first] || !hosts[rank].starts_with(fmt::format("{} ", here)))
      verdict = fmt::format("fsdp.shard_group node: rank {} is not on the host of rank {}", rank, first);
  }
  verdict = broadcast_text(ranks, verdict);
  if (!verdict.empty())
    reject(verdict, "Start as many neighbouring ranks on every host, or give a number: fsdp.shard_group=2.");
  config.set_ranks_per_host(here);
  if (here >= count)
    config.notes.emplace_back("fsdp.shard_group node: all ranks are on one host, so they share one copy");
}

// The timelines of all ranks, on rank 0's clock. Ranks on one host share a clock: an offset measured between them is
// noise.
std::vector<Timeline> gather_timelines(Communicator& ranks, const Timeline& own, const std::vector<Json>& members) {
  std::vector<Timeline> timelines;
  const std::vector<std::string> all = ranks.gather(timeline_bytes(own));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    Timeline& timeline = timelines.emplace_back(timeline_of_bytes(all[rank], fmt::format("rank {}", rank)));
    if (members[rank]["host"] == members[0]["host"]) continue;
    shift_clock(timeline, std::llround(members[rank]["clock_offset_ns"].get<double>()));
    timeline.clock_error_ns = std::max(timeline.clock_error_ns, members[rank]["clock_error_ns"].get<double>());
  }
  return timelines;
}

}  // namespace

void add_overlap_process(Json& all, const Json& summary, std::int64_t wall_ns) {
  const Json& step = at_path(summary, {"step_ns", "overlapped"});
  const Json process = {{"samples", at_path(step, {"samples_ns"}).size()},
                        {"traced", at_path(summary, {"overlap", "samples", "exposed_ns"}).size()},
                        {"wall_ns", wall_ns},
                        {"latency_ns", {{"p50", at_path(step, {"p50"})}}}};
  if (all.is_null()) {
    all = summary;
    all["processes"] = Json::array({process});
    return;
  }
  for (auto& [way, before] : all["step_ns"].items()) {
    std::vector<double> samples;
    for (const Json* const document : {&std::as_const(before), &at_path(summary, {"step_ns", way.c_str()})})
      for (const Json& sample : at_path(*document, {"samples_ns"})) samples.push_back(sample.get<double>());
    before = step_json(samples);
  }
  for (auto& [name, list] : all["overlap"]["samples"].items())
    for (const Json& sample : at_path(summary, {"overlap", "samples", name.c_str()})) list.push_back(sample);
  all["processes"].push_back(process);
}

void check_overlap(const DeviceInfo& info, const OverlapConfig& config, Ranks ranks) {
  if (!info.runs())
    reject(fmt::format("run.device {}: it runs nothing, so there is no timeline", info.name),
           "Use a GPU, cpu or sim; `weir run --device null` shows the cost of submitting.");
  config.trace_schedule();
  const Network network = config.network();
  if (network.absent_rank >= ranks.count)
    reject(fmt::format("network.absent_rank {}: there {} {} rank{}", network.absent_rank,
                       ranks.count == 1 ? "is" : "are", ranks.count, ranks.count == 1 ? "" : "s"),
           "Ranks count from 0.");
  if (!network.is_plain() && info.is_virtual)
    reject(fmt::format("network: '{}' lives in virtual time and has a network of its own", info.name),
           "Leave network.* out, or use another device.");
  const std::uint64_t needed = checked_build(info, config, ranks).step.size_bytes(Place::device);
  const auto sharing = static_cast<std::uint64_t>(info.is_gpu ? 1 : ranks.count);
  if (info.memory_bytes.value && needed * sharing > *info.memory_bytes.value)
    reject(fmt::format("training.batch: the step needs {} of memory{}, '{}' has {}", format_bytes(needed),
                       sharing > 1 ? " on each of this host's ranks" : "", info.name,
                       format_bytes(*info.memory_bytes.value)),
           "Use a smaller training.batch, model.* or run.scale, or more ranks.");
}

OverlapRun run_overlap(Device& device, const OverlapConfig& given, Communicator& ranks, const RunContext& context,
                       const RunControl& control) {
  OverlapConfig config = given;
  if (config.shards_by_host()) find_hosts(config, ranks);
  check_overlap(device.info(), config, ranks.ranks());
  OverlapRunner measurement(device, config, ranks, control);
  const Step& step = measurement.built().step;
  const bool computes = measurement.info().computes;
  const Step compute = only(step, [&](CommandId id) { return !is_collective(step, id); });
  const Step communication = only(step, [&](CommandId id) { return is_collective(step, id); });
  const Variant overlapped{"overlapped", step, measurement.built().placement};
  const Variant serial{"serial", step, place(step, "serial")};
  const Variant alone{"compute alone", compute, place(compute, "natural")};
  const Variant talk{"communication alone", communication, place(communication, "natural")};

  RankOverlap own;
  const RankClockOffset clock = ranks.clock_offset();
  own.rank = ranks.ranks().rank;
  own.host = ranks.host();
  own.device = measurement.info().name;
  own.clock = clock;
  const auto is_stopped = [&] { return control.agree_to_stop(); };
  Timeline timeline;
  {
    Training training = measurement.train(overlapped, computes && config.value("run.check") == "1");
    own.overlapped.latency_ns = training.pass.latency_ns;
    own.overlapped.submit_ns = training.pass.submit_ns;
    own.overlapped.losses = std::move(training.losses);
    own.collectives = training.collectives;
    own.check = training.check;
    if (!computes) {
      own.check.reason = fmt::format("device '{}' computes nothing", own.device);
    } else if (config.value("run.check") != "1") {
      own.check.reason = "run.check is off";
    }
    own.memory = training.pass.memory;
    own.is_interrupted = training.pass.is_interrupted;
  }
  if (!is_stopped()) {
    Training training = measurement.train(serial, false);
    own.serial.latency_ns = training.pass.latency_ns;
    own.serial.submit_ns = training.pass.submit_ns;
    own.serial.losses = std::move(training.losses);
  }
  if (!is_stopped()) {
    TracedPass pass = measurement.trace(overlapped, &own.traced_losses);
    own.times = times_of(pass.timeline);
    timeline = std::move(pass.timeline);
    // Durations of all passes are compared, so all must be measured the same way.
    if (measurement.info().is_gpu && !timeline.has_exact_gaps) measurement.trace_by_events();
  }
  if (!is_stopped()) own.alone_times = times_of(measurement.trace(alone, nullptr).timeline);
  if (!is_stopped()) own.talk_times = times_of(measurement.trace(talk, nullptr).timeline);
  if (!is_stopped()) own.serial_times = times_of(measurement.trace(serial, nullptr).timeline);
  own.is_interrupted = own.is_interrupted || is_stopped();

  std::vector<Json> members;
  for (const std::string& text : ranks.gather(to_json(own).dump())) members.push_back(Json::parse(text));
  OverlapRun run;
  run.is_interrupted = own.is_interrupted;
  std::vector<Timeline> timelines = gather_timelines(ranks, timeline, members);
  if (members.empty()) return run;
  summarise_overlap(run, members, std::move(timelines), measurement.built(), measurement.info(), config, ranks,
                    context);
  return run;
}

}  // namespace weir
