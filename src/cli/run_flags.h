// The flags that run and sweep share, and the requests that follow from them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "run/children.h"
#include "run/runner.h"

namespace weir::cli {

// As typed. Numbers are kept as text, so that messages can show the flag and the word.
struct RunFlags {
  std::string device = "auto";
  std::string iterations = "100";
  std::string warmup = "10";
  std::string sync_mode = "per_iteration";
  std::string placement = "natural";
  std::string scale;
  std::string precision;
  std::vector<std::string> params;
  std::string seed = "1";
  std::string hardware_queues;
  std::string compute_units;
  std::vector<std::string> sim;
  std::string ranks;
  std::string hang_timeout;
  bool skips_check = false;
  bool skips_trace = false;
  bool is_quiet = false;
  bool is_forced = false;

  void add_to(CommandSyntax syntax);
  // Everything except workload, streams and submit. Rejects bad values, naming the flag.
  RunRequest request() const;
  // `communicator` is set where there are other ranks: those on one host share its cores.
  std::unique_ptr<Device> open(Communicator* communicator = nullptr) const;
  // What the device is, for a process that leaves running to others: its children then have the device to themselves.
  DeviceInfo info(int compute_units) const;
  // The same with this many compute units for each stream, whatever the flag says; 0: all of them.
  std::unique_ptr<Device> open_confined(int compute_units, Communicator* communicator = nullptr) const;
};

// The workload: a built-in one by name, or one from a file.
struct WorkloadFlags {
  std::string name, file;

  void add_to(CommandSyntax syntax, const std::string& help = "name, as `weir list` shows it");
  // Loads the file if one is given. Rejects a name together with a file, and neither.
  void choose(RunRequest& request) const;
};

// `weir run` as arguments for a child process. Flags with an empty value are left out,
// so that the child uses its default.
using FlagValues = std::vector<std::pair<const char*, std::string>>;
std::vector<std::string> run_words(const WorkloadFlags& workload, const FlagValues& flags, bool skips_check,
                                   bool skips_trace = true);
// The same run in a child process, on this many streams (empty: the default) with this way of submitting.
ChildRequest child_run(const RunFlags& flags, const WorkloadFlags& workload, const DeviceInfo& info,
                       const std::string& streams, const std::string& submit, int compute_units, bool skips_trace);

// The value of --streams where a command takes one count; `hint` is for several.
int one_stream_count(const std::string& text, const Workload& workload, const std::string& hint);

// The value of --compute-units: 0 where it is not given. Rejects several counts.
int one_unit_count(const std::string& text);
inline constexpr int kMaxComputeUnits = 100'000;

// Device options from the flags and the environment, including what the driver read at its start.
DeviceOptions device_options(const std::string& hardware_queues, const std::vector<std::string>& sim,
                             Communicator* communicator = nullptr);

}  // namespace weir::cli
