// One figure in the making: a prepared step, how a sample is taken from it, and how its output is checked. Knows
// sessions; neither nodes nor the other figures.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/device.h"
#include "lab/fleet/node.h"
#include "submit/submitter.h"

namespace weir::fleet {

// A sample is taken in every round of a probe, so that samples lie seconds apart.
class Meter {
 public:
  explicit Meter(std::string name) { figure.name = std::move(name); }
  virtual ~Meter() = default;
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;

  // The median of some iterations. Throws where the device fails.
  virtual double sample() = 0;
  // While the device works on this figure: reads its state.
  virtual std::optional<Telemetry> telemetry_under_load(Device&) { return std::nullopt; }
  // Compares what it computed with the reference; a sentence for each output that is not right.
  virtual std::vector<std::string> check() { return {}; }

  Figure figure;
  bool is_load = false;  // bound by the device: devices of a node are measured side by side, as jobs use them
};

struct MeterPlan {
  std::string figure, to;
  Step step;
  std::string submit = "inline";
  double amount = 1;             // commands, bytes or flop of an iteration
  bool is_rate = false;          // the sample is amount / time, otherwise time / amount
  bool times_submit = false;     // only until the last command is submitted
  int iterations = 5;            // per sample, at least ...
  std::int64_t least_ns = 0;     // ... and until so long has passed on the session's clock
  double extra = 0;              // for tests: the host really waits this share of the time, inside of what is timed
  std::optional<BufferId> same;  // its bits must be the same after each sample
};

class StepMeter final : public Meter {
 public:
  StepMeter(Device& device, MeterPlan plan);

  double sample() override;
  std::optional<Telemetry> telemetry_under_load(Device& device) override;
  std::vector<std::string> check() override;

 private:
  double iterate();  // in ns
  void compare_bits();

  MeterPlan plan_;
  bool computes_, is_virtual_;
  Placement placement_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Submitter> submitter_;
  std::optional<std::uint64_t> bits_;
  std::size_t sample_count_ = 0;
  double iteration_ns_ = 0;  // the median of the last sample
  std::vector<std::string> wrong_;
};

// What is the same for all figures of a device.
struct MeterContext {
  Device& device;
  DeviceInfo info;
  bool is_large = false;  // a GPU with memory and time for what jobs compute; else small enough for a CPU
  std::map<std::string, double> slow_down = {};  // for tests: MeterPlan::extra by figure
  double extra(const std::string& figure) const {
    const auto found = slow_down.find(figure);
    return found == slow_down.end() ? 0 : found->second;
  }
};

// Meters of a device, or figures with the reason why they cannot be measured.
struct Meters {
  std::vector<std::unique_ptr<Meter>> meters;
  std::vector<Figure> without;

  void lacks(const std::string& figure, std::string reason);
  // What fails to prepare is a reason, and no reason to lose the others.
  template <class Make>
  void add(const std::string& figure, Make&& make) {
    try {
      meters.push_back(make());
    } catch (const std::exception& error) {
      lacks(figure, error.what());
    }
  }
};

// In the order of their figures; each is a source of its own.
void add_launch_meters(const MeterContext& context, Meters& meters);
void add_copy_meters(const MeterContext& context, Meters& meters);
void add_product_meters(const MeterContext& context, Meters& meters);

}  // namespace weir::fleet
