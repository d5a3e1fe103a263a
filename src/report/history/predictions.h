// What `weir advise --prove` predicted, and what came of it: kept in a history, so that anybody can see how often it
// was right. Knows the table; makes no predictions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace weir::history {

struct KeptPrediction {
  std::string created, program, setting;
  double gain = 0, low = 0, high = 0;                           // predicted: parts of the step that are saved
  std::optional<double> measured, measured_low, measured_high;  // the same, in the proof
};

struct PredictionRecord {
  std::size_t proven = 0;
  std::size_t right = 0;  // the predicted and the measured interval have something in common
  std::optional<double> half_within,
      all_within;  // |measured - predicted| of half of them, and of all; parts of the step
};

// Creates the history where there is none. Predictions whose proof measured nothing are kept, and not counted.
void add_prediction(const std::string& where, const KeptPrediction& prediction);
PredictionRecord prediction_record(const std::string& where);

}  // namespace weir::history
