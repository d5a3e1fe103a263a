#include "cli/ranks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/console.h"
#include "base/json.h"
#include "base/options.h"
#include "cli/flag_values.h"
#include "cli/hang.h"
#include "cli/process.h"
#include "device/device.h"
#include "device/rank/mpi.h"
#include "device/rank/watch.h"
#include "run/children.h"
#include "run/launcher.h"
#include "run/watched_communicator.h"

namespace weir::cli {
namespace {

constexpr const char* kSrunAdvice =
    "Start them with the launcher of your MPI; under Slurm: srun --mpi=pmix (srun --mpi=list shows what there is).";

// Lives until leave_ranks(); otherwise never destroyed, because MPI must not be finalised after a failure.
WatchedCommunicator* joined = nullptr;
RankWatch* rank_watch = nullptr;
std::int64_t wait_limit_ns = 0;
std::function<void(const std::string&)> on_long_wait;
std::vector<RankProcess> neighbours;  // the other ranks of this host, once they are watched
std::optional<Ranks> part;            // from MPI, once it is known

std::optional<int> number_in(const char* variable) {
  const auto text = environment_variable(variable);
  if (!text) return std::nullopt;
  const auto number = parse_integer(*text);
  if (!number || *number < 0 || *number > INT32_MAX) return std::nullopt;
  return static_cast<int>(*number);
}

// Removes "--ranks 4" and "--ranks=4": inside the job, the job's size counts.
std::vector<std::string> without_ranks(const std::vector<std::string>& arguments) {
  std::vector<std::string> kept;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    if (arguments[i] == "--ranks") {
      ++i;
    } else if (!arguments[i].starts_with("--ranks=")) {
      kept.push_back(arguments[i]);
    }
  }
  return kept;
}

const MpiModule& module_or_reject() {
  const MpiFound found = find_mpi_module(own_binary());
  if (found.module == nullptr)
    reject(fmt::format("no ranks without MPI: {}", found.reason),
           "Install libopenmpi-dev and openmpi-bin and build again, or run one process.");
  return *found.module;
}

// From a launcher's variables; empty where none started this process.
std::optional<Ranks> launched_as() {
  // A batch script has SLURM_NTASKS but is one process; only steps started by srun have SLURM_STEP_NUM_TASKS.
  constexpr struct {
    const char* rank;
    const char* count;
  } kLaunchers[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                    {"PMI_RANK", "PMI_SIZE"},
                    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
                    {"PMIX_RANK", "SLURM_NTASKS"}};
  for (const auto& launcher : kLaunchers) {
    const auto rank = number_in(launcher.rank), count = number_in(launcher.count);
    if (rank && count && *count > *rank) return Ranks{*rank, *count};
  }
  return std::nullopt;
}

// Also one that started a single process: that is what the user wants then.
bool is_launched() { return part.has_value() || launched_as().has_value(); }

bool names_mpi_rank() { return number_in("OMPI_COMM_WORLD_RANK") || number_in("PMI_RANK") || number_in("PMIX_RANK"); }

// The GPUs that the ranks of a run on this device would take, one each.
std::size_t gpus_for(const std::string& device) {
  if (device.find(':') != std::string::npos) return 0;
  for (const DeviceType& type : device_types()) {
    if (device != "auto" && device != type.name) continue;
    const DeviceType::Found found = type.find();
    if (found.gpus > 0) return found.are_numbered ? found.gpus : 1;
    if (device != "auto") return 0;
  }
  return 0;
}

}  // namespace

Ranks job_ranks() { return part ? *part : launched_as().value_or(Ranks{}); }

bool is_first_rank() { return job_ranks().rank == 0; }

int rank_count(const std::string& flag) {
  const Ranks job = job_ranks();
  if (flag.empty()) return job.count;
  const std::int64_t count = whole_number("--ranks", flag, 1, kMaxRanks, "not a number of ranks");
  if (job.count > 1 && count != job.count)
    reject(fmt::format("--ranks {}: this job has {}", flag, job.count),
           "Leave --ranks out: under mpirun or srun the launcher decides.");
  return static_cast<int>(count);
}

int default_rank_count(const std::string& flag, const std::string& device, std::int64_t batch) {
  if (!flag.empty() || is_launched()) return rank_count(flag);
  const std::size_t gpus = gpus_for(device);
  if (gpus < 2) return 1;
  const auto use = [&](std::size_t count, const std::string& why) {
    static bool is_reported = false;
    if (count < gpus && !std::exchange(is_reported, true))
      print_err("weir: using {} of {} GPUs, because {}\n", count, gpus, why);
    return static_cast<int>(count);
  };
  // mpirun would spread the ranks over all nodes, and nothing is known of the others' GPUs.
  for (const char* const variable : {"SLURM_JOB_NUM_NODES", "SLURM_NNODES"})
    if (const int nodes = number_in(variable).value_or(1); nodes > 1)
      return use(1, fmt::format("this Slurm job has {} nodes: start weir with srun, or add --ranks", nodes));
  const MpiFound found = find_mpi_module(own_binary());
  if (found.module == nullptr) return use(1, "ranks need MPI: " + found.reason);
  if (!find_program("mpirun")) return use(1, "ranks need MPI: mpirun was not found");
  std::size_t count = std::min<std::size_t>(gpus, kMaxRanks);
  while (batch % static_cast<std::int64_t>(count) != 0) --count;
  return use(count, fmt::format("the batch of {} is shared evenly", batch));
}

bool must_start_ranks(const std::string& flag) { return rank_count(flag) > 1 && job_ranks().count == 1; }

int start_ranks(int count) {
  const MpiModule& module = module_or_reject();
  if (!find_program("mpirun"))
    reject(fmt::format("--ranks {}: mpirun was not found", count),
           "Install openmpi-bin, or start weir under your own launcher.");
  RankLaunch launch;
  launch.ranks = count;
  launch.is_open_mpi = module.library().starts_with("Open MPI");
  launch.command = without_ranks(own_arguments());
  launch.command.insert(launch.command.begin(), own_binary().string());
  // hwloc's OpenCL plugin would load drivers into mpirun that replace its signal handlers (Open MPI 4.1, hwloc 2.9,
  // PoCL 3.1). Remove this when mpirun no longer looks for such devices.
  const std::string components = environment_variable("HWLOC_COMPONENTS").value_or("");
  launch.variables = {{"HWLOC_COMPONENTS", components.empty() ? "-opencl" : "-opencl," + components}};
  if (::isatty(STDERR_FILENO) == 1) launch.variables.emplace_back(kTerminalVariable, "1");
  return launch_ranks(launch, count_interrupts());
}

bool has_mpi_launcher() { return names_mpi_rank() && find_mpi_module(own_binary()).module != nullptr; }

Communicator* join_ranks() {
  const Ranks job = job_ranks();
  if (job.count == 1) return nullptr;
  // Open MPI ends the process in MPI_Init where srun has no plugin for it, so this is reported before.
  if (!names_mpi_rank()) reject(fmt::format("srun started {} tasks without telling MPI", job.count), kSrunAdvice);
  catch_interrupts();  // SIGUSR1 may arrive at any moment
  joined = new WatchedCommunicator(module_or_reject().open());
  catch_interrupts();  // again: what MPI loads may have handlers of its own
  part = joined->ranks();
  if (part->count != job.count) {
    const int seen = part->count;
    part = job;  // only one of the tasks may print
    reject(fmt::format("the launcher started {} tasks, but MPI ({}) sees {}", job.count, joined->library(), seen),
           kSrunAdvice);
  }
  return joined;
}

void watch_ranks() {
  if (joined == nullptr) return;
  const Json own = {{"host", joined->host()}, {"pid", ::getpid()}};
  Json all = Json::array();
  for (const std::string& text : joined->gather(own.dump())) all.push_back(Json::parse(text));
  all = Json::parse(broadcast_text(*joined, all.dump()));
  std::vector<RankProcess> here;
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank]["host"] == own["host"]) here.push_back({static_cast<int>(rank), all[rank]["pid"].get<pid_t>()});
  neighbours = here;
  std::erase_if(neighbours, [](const RankProcess& each) { return each.pid == ::getpid(); });
  joined->watch(wait_limit_ns, neighbours, on_long_wait);
  rank_watch = new RankWatch(here, [own_rank = joined->ranks().rank](const RankProcess& dead, int lowest_alive) {
    if (is_ending_hung()) return;  // ends by itself, after its report
    // One of the remaining ranks prints. All wait a while, so that one that notices late does not take the printing
    // rank for the first that died.
    if (own_rank == lowest_alive) {
      print_err("weir: rank {} (pid {}) died; ending the run\n", dead.rank, dead.pid);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    end_at_once(static_cast<int>(Fault::run));
  });
}

void watch_waits(std::int64_t timeout_ns, std::function<void(const std::string&)> on_hang) {
  if (joined == nullptr) return;
  wait_limit_ns = timeout_ns;
  on_long_wait = std::move(on_hang);
  joined->watch(wait_limit_ns, neighbours, on_long_wait);
}

void leave_ranks() {
  if (joined == nullptr) return;
  // No process may end before every watch has stopped: MPI's own shutdown waits for all.
  joined->barrier();
  delete rank_watch;
  rank_watch = nullptr;
  joined->watch(0, {}, {});
  delete joined;
  joined = nullptr;
}

void end_ranks(const Error& error) {
  const Ranks job = job_ranks();
  if (joined == nullptr) {
    // Before MPI starts, all ranks find the same errors; one of them prints.
    if (job.count > 1 && job.rank > 0 && error.fault == Fault::input) std::exit(static_cast<int>(error.fault));
    return;
  }
  const int code = static_cast<int>(error.fault);
  // All ranks find a wrong argument: rank 0 reports it and ends the others (their launcher signals it) before they
  // repeat it. An error that only one rank found is reported a little later.
  const bool is_common = error.fault == Fault::input;
  if (is_common && job.rank > 0) {
    const std::atomic<bool>& is_ended = catch_interrupts();
    for (int i = 0; i < 150; ++i) {
      if (is_ended.load(std::memory_order_relaxed)) ::_exit(code);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  if (is_common && job.rank == 0) {
    print_err("weir: {}\n", in_terms_of_flags(error));
  } else {
    const std::string who = fmt::format("rank {} of {} ({})", job.rank, job.count, joined->host());
    const bool is_named = std::string_view(error.what()).starts_with(who);
    print_err("weir: {}{}\n", is_named ? "" : who + ": ", in_terms_of_flags(error));
  }
  if (!error.hint.empty()) print_err("      {}\n", error.hint);
  joined->abort(code);
}

std::string describe_mpi() {
  const MpiFound found = find_mpi_module(own_binary());
  if (found.module == nullptr) return "left out: " + found.reason;
  return fmt::format("yes, {}; mpirun {}", found.module->library(), find_program("mpirun") ? "found" : "not found");
}

}  // namespace weir::cli
