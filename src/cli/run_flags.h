// The flags that run, sweep and run-priority share, and what they make of them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "run/runner.h"

namespace weir::cli {

// As typed. Numbers are kept as text, so that messages can name the flag and show the word.
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
  // Everything but workload, streams and submit. Rejects by the name of the flag.
  RunRequest request() const;
  // `communicator` where there are other ranks: those of one host share its cores.
  std::unique_ptr<Device> open(Communicator* communicator = nullptr) const;
  // The same with this many compute units for each stream, whatever the flag says; 0: all of them.
  std::unique_ptr<Device> open_confined(int compute_units, Communicator* communicator = nullptr) const;
};

// Which workload: one of this program by name, or one from a file.
struct WorkloadFlags {
  std::string name, file;

  void add_to(CommandSyntax syntax);
  // Loads the file where there is one. Rejects both at once, and neither.
  void choose(RunRequest& request) const;
};

// `weir run` as words for a child process, always without the traced pass. Flags without a value are left out: the
// child takes its default.
using FlagValues = std::vector<std::pair<const char*, std::string>>;
std::vector<std::string> run_words(const WorkloadFlags& workload, const FlagValues& flags, bool skips_check);

// What --streams says where a command takes one count; `hint` where it says several.
int one_stream_count(const std::string& text, const Workload& workload, const std::string& hint);

// What --compute-units says: 0 where it is not given. Rejects several counts.
int one_unit_count(const std::string& text);
inline constexpr int kMostComputeUnits = 100'000;

// Opens a device and rejects what it cannot do of the options: those that ask for a part of it.
std::unique_ptr<Device> open_able(const std::string& name, const DeviceOptions& options);

// What the flags and the environment say to a device; what the driver read at its start is among it.
DeviceOptions device_options(const std::string& hardware_queues, const std::vector<std::string>& sim,
                             Communicator* communicator = nullptr);

}  // namespace weir::cli
