// weir overlap sweep: GEMM size x collective x message size x variables: each alone, and both at once.
#include "lab/overlap/overlap_sweep.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/console.h"
#include "base/error.h"
#include "base/options.h"
#include "base/units.h"
#include "cli/default_output.h"
#include "cli/document_output.h"
#include "cli/export_flags.h"
#include "cli/flag_values.h"
#include "cli/hang.h"
#include "cli/list.h"
#include "cli/overlap_flags.h"
#include "cli/process.h"
#include "cli/process_flags.h"
#include "cli/ranks.h"
#include "cli/run_flags.h"
#include "device/rank/alone.h"
#include "report/text/documents.h"
#include "run/passes.h"

namespace weir::cli {
namespace {

constexpr CollectiveOp kCollectives[] = {CollectiveOp::all_reduce, CollectiveOp::all_gather,
                                         CollectiveOp::reduce_scatter, CollectiveOp::all_to_all, CollectiveOp::shift};

struct OverlapSweepFlags {
  std::string gemm, collectives = "all_reduce,all_gather,reduce_scatter", bytes;
  std::string device = "auto", precision, iterations = "20", warmup = "3", seed = "1", ranks, hang_timeout;
  VariableFlags variables;
  DocumentFile document;
  bool skips_check = false, resumes = false, is_quiet = false, is_forced = false;

  void add_to(CommandSyntax syntax) {
    syntax.add("--gemm N", gemm,
               "rows and columns: 512,1024 or 512..8192:x2 (default: 2048,8192 on a GPU, else 128,512)");
    syntax.add("--collective NAME", collectives,
               "one or several: all_reduce, all_gather, reduce_scatter, all_to_all, shift");
    syntax.add("--bytes SIZE", bytes,
               "message sizes as nccl-tests count them: 64K,1M,16M (default: 1M,16M,256M on a GPU, else 64K,1M)");
    variables.add_to(syntax);
    syntax.add("--ranks N", ranks,
               "start this many processes under mpirun (default: as the launcher did, else one per GPU)");
    syntax.add("--device NAME", device, "auto, cpu, cuda:0, hip:0, opencl:0, sim:h200 (auto: the first GPU, else cpu)");
    syntax.add("--precision NAME", precision, "fp32, tf32, fp16, bf16, fp8_e4m3 or fp8_e5m2 (default: fp32)");
    syntax.add("--iterations N", iterations, "measured iterations of each part of a point");
    syntax.add("--warmup N", warmup, "iterations before measuring");
    syntax.add("--seed N", seed, "seed of all data");
    syntax.add("--hang-timeout DURATION", hang_timeout,
               "after this long without any progress, say where the run stands and end: 60s (default: never)");
    syntax.add("--no-check", skips_check, "do not compare the output with the CPU reference");
    document.add_to(syntax, "file (default: results/overlap-sweep-DEVICE.json)");
    syntax.add("--resume", resumes, "skip points already measured");
    syntax.add("--quiet,-q", is_quiet, "print nothing but errors");
    syntax.add("--force,-f", is_forced, "replace existing output files");
  }
};

CollectiveOp collective_named(const std::string& name) {
  std::vector<std::string> names;
  for (const CollectiveOp op : kCollectives) {
    if (name == name_of(op)) return op;
    names.emplace_back(name_of(op));
  }
  reject(fmt::format("--collective {}: there is no such collective", name), suggestion(name, names));
}

OverlapSweepRequest request_of(const OverlapSweepFlags& flags, const DeviceInfo& info) {
  RunFlags run;
  run.iterations = flags.iterations;
  run.warmup = flags.warmup;
  run.seed = flags.seed;
  run.precision = flags.precision;
  run.hang_timeout = flags.hang_timeout;
  run.skips_check = flags.skips_check;
  OverlapSweepRequest request;
  request.run = run.request();
  if (!request.run.precision) request.run.precision = Precision::fp32;
  for (const auto& [flag, count] :
       {std::pair("--iterations", request.run.iterations), {"--warmup", request.run.warmup}})
    if (count > kMaxTracedSteps)
      reject(fmt::format("{} {}: all of them are traced", flag, count),
             fmt::format("Use at most {}.", kMaxTracedSteps));
  const std::string gemm = flags.gemm.empty() ? (info.is_gpu ? "2048,8192" : "128,512") : flags.gemm;
  for (const int size : parse_counts("--gemm", gemm, 1, 65536)) request.gemm_sizes.push_back(size);
  for (const std::string& name : parse_names("--collective", flags.collectives)) {
    const CollectiveOp op = collective_named(name);
    if (std::find(request.collectives.begin(), request.collectives.end(), op) != request.collectives.end())
      reject(fmt::format("--collective {}: {} is listed twice", flags.collectives, name), "List each once.");
    request.collectives.push_back(op);
  }
  const std::string bytes = flags.bytes.empty() ? (info.is_gpu ? "1M,16M,256M" : "64K,1M") : flags.bytes;
  for (const std::string& text : parse_names("--bytes", bytes)) {
    const std::uint64_t size = size_of("--bytes", text, 1024, std::uint64_t{1} << 40);
    if (std::find(request.message_bytes.begin(), request.message_bytes.end(), size) != request.message_bytes.end())
      reject(fmt::format("--bytes {}: {} is listed twice", bytes, text), "List each once.");
    request.message_bytes.push_back(size);
  }
  request.variables = flags.variables.axes();
  request.resumes = flags.resumes;
  request.overwrites = flags.is_forced;
  return request;
}

// Rejects a point that this device or these ranks cannot run, before any rank is started.
void check_points(const DeviceInfo& info, const OverlapSweepRequest& request, int ranks) {
  if (!info.runs())
    reject(fmt::format("--device {}: it runs nothing, so there are no times", info.name), "Use a GPU, cpu or sim.");
  for (const OverlapSweepPoint& point : points_of(request)) {
    const std::uint64_t element = size_of(storage_of(*request.run.precision));
    const auto size = static_cast<std::uint64_t>(point.gemm_size);
    const std::uint64_t needed = 3 * size * size * element + 2 * point.message_bytes;
    const auto sharing = static_cast<std::uint64_t>(info.is_gpu ? 1 : ranks);
    if (info.memory_bytes.value && needed > *info.memory_bytes.value / sharing)
      reject(fmt::format("{}: needs {} of memory{}, '{}' has {}", point.words(), format_bytes(needed),
                         sharing > 1 ? " on each of this host's ranks" : "", info.name,
                         format_bytes(*info.memory_bytes.value)),
             "Use smaller values of --gemm and --bytes.");
    RunRequest run = request.run;
    run.loaded = std::make_shared<const Workload>(overlap_workload(point));
    run.workload = run.loaded->name;
    run.streams = 2;
    check_request(info, run, {0, ranks, true});
  }
}

std::filesystem::path output_of(const OverlapSweepFlags& flags, const DeviceInfo& info) {
  if (const std::string path = flags.document.path(); !path.empty()) return path;
  if (flags.document.output == "-") return {};
  if (is_first_rank()) make_folders("results");
  std::string name = info.name;
  std::replace(name.begin(), name.end(), ':', '-');
  return default_output(fmt::format("results/overlap-sweep-{}", name), ".json",
                        earlier_output(flags.is_forced, flags.resumes));
}

// This command for one point, in a process that has the point's variables.
ChildRequest child_of(const OverlapSweepFlags& flags, const OverlapSweepPoint& point, const std::string& device,
                      int ranks) {
  ChildRequest child;
  child.limit_ns = kNoChildLimit;
  child.arguments = {"overlap",      "sweep",
                     "--gemm",       std::to_string(point.gemm_size),
                     "--collective", std::string(name_of(point.collective)),
                     "--bytes",      fmt::format("{}K", static_cast<double>(point.message_bytes) / 1024),
                     "--ranks",      std::to_string(ranks),
                     "--device",     device,
                     "--iterations", flags.iterations,
                     "--warmup",     flags.warmup,
                     "--seed",       flags.seed};
  if (!flags.precision.empty()) child.arguments.insert(child.arguments.end(), {"--precision", flags.precision});
  if (!flags.hang_timeout.empty())
    child.arguments.insert(child.arguments.end(), {"--hang-timeout", flags.hang_timeout});
  if (flags.skips_check) child.arguments.emplace_back("--no-check");
  apply(point.variables, child);
  return child;
}

// The point of a child's document; what it failed with where there is none. Null where it was interrupted.
Json point_of(const ChildOutcome& outcome, const OverlapSweepPoint& point) {
  if (outcome.end == ChildEnd::interrupted) return nullptr;
  const Json& points = at_path(outcome.document, {"points"});
  Json entry = points.is_array() && !points.empty() ? points[0] : Json::object();
  if (entry.empty()) {
    if (outcome.code == static_cast<int>(Fault::input)) reject(outcome.message, outcome.hint);
    entry = {{"gemm_size", point.gemm_size},
             {"collective", name_of(point.collective)},
             {"message_bytes", point.message_bytes},
             {"status", "failed"},
             {"failure", outcome.message}};
  }
  entry["set_variables"] = to_json(point.variables);
  const Json& environment = at_path(outcome.document, {"environment"});  // another than this process's
  if (environment.is_object()) entry["environment"] = environment;
  return entry;
}

// Prints the document, and what follows from it.
int finish(const OverlapSweepFlags& flags, const Json& document, const std::filesystem::path& output) {
  if (flags.document.prints_json()) {
    write_json(to_text(document));
  } else if (!flags.is_quiet) {
    print_out("{}", report_text(overlap_points_report(document)));
    print_out("\nWritten to {}\n", output.string());
    if (document["status"] != "complete") print_out("Interrupted. The same command with --resume runs the rest.\n");
  }
  if (document["status"] != "complete") return kExitInterrupted;
  for (const Json& point : document["points"])
    if (at_path(point, {"failure"}).is_string())
      fail(fmt::format("a point failed: {}", point["failure"].get<std::string>()),
           "With --resume only the failed points run again.");
  return 0;
}

void show_progress(OverlapSweepControl& sweep, ProgressLine& line) {
  sweep.on_begin = [&line](const OverlapSweepPoint& point, std::size_t index, std::size_t total) {
    line.show(point.words(), static_cast<int>(index), static_cast<int>(total));
  };
}

// Each point in a process of its own, which starts its own ranks.
int sweep_variables(const OverlapSweepFlags& flags, OverlapSweepRequest request, const DeviceInfo& info, int ranks) {
  const std::string device = ranks == 1 ? child_device(info, flags.device) : flags.device;
  ProgressLine line(flags.is_quiet);
  OverlapSweepControl sweep;
  sweep.ranks = ranks;
  sweep.is_stopped = [&stop = catch_interrupts()] { return stop.load(); };
  sweep.measure = [&](const OverlapSweepPoint& point) {
    return point_of(run_child(child_of(flags, point, device, ranks), catch_interrupts()), point);
  };
  show_progress(sweep, line);
  const Json document = run_overlap_sweep(info, request, run_context(), sweep);
  line.clear();
  return finish(flags, document, request.output);
}

int execute_overlap_sweep(const OverlapSweepFlags& flags) {
  const int count = default_rank_count(flags.ranks, flags.device);
  AloneCommunicator alone;
  const DeviceOptions options = device_options("", {}, &alone);
  // Closed again before ranks or other processes are started, so that these have the device to themselves.
  std::optional<DeviceInfo> info;
  OverlapSweepRequest request;
  if (job_ranks().count == 1) {
    info = open_device(flags.device, options)->info();
    request = request_of(flags, *info);
    check_points(*info, request, count);
    request.output = output_of(flags, *info);
    if (!request.variables.empty()) return sweep_variables(flags, std::move(request), *info, count);
    if (count > 1) return start_ranks(count);
  }
  Communicator* const job = join_ranks();
  Communicator& ranks = job != nullptr ? *job : static_cast<Communicator&>(alone);
  auto device = open_device(flags.device, device_options("", {}, &ranks));
  info = device->info();
  request = request_of(flags, *info);
  if (job != nullptr) check_points(*info, request, count);
  request.output = output_of(flags, *info);
  watch_ranks();
  ProgressLine line(flags.is_quiet || !is_first_rank());
  RunControl control;
  control.stop = &catch_interrupts();
  control.communicator = &ranks;
  watch_hangs(control, flags.hang_timeout);
  OverlapSweepControl sweep;
  sweep.ranks = count;
  sweep.is_first_rank = is_first_rank();
  sweep.is_stopped = [&] { return control.agree_to_stop(); };
  sweep.measure = [&](const OverlapSweepPoint& point) {
    return measure_overlap_point(*device, request, point, control);
  };
  if (job != nullptr) sweep.broadcast = [&](std::string text) { return broadcast_text(ranks, std::move(text)); };
  show_progress(sweep, line);
  const Json document = run_overlap_sweep(*info, request, run_context(), sweep);
  line.clear();
  device.reset();
  leave_ranks();
  return is_first_rank() ? finish(flags, document, request.output) : 0;
}

}  // namespace

CliCommand overlap_sweep() {
  return command("sweep", "GEMM size x collective x message size: bandwidths, and what each costs the other",
                 execute_overlap_sweep);
}

}  // namespace weir::cli
