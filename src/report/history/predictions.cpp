#include "report/history/predictions.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "report/history/database.h"

namespace weir::history {

void add_prediction(const std::string& where, const KeptPrediction& prediction) {
  Database database(where, DatabaseAccess::write);
  Transaction transaction(database, Writing::beside_others);
  Statement insert(database,
                   "INSERT INTO prediction(created, program, setting, gain, low, high, measured, measured_low, "
                   "measured_high) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)");
  insert.bind(std::string_view(prediction.created), std::string_view(prediction.program),
              std::string_view(prediction.setting));
  for (const std::optional<double> value :
       {std::optional(prediction.gain), std::optional(prediction.low), std::optional(prediction.high),
        prediction.measured, prediction.measured_low, prediction.measured_high})
    insert.bind(value);
  insert.run();
  transaction.commit();
}

PredictionRecord prediction_record(const std::string& where) {
  Database database(where, DatabaseAccess::read);
  PredictionRecord record;
  if (!database.has_table("prediction")) return record;
  std::vector<double> errors;
  Statement rows(
      database,
      "SELECT gain, low, high, measured, coalesce(measured_low, measured), coalesce(measured_high, measured) "
      "FROM prediction WHERE measured IS NOT NULL");
  while (rows.next()) {
    std::optional<double> gain, low, high, measured, measured_low, measured_high;
    rows.read(0, gain, low, high, measured, measured_low, measured_high);
    if (!gain || !low || !high || !measured || !measured_low || !measured_high) continue;
    ++record.proven;
    if (*measured_low <= *high && *measured_high >= *low) ++record.right;
    errors.push_back(std::abs(*measured - *gain));
  }
  if (errors.empty()) return record;
  std::sort(errors.begin(), errors.end());
  record.half_within = errors[errors.size() / 2];
  record.all_within = errors.back();
  return record;
}

}  // namespace weir::history
