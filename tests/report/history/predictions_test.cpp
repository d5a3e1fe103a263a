// Predictions in a history: those whose intervals meet what was measured are right, and a history without any is fine.
#include "report/history/predictions.h"

#include <gtest/gtest.h>

#include "report/history/made.h"

namespace weir::history {
namespace {

using testing::MadeResult;
using Predictions = testing::EngineTest;
WEIR_IN_EVERY_ENGINE(Predictions);

TEST_P(Predictions, count_as_right_where_their_interval_meets_the_measured_one) {
  add_prediction(where(), {"2026-11-19T10:00:00Z", "train.py", "A=1", 0.10, 0.08, 0.12, 0.115, 0.09, 0.14});
  add_prediction(where(), {"2026-11-19T10:00:00Z", "train.py", "A=2", 0.10, 0.08, 0.12, 0.20, 0.19, 0.21});
  add_prediction(where(), {"2026-11-19T10:00:00Z", "train.py", "A=4", 0.01, 0.00, 0.02, -0.01, {}, {}});
  add_prediction(where(), {"2026-11-19T10:00:00Z", "train.py", "A=8", 0.01, 0.00, 0.02, {}, {}, {}});
  const PredictionRecord record = prediction_record(where());
  EXPECT_EQ(record.proven, 3u);
  EXPECT_EQ(record.right, 1u);
  EXPECT_NEAR(*record.half_within, 0.02, 1e-12);
  EXPECT_NEAR(*record.all_within, 0.10, 1e-12);
}

TEST_P(Predictions, there_are_none_in_a_history_of_results) {
  add({MadeResult{}});
  EXPECT_EQ(prediction_record(where()).proven, 0u);
}

}  // namespace
}  // namespace weir::history
