// The last part of calibration: what durations and footprints do not show is fitted to the step as it runs. For
// calibrate.cpp only.
#pragma once

#include <map>

#include "lab/queues/queue_cost.h"

namespace weir {

// How long commands last beside each other, where the step puts them.
struct InPlace {
  std::map<sim::Signature, double> ns;  // the mean of all that have the signature
  double submit_ns = 0;                 // the host's time in the same iterations, which a trace makes longer
};
std::map<sim::Signature, double> mean_durations(const Step& step, const Timeline& timeline);

// Multiplies the costs of the host's calls.
void scale_host(sim::SimProfile& profile, double factor);

// Kernels take longer beside others than alone (contention, each its own), or use less of the device than their grids
// suggest (room), because most of their blocks exit at once.
void fit_kernels(Calibration& calibration, const StepRun& run, const InPlace& in_place);

}  // namespace weir
