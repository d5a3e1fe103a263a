// Fleets made for tests: nodes with devices whose figures scatter in a known way, and some that are slow, wrong or
// narrow by a known amount. The same seed makes the same fleet everywhere.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <set>
#include <string>
#include <vector>

#include "lab/fleet/judge/judge.h"

namespace weir::fleet {

// Draws that are the same with every compiler's library.
class MadeDraws {
 public:
  explicit MadeDraws(std::uint64_t seed) : random_(seed) {}
  double normal() {
    return std::sqrt(-2 * std::log(1 - random_.fraction())) * std::cos(2 * std::numbers::pi * random_.fraction());
  }
  // Standard deviation 1; `degrees` 0: normal, otherwise Student's t, whole and above 2.
  double scatter(int degrees) {
    const double value = normal();
    if (degrees == 0) return value;
    double squares = 0;
    for (int i = 0; i < degrees; ++i) squares += std::pow(normal(), 2);
    return value / std::sqrt(squares / degrees) * std::sqrt((degrees - 2.0) / degrees);
  }
  std::size_t below(std::size_t limit) { return random_.below(static_cast<std::uint32_t>(limit)); }

 private:
  SplitMix random_;
};

struct MadeOptions {
  std::size_t nodes = 1000, devices = 8;
  std::uint64_t seed = 1;
  // The natural spread of one measured sample over the fleet is sqrt(between^2 + within^2).
  double between = 0.008;   // standard deviation from device to device, which repetitions do not remove
  double within = 0.01833;  // of the samples of one device; a figure is the median of `samples` of them
  int samples = 15;
  double shared = 0.5;                  // of the variance between devices: common to the figures of a device's concern
  double of_node = 0;                   // of the variance between devices: common to the devices of a node
  int degrees = 0, sample_degrees = 0;  // tails of devices and of samples: 0 normal, otherwise Student's t
  std::size_t slow = 0;                 // devices, in GEMMs of all precisions
  double effect = 0.05;                 // of the slow ones
  std::size_t wrong = 0, narrow = 0;    // devices with wrong outputs; with a PCIe link of half the width
  bool has_clock = true;                // whether slow devices show a lower clock
};

struct MadeFleet {
  std::vector<NodeReport> nodes;
  std::set<std::string> slow, wrong, narrow;  // "node7 cuda:3"
};

MadeFleet made_fleet(const MadeOptions& options);

std::string made_name(std::size_t node, std::size_t device);
Figure* made_figure(NodeDevice& device, const std::string& name);
// Multiplies the figures; a time gets longer where the factor is below 1.
void make_slower(NodeDevice& device, const std::vector<std::string>& figures, double factor);

inline const std::vector<std::string> kGemms{"gemm_fp32", "gemm_bf16", "gemm_fp8"};
inline const std::vector<std::string> kLaunches{"launch", "launch_threads", "launch_graph", "round_trip",
                                                "queue_switch"};

}  // namespace weir::fleet
