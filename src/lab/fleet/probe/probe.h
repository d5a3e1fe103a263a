// Examines the devices of one node: measures them in rounds, reads their states under load, checks what they compute.
// Judges nothing; knows neither flags nor other nodes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "device/device.h"
#include "lab/fleet/node.h"

namespace weir::fleet {

struct ProbeOptions {
  std::vector<std::string> devices;
  // Called on a thread of the device. The communicator is null, or that of the node's devices.
  std::function<std::unique_ptr<Device>(const std::string& name, Communicator* communicator)> open;
  // No round begins that would not end before; one warms up, and `fewest_rounds` are measured in any case.
  std::int64_t budget_ns = 45'000'000'000;
  // A device that has not answered by then is given up.
  std::int64_t patience_ns = 58'000'000'000;
  std::size_t fewest_rounds = 3, most_rounds = 7;
  // For tests: by figure, the share of the time by which it is made slower. The host really waits that long, inside of
  // what is timed.
  std::map<std::string, double> slow_down;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(std::string_view stage, int done, int total)> progress;
  std::function<std::int64_t()> now_ns = weir::now_ns;  // for the budget
};

struct ProbedDevices {
  std::vector<NodeDevice> devices;  // as they were asked for
  std::size_t rounds = 0;
  bool is_interrupted = false;
  // A device was given up: a thread of this process is still inside of its driver, so the process must not wait for it
  // when it ends.
  bool is_stuck = false;
};

// Host-bound figures of one device are measured while the others rest, because threads share the host; loads of all
// devices side by side, as jobs use a node. A device that fails is reported so, and the others are measured.
ProbedDevices probe_devices(const ProbeOptions& options);

// Adds to a node's report what the machine says: settings of the kernel and variables that matter. `environment` is
// that of results; `root` is for tests.
void describe_node(NodeReport& node, const std::string& root = "/");

}  // namespace weir::fleet
