// Measures how far a checked run is from its reference, and whether that is too far. Knows numbers; never runs
// anything.
#pragma once

#include <string>

#include "base/json.h"
#include "lab/kernels/package/ready_kernel.h"

namespace weir::bench {

struct Accuracy {
  Json block;               // "accuracy" of an entry (lab/kernels/document.h); fields are null without a reference
  bool is_accurate = true;  // false: beyond a tolerance, not finite, not equal, or a fault
  std::string inaccuracy;   // a description if it is not
};
Accuracy judge_accuracy(const package::Checked& checked, Precision precision, const package::Tolerance& tolerance);

// The worse of two checks of the same kernel; the block says when it was made.
Accuracy worse_of(Accuracy before, Accuracy after);

}  // namespace weir::bench
