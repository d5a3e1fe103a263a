// Runs one workload on one device and makes a result of it. Knows every layer below; prints nothing.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/device.h"
#include "device/rank/communicator.h"
#include "measure/result.h"
#include "step/workload/workload.h"

namespace weir {

enum class SyncMode : std::uint8_t {
  per_iteration,  // the host waits after each iteration; latency by the host's clock
  end_only,       // iterations are pipelined; latency by the device's clock
  none,           // not even warm-up is waited for; throughput only
};
std::string_view name_of(SyncMode mode);
SyncMode sync_mode_named(std::string_view name);  // rejects by the name of --sync-mode

// What to run. Strings are as the user typed them; run_workload() rejects what does not fit.
struct RunRequest {
  std::string workload;                    // a name that workloads() knows, or that of `loaded`
  std::shared_ptr<const Workload> loaded;  // where it was read from a file
  int streams = 0;                         // 0: the workload's recommended count
  int iterations = 100;
  int warmup = 10;
  SyncMode sync = SyncMode::per_iteration;
  std::string submit = "inline";
  std::string placement = "natural";
  std::string scale;      // empty: full on a GPU, small elsewhere
  std::string precision;  // empty: the workload's
  std::vector<std::pair<std::string, std::string>> params;
  std::uint64_t seed = 1;
  bool checks_output = true;
  bool traces = true;  // a second, traced pass for concurrency, fairness, convoy and queue switch
};

// What a caller may want to see and steer while it runs.
struct RunControl {
  const std::atomic<bool>* stop = nullptr;  // set: the current iteration is finished, then what there is is returned
  std::function<void(std::string_view phase, int done, int total)> progress;
  Communicator* communicator = nullptr;  // where there are other ranks
  // Called after every iteration that is waited for, warm-up too, outside of what is measured.
  std::function<void(Session&)> after_iteration;
  // Commands are outstanding and nothing has happened for so long: the report (run/hang.h) is handed over, once for
  // each session, by a thread of its own while all others may be stuck. 0: nobody watches.
  std::int64_t hang_timeout_ns = 0;
  bool follows_commands = true;  // then: GPUs note every command's end, which costs each a write; else reports say less
  std::function<void(const std::string& report)> on_hang;
  bool wants_progress() const { return hang_timeout_ns > 0 && follows_commands; }
  bool has_ranks() const { return communicator != nullptr && communicator->ranks().count > 1; }
  // The same answer on all ranks, which call it together while no collective is in flight; a barrier as well.
  bool agree_to_stop() const { return has_ranks() ? communicator->any(is_stopped()) : is_stopped(); }
  bool is_stopped() const { return stop != nullptr && stop->load(std::memory_order_relaxed); }
};

// Facts that every result of a session shares; collected once by the caller.
struct RunContext {
  std::vector<std::string> command_line;
  Json environment = Json::object();
};

// The workload that a request means. Rejects an unknown name with a suggestion.
const Workload& workload_of(const RunRequest& request);

// A request with everything decided that can be decided without running it.
struct BuiltRun {
  int streams = 0;
  Scale scale = Scale::small;
  Params params;
  Step step;
  Placement placement;
};
// Rejects what the workload or the device cannot do.
BuiltRun build_run(const DeviceInfo& info, const RunRequest& request, Ranks ranks = {});
// Rejects what run_workload() would reject before it starts; `ranks` as there will be.
void check_request(const DeviceInfo& info, const RunRequest& request, Ranks ranks);

// Throws for bad requests; a run that fails later (out of memory, device error, wrong output) comes back with status
// "failed". With several ranks all call it, rank 0 returns the result of all, and whatever fails but the output throws:
// the other ranks cannot go on without this one.
Result run_workload(Device& device, const RunRequest& request, const RunContext& context, const RunControl& control);

Json to_json(const DeviceInfo& info);

}  // namespace weir
