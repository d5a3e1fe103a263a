// Runs one workload on one device and returns a result. Knows every layer below; prints nothing.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/device.h"
#include "device/rank/communicator.h"
#include "measure/result.h"
#include "step/workload/workload.h"
#include "submit/placement.h"
#include "submit/submitter.h"

namespace weir {

enum class SyncMode : std::uint8_t {
  per_iteration,  // the host waits after each iteration; latency by the host's clock
  end_only,       // iterations are pipelined; device_ns instead of latency
  none,           // not even the warm-up is waited for; throughput only
};
std::string_view name_of(SyncMode mode);
SyncMode sync_mode_named(std::string_view name);  // rejects unknown names

// What to run. Values are valid in themselves; build_run() checks them against the workload and the device.
struct RunRequest {
  std::string workload;                    // a name in workloads(), or the name of `loaded`
  std::shared_ptr<const Workload> loaded;  // if it was read from a file
  int streams = 0;                         // 0: the workload's recommended count
  int iterations = 100;
  int warmup = 10;
  std::int64_t duration_ns = 0;  // instead of iterations: for this long (run/soak.h); only per_iteration
  SyncMode sync = SyncMode::per_iteration;
  SubmitChoice submit;
  const PlacementPolicy* placement = &placement_named("natural");  // one of placement_policies()
  std::optional<Scale> scale;                                      // nothing: full on a GPU, small elsewhere
  std::optional<Precision> precision;                              // nothing: the workload's
  std::vector<std::pair<std::string, std::string>> params;         // text, because only the workload knows their types
  std::uint64_t seed = 1;
  bool checks_output = true;
  bool traces = true;  // a second, traced pass for concurrency, fairness, convoy and queue switch
};

// What a caller may observe and control during a run.
struct RunControl {
  const std::atomic<bool>* stop = nullptr;  // if set: finish the iteration, return what was measured
  std::function<void(std::string_view phase, int done, int total)> progress;
  Communicator* communicator = nullptr;  // if there are other ranks
  // Called outside of the measured time after every iteration that the host waits for, including warm-up.
  std::function<void(Session&)> after_iteration;
  // If commands are outstanding and nothing has happened for this long, on_hang gets a report (run/hang.h), once per
  // session, on a separate thread while all others may be stuck. 0: no watch.
  std::int64_t hang_timeout_ns = 0;
  // With a timeout, GPUs record every command's end, at the cost of one write each. False: reports have less detail.
  bool follows_commands = true;
  std::function<void(const std::string& report)> on_hang;
  bool wants_progress() const { return hang_timeout_ns > 0 && follows_commands; }
  bool has_ranks() const { return communicator != nullptr && communicator->ranks().count > 1; }
  // The same answer on all ranks, which call it together while no collective is in flight; also a barrier.
  bool agree_to_stop() const { return has_ranks() ? communicator->any(is_stopped()) : is_stopped(); }
  bool is_stopped() const { return stop != nullptr && stop->load(std::memory_order_relaxed); }
};

// Facts shared by every result of a session; collected once by the caller.
struct RunContext {
  std::vector<std::string> command_line;
  Json environment = Json::object();
};

// The workload of a request. Rejects an unknown name with a suggestion.
const Workload& workload_of(const RunRequest& request);
Scale scale_of(const RunRequest& request, const DeviceInfo& info);
Precision precision_of(const RunRequest& request);

// A request with everything resolved that does not require running it.
struct BuiltRun {
  int streams = 0;
  SubmitChoice submit;  // fitted to the streams
  Scale scale = Scale::small;
  Params params;
  Step step;
  Placement placement;
};
// The one place that rejects requests that the workload or the device does not support.
BuiltRun build_run(const DeviceInfo& info, const RunRequest& request, Ranks ranks = {});
// Rejects what run_workload() would reject before it starts; `ranks`: those of the later run.
void check_request(const DeviceInfo& info, const RunRequest& request, Ranks ranks);

// What a result says of a request before anything has run.
Result describe_run(const DeviceInfo& info, const RunRequest& request, const BuiltRun& built,
                    const RunContext& context);

// Throws for bad requests; a run that fails later (out of memory, device error, wrong output) is returned with status
// "failed". With several ranks all call it, rank 0 returns the result of all, and any failure except wrong output
// throws: the other ranks cannot continue without this one.
Result run_workload(Device& device, const RunRequest& request, const RunContext& context, const RunControl& control);

Json to_json(const DeviceInfo& info);

}  // namespace weir
