#include "lab/overlap/overlap_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "base/clock.h"
#include "base/error.h"
#include "base/named_values.h"
#include "base/schemas.h"
#include "base/units.h"
#include "measure/recorded_variables.h"
#include "run/check.h"
#include "run/passes.h"
#include "run/sweep.h"
#include "weir_build.h"

namespace weir {
namespace {

constexpr std::uint8_t kGemm = 0, kCollective = 1;  // roles, and natural streams

// Times of one way to run a point, an entry per iteration; 0 for a side that did not run, or whose times were lost.
struct Times {
  std::vector<std::uint32_t> iterations;
  std::vector<double> gemm_ns, collective_ns, span_ns;
};

// From each rank's own clock, so no clocks are compared; all ranks begin an iteration together.
Times command_times(const Timeline& timeline) {
  struct Iteration {
    std::array<double, 2> ns{};
    std::int64_t first = INT64_MAX, last = INT64_MIN;
  };
  std::map<std::uint32_t, Iteration> iterations;
  for (const Span& span : timeline.spans) {
    if (span.started_ns == kNoTime || span.ended_ns == kNoTime || span.role > kCollective) continue;
    Iteration& found = iterations[span.iteration];
    found.ns[span.role] += static_cast<double>(span.ended_ns - span.started_ns);
    found.first = std::min(found.first, span.started_ns);
    found.last = std::max(found.last, span.ended_ns);
  }
  Times times;
  for (const auto& [number, found] : iterations) {
    times.iterations.push_back(number);
    times.gemm_ns.push_back(found.ns[kGemm]);
    times.collective_ns.push_back(found.ns[kCollective]);
    times.span_ns.push_back(static_cast<double>(found.last - found.first));
  }
  return times;
}

Json times_json(const Times& times) {
  return WEIR_NAMED(times.iterations, times.gemm_ns, times.collective_ns, times.span_ns);
}

// The slowest rank of each iteration whose times all ranks have.
std::vector<double> slowest(const std::vector<Json>& members, const char* way, const char* list) {
  struct Found {
    double longest = 0;
    std::size_t ranks = 0;
  };
  std::map<std::uint32_t, Found> iterations;
  for (const Json& member : members) {
    const auto numbers = member[way]["iterations"].get<std::vector<std::uint32_t>>();
    const auto own = member[way][list].get<std::vector<double>>();
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (!(own[i] > 0)) continue;
      Found& found = iterations[numbers[i]];
      found.longest = std::max(found.longest, own[i]);
      ++found.ranks;
    }
  }
  std::vector<double> times;
  for (const auto& [number, found] : iterations)
    if (found.ranks == members.size()) times.push_back(found.longest);
  return times;
}

std::optional<double> p50_of(const Json& summary) {
  const Json& value = at_path(summary, {"p50"});
  return value.is_number() && value.get<double>() > 0 ? std::optional(value.get<double>()) : std::nullopt;
}

Json summary_json(const std::vector<double>& samples) {
  const auto summary = summarise(samples);
  return summary ? WEIR_NAMED(summary->p50, summary->p95, summary->min, summary->max, summary->count) : Json();
}

std::optional<double> quotient(std::optional<double> above, std::optional<double> below) {
  return above && below ? std::optional(*above / *below) : std::nullopt;
}

// The bytes that nccl-tests call the message, after rounding to whole elements on every rank.
std::uint64_t rounded_bytes(const OverlapSweepPoint& point, std::uint64_t element, int ranks) {
  const bool is_divided = point.collective != CollectiveOp::all_reduce && point.collective != CollectiveOp::shift;
  const std::uint64_t unit = element * (is_divided ? static_cast<std::uint64_t>(ranks) : 1);
  return point.message_bytes / unit * unit;
}

Step build_point(const Params& params, const OverlapSweepPoint& point) {
  const ElementType type = storage_of(params.precision);
  const std::uint64_t element = size_of(type);
  const auto ranks = static_cast<std::uint64_t>(params.ranks.count);
  const std::uint64_t all = rounded_bytes(point, element, params.ranks.count) / element;
  if (all == 0)
    reject(fmt::format("--bytes {}: less than an element on each of {} ranks", point.message_bytes, ranks),
           fmt::format("Use at least {} bytes.", element * ranks));
  StepBuilder step(params.seed, params.ranks);
  const std::int64_t n = point.gemm_size;
  const auto elements = static_cast<std::uint64_t>(n) * static_cast<std::uint64_t>(n);
  const BufferId a = step.uniform(type, elements), b = step.uniform(type, elements), c = step.output(type, elements);
  step.launch("gemm", {.stream = kGemm, .role = kGemm},
              {.type = type, .precision = params.precision, .dims = {n, n, n, 0}, .scalars = {1, 0}}, {{a}, {b}, {c}});
  const std::uint64_t in = point.collective == CollectiveOp::all_gather ? all / ranks : all;
  const std::uint64_t out = point.collective == CollectiveOp::reduce_scatter ? all / ranks : all;
  const BufferId from = step.sharded(type, in), to = step.output(type, out);
  step.collective(point.collective, {.stream = kCollective, .role = kCollective}, {from}, {to});
  const double size = static_cast<double>(n);
  step.work(2 * size * size * size * 1e-12);
  return std::move(step).seal(2);
}

// A part of a point that is measured alone, or both at once.
struct Way {
  const char* name;
  const Step& step;
  Placement placement;
};

// Runs the ways of a point on this rank.
class PointRunner {
 public:
  PointRunner(Device& device, const RunRequest& request, Ranks ranks, const RunControl& control)
      : device_(device),
        info_(device.info()),
        request_(request),
        control_(control),
        built_(build_run(info_, request_, ranks)) {}

  Json measure() {
    const Step& step = built_.step;
    const Step gemm = only_role(step, kGemm), collective = only_role(step, kCollective);
    Json own = Json::object();
    const std::vector<double> latency_ns = run_checked(own);
    std::vector<std::uint32_t> iterations(latency_ns.size());
    std::iota(iterations.begin(), iterations.end(), 0);
    own["untraced"] = WEIR_NAMED(iterations, latency_ns);
    TraceSchedule schedule(request_.iterations);
    schedule.warmup = std::max(1, request_.warmup);
    const auto trace = [&](const char* name, const Step& part) {
      if (control_.agree_to_stop()) {
        own[name] = times_json(Times{});
        return;
      }
      if (control_.progress) control_.progress(name, 0, request_.iterations);
      const Placement placement = place(part, "natural");
      const TracedPass pass = run_traced_pass(device_, part, placement, built_.submit, schedule, control_,
                                              workload_of(request_).roles, is_by_events_);
      // Times of all ways are compared, so all must be measured the same way.
      if (info_.is_gpu && !pass.timeline.has_exact_gaps) is_by_events_ = true;
      own[name] = times_json(command_times(pass.timeline));
    };
    trace("both", step);
    trace("gemm", gemm);
    trace("collective", collective);
    own["is_interrupted"] = control_.agree_to_stop();
    return own;
  }

 private:
  // Untraced, with the output compared with the reference; latencies by the host's clock.
  std::vector<double> run_checked(Json& own) {
    SessionOptions options = built_.submit.session_options();
    options.marks_iterations = false;
    options.follows_progress |= control_.wants_progress();
    const auto session = device_.prepare(built_.step, built_.placement, options);
    const auto submitter = make_submitter(built_.submit, built_.step, built_.placement, *session);
    SessionWatch watch(control_, info_, *session, built_.step, built_.placement, workload_of(request_).roles);
    const TimedPass pass = run_timed_pass(device_, *session, *submitter, request_, control_, &watch);
    if (pass.failure != nullptr) std::rethrow_exception(pass.failure);
    own["transport"] = session->collectives();
    CheckReport check;
    if (!info_.computes)
      check.reason = fmt::format("device '{}' computes nothing", info_.name);
    else if (!request_.checks_output)
      check.reason = "--no-check";
    else
      check = check_run(built_.step, *session, *submitter, control_.communicator, watch);
    own["check"] = check.to_json();
    return pass.latency_ns;
  }

  Device& device_;
  DeviceInfo info_;
  const RunRequest& request_;
  const RunControl& control_;
  BuiltRun built_;
  bool is_by_events_ = false;
};

Json facts_of(const OverlapSweepPoint& point) {
  Json json = WEIR_NAMED(point.gemm_size, point.collective, point.message_bytes);
  json["set_variables"] = to_json(point.variables);
  return json;
}

void put_times(Json& entry, const std::vector<Json>& members) {
  entry["compute_ns"] = {{"alone", summary_json(slowest(members, "gemm", "gemm_ns"))},
                         {"beside", summary_json(slowest(members, "both", "gemm_ns"))}};
  entry["communication_ns"] = {{"alone", summary_json(slowest(members, "collective", "collective_ns"))},
                               {"beside", summary_json(slowest(members, "both", "collective_ns"))}};
  entry["both_ns"] = summary_json(slowest(members, "both", "span_ns"));
  entry["latency_ns"] = summary_json(slowest(members, "untraced", "latency_ns"));
}

// Everything that follows from the times.
void put_figures(Json& entry, const OverlapSweepPoint& point, std::uint64_t bytes, int ranks) {
  Json unavailable = Json::object();
  const auto put = [&](Json& into, const char* key, const std::string& path, std::optional<double> value,
                       const char* reason) {
    into[key] = number_or_null(value);
    if (!value) unavailable[path] = reason;
  };
  constexpr const char *kNoTimes = "no iteration was traced", *kNobody = "one rank sends nothing to another";
  const auto factor = bus_factor(point.collective, ranks);
  const double size = static_cast<double>(point.gemm_size);
  const double flop = 2 * size * size * size;
  for (const char* const key : {"compute_flop_per_s", "algorithm_bytes_per_s", "bus_bytes_per_s"})
    entry[key] = Json::object();
  for (const char* const way : {"alone", "beside"}) {
    const auto compute = p50_of(entry["compute_ns"][way]), talk = p50_of(entry["communication_ns"][way]);
    const auto rate = [&](double amount, std::optional<double> ns) {
      return ns ? std::optional(amount / *ns * 1e9) : std::nullopt;
    };
    const auto algorithm = rate(static_cast<double>(bytes), talk);
    put(entry["compute_flop_per_s"], way, fmt::format("compute_flop_per_s.{}", way), rate(flop, compute), kNoTimes);
    put(entry["algorithm_bytes_per_s"], way, fmt::format("algorithm_bytes_per_s.{}", way), algorithm, kNoTimes);
    put(entry["bus_bytes_per_s"], way, fmt::format("bus_bytes_per_s.{}", way),
        algorithm && factor ? std::optional(*algorithm * *factor) : std::nullopt, factor ? kNoTimes : kNobody);
  }
  const auto compute = p50_of(entry["compute_ns"]["alone"]), talk = p50_of(entry["communication_ns"]["alone"]);
  const auto both = p50_of(entry["both_ns"]);
  std::optional<double> efficiency;
  if (compute && talk && both) efficiency = (*compute + *talk - *both) / std::min(*compute, *talk);
  put(entry, "overlap_efficiency", "overlap_efficiency", efficiency, kNoTimes);
  put(entry, "compute_slowdown", "compute_slowdown", quotient(p50_of(entry["compute_ns"]["beside"]), compute),
      kNoTimes);
  put(entry, "communication_slowdown", "communication_slowdown",
      quotient(p50_of(entry["communication_ns"]["beside"]), talk), kNoTimes);
  entry["unavailable"] = std::move(unavailable);
}

Json failed_entry(const OverlapSweepPoint& point, const std::string& failure) {
  Json entry = facts_of(point);
  entry["status"] = "failed";
  entry["failure"] = failure;
  return entry;
}

bool is_same_point(const Json& entry, const OverlapSweepPoint& point) {
  const Json facts = facts_of(point);
  for (const auto& [name, value] : facts.items())
    if (at_path(entry, {name.c_str()}) != value) return false;
  return true;
}

// Launchers set these anew for each job; the device, its model and the ranks are compared anyway.
bool is_of_the_job(std::string_view name) {
  return name.starts_with("SLURM_") || name.starts_with("PMIX_") || name.ends_with("_VISIBLE_DEVICES");
}

// Rejects a file whose points were measured with other variables of the environment than those of now, because one
// environment stands for all points of a document.
void check_variables(const std::filesystem::path& file, const Json& now) {
  std::error_code status;
  if (!std::filesystem::exists(file, status)) return;
  const Json document = read_json(file);
  const Json& before = at_path(document, {"environment", "variables"});
  const Json& after = at_path(now, {"variables"});
  if (!before.is_object() || !after.is_object()) return;
  std::set<std::string> names;
  for (const Json* variables : {&before, &after})
    for (const auto& [name, value] : variables->items())
      if (!is_of_the_job(name) && value != kNotRecorded) names.insert(name);
  const auto words = [](const Json& variables, const std::string& name) {
    const Json& value = member(variables, name);
    return value.is_string() ? fmt::format("{}={}", name, value.get<std::string>()) : name + " unset";
  };
  for (const std::string& name : names)
    if (member(before, name) != member(after, name))
      reject_setting("resume", "",
                     fmt::format("{}: it was measured with {}, now it is {}", file.string(), words(before, name),
                                 words(after, name)),
                     "Set it as it was, or choose another --output; --env sweeps variables.");
}

bool is_complete_point(const Json& entry) {
  return entry.is_object() && at_path(entry, {"status"}) == "complete" && at_path(entry, {"compute_ns"}).is_object();
}

}  // namespace

std::string OverlapSweepPoint::words() const {
  std::string text = fmt::format("gemm {}, {} of {}", gemm_size, name_of(collective), format_bytes(message_bytes));
  return variables.empty() ? text : fmt::format("{}, {}", text, words_for(variables));
}

std::vector<OverlapSweepPoint> points_of(const OverlapSweepRequest& request) {
  const std::size_t each = request.gemm_sizes.size() * request.collectives.size() * request.message_bytes.size();
  if (each > kMaxVariedPoints)
    reject(fmt::format("overlap sweep: {} points", each), fmt::format("Choose at most {}.", kMaxVariedPoints));
  std::vector<OverlapSweepPoint> points;
  for (const VariableSetting& variables : variable_settings(request.variables, each))
    for (const std::int64_t size : request.gemm_sizes)
      for (const CollectiveOp op : request.collectives)
        for (const std::uint64_t bytes : request.message_bytes) points.push_back({size, op, bytes, variables});
  return points;
}

std::optional<double> bus_factor(CollectiveOp op, int ranks) {
  if (ranks < 2) return std::nullopt;
  const double share = static_cast<double>(ranks - 1) / ranks;
  return op == CollectiveOp::all_reduce ? 2 * share : op == CollectiveOp::shift ? 1 : share;
}

Workload overlap_workload(const OverlapSweepPoint& point) {
  return {.name = "overlap_sweep",
          .summary = "A GEMM and a collective beside it",
          .category = "distributed",
          .unit = "TFLOP/s",
          .streams = {2, 2, 2},
          .roles = {"gemm", "collective"},
          .build = [point](const Params& params, int) { return build_point(params, point); }};
}

Json measure_overlap_point(Device& device, const OverlapSweepRequest& request, const OverlapSweepPoint& point,
                           const RunControl& control) {
  Communicator& ranks = *control.communicator;
  const bool is_alone = ranks.ranks().count == 1;
  RunRequest run = request.run;
  run.loaded = std::make_shared<const Workload>(overlap_workload(point));
  run.workload = run.loaded->name;
  run.streams = 2;
  Json own;
  try {
    own = PointRunner(device, run, ranks.ranks(), control).measure();
  } catch (const Error& error) {
    // The others wait for this rank somewhere, and a mistake of the user is a message instead of a point.
    if (!is_alone || error.fault == Fault::input) throw;
    return failed_entry(point, error.what());
  }
  std::vector<Json> members;
  for (const std::string& text : ranks.gather(own.dump())) members.push_back(Json::parse(text));
  if (members.empty()) return own["is_interrupted"] == true ? Json{{"status", "interrupted"}} : Json();
  Json entry = facts_of(point);
  entry["status"] = "complete";
  entry["failure"] = nullptr;
  entry["ranks"] = members.size();
  entry["transport"] = members[0]["transport"];
  const std::uint64_t element = size_of(storage_of(precision_of(run)));
  const std::uint64_t bytes = rounded_bytes(point, element, ranks.ranks().count);
  entry["rounded_bytes"] = bytes;
  put_times(entry, members);
  put_figures(entry, point, bytes, ranks.ranks().count);
  entry["check"] = members[0]["check"];
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    if (members[rank]["check"]["status"] != "failed" || entry["failure"].is_string()) continue;
    entry["check"] = members[rank]["check"];
    entry["failure"] = fmt::format("the output is wrong on rank {}: {}", rank, members[rank]["check"]["reason"].dump());
  }
  if (entry["failure"].is_string()) entry["status"] = "failed";
  if (own["is_interrupted"] == true) entry["status"] = "interrupted";  // agreed: the other ranks return the same
  return entry;
}

Json run_overlap_sweep(const DeviceInfo& info, const OverlapSweepRequest& request, const RunContext& context,
                       const OverlapSweepControl& control) {
  const std::vector<OverlapSweepPoint> points = points_of(request);
  Json settings = WEIR_NAMED(named("device", info.name), info.model, named("ranks", control.ranks),
                             named("precision", name_of(request.run.precision.value_or(Precision::fp32))),
                             request.run.iterations, request.run.warmup, request.run.seed, request.run.checks_output);
  settings["own_processes"] = !request.variables.empty();
  Json kept = Json::array();
  // Only rank 0 reads and writes the file; the others need to know only which points are left.
  std::optional<SavedFile> file;
  if (control.is_first_rank && !request.output.empty()) {
    file.emplace(request.output, request.overwrites || request.resumes);
    if (request.resumes) {
      kept = points_to_keep(request.output,
                            {schemas::overlap_sweep, nullptr, "points", "not a file of `weir overlap sweep`"}, settings,
                            is_complete_point);
      if (!kept.empty()) check_variables(request.output, context.environment);
    }
  }
  if (control.broadcast) kept = Json::parse(control.broadcast(kept.dump()));
  Json document = Json::object();
  document["schema"] = schemas::overlap_sweep;
  document["status"] = "interrupted";
  document["created"] = wall_time();
  document["weir"] = {{"version", WEIR_VERSION}, {"commit", WEIR_COMMIT}};
  document["command_line"] = context.command_line;
  document["environment"] = context.environment;
  document["device"] = to_json(info);
  document["settings"] = settings;
  document["points"] = kept;  // also those that this call does not ask for
  const auto save = [&] {
    if (file) file->save(to_text(document));
  };
  bool is_interrupted = false;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (control.is_stopped()) {
      is_interrupted = true;
      break;
    }
    if (control.on_begin) control.on_begin(points[i], i, points.size());
    const auto same =
        std::find_if(kept.begin(), kept.end(), [&](const Json& entry) { return is_same_point(entry, points[i]); });
    if (same != kept.end()) {
      if (control.on_point) control.on_point(*same, true);
      continue;
    }
    Json entry = control.measure(points[i]);
    // Before anything that only rank 0 does, because all ranks must leave the loop together.
    is_interrupted = entry.is_object() ? entry["status"] == "interrupted" : control.is_first_rank;
    if (is_interrupted && entry.is_null()) break;
    if (!control.is_first_rank) {
      if (is_interrupted) break;
      continue;
    }
    document["points"].push_back(entry);
    if (control.on_point) control.on_point(entry, false);
    save();
    if (is_interrupted) break;
  }
  if (!is_interrupted) document["status"] = "complete";
  save();
  return document;
}

}  // namespace weir
