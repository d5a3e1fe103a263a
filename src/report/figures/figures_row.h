// The documents that have figures, and how those are added to a row. Only for the files that read documents.
#pragma once

#include <optional>

#include "report/figures/figures.h"

namespace weir::figures {

using Labels = std::vector<std::pair<std::string, std::string>>;

// Adds nothing where there is no finite number.
void add(FigureRow& row, const char* name, const char* unit, const char* help, std::optional<double> value,
         double scale = 1, const Labels& labels = {});

// {"p50": 1.0, "p95": ..., "mean": ..., "p50_interval": [low, high]}: NAME with the label quantile,
// NAME_mean, NAME_std, and the 95 % interval as NAME_low and NAME_high.
void add_summary(FigureRow& row, const std::string& name, const char* help, const Json& summary, double scale,
                 const Labels& labels = {});

// A list of numbers; ends at the first element of another type.
void add_series(FigureRow& row, const char* name, const char* unit, const Json& list, double scale);

// A text, or a number as text; limited in length, because labels are repeated for every sample.
std::string label(const Json& value);

// "a=1,b=x" from an object of scalars.
std::string settings(const Json& object);

// The documents with figures: of_NAME reads weir.NAME. `name` is the file, for messages.
#define WEIR_FIGURES(document)                                                                           \
  document(result) document(sweep) document(bench) document(overlap) document(preempt) document(channel) \
      document(fleet_probe) document(fleet)

#define WEIR_DECLARE(document_name) \
  std::vector<FigureRow> of_##document_name(const Json& document, const std::string& name);
WEIR_FIGURES(WEIR_DECLARE)
#undef WEIR_DECLARE

inline constexpr double kFromNs = 1e-9;

}  // namespace weir::figures
