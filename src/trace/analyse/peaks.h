// How fast devices can be at best: the vendors' figures by model, each with its source. Measures nothing.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "measure/timeline.h"
#include "trace/analyse/operator_inputs.h"

namespace weir {

// Of one device as programs see it, without sparsity, and with sums in 32 bits where the vendor distinguishes. Empty
// where the vendor gives none.
struct DevicePeaks {
  std::string model;   // "H100 SXM"
  std::string source;  // the vendor's document
  std::optional<double> bytes_per_s;
  std::array<std::optional<double>, kNumberTypes> matrix_flop_per_s;
  std::optional<double> vector_f64_flop_per_s, vector_f32_flop_per_s;

  // For matrix products of this type, or for everything else, which has no narrower units than those for 32 bits.
  std::optional<double> flop_per_s(NumberType type, bool is_matrix) const noexcept;
};

struct PeaksFound {
  std::optional<DevicePeaks> peaks;
  std::string reason;  // why there are none
};

// Looks up the model, or else the label, in the table. Where `measured` has a figure, it counts instead.
PeaksFound device_peaks(const TraceDevice& device, const DevicePeaks* measured = nullptr);

// All models of the table, for documents and tests.
std::vector<DevicePeaks> known_peaks();

}  // namespace weir
