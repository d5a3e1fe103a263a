// How figures are put into a row. For the files that read documents; nobody else needs it.
#pragma once

#include <initializer_list>
#include <optional>

#include "report/figures/figures.h"

namespace weir::figures {

using Labels = std::vector<std::pair<std::string, std::string>>;

// Nothing is added where there is no finite number.
void add(FigureRow& row, const char* name, const char* unit, const char* help, std::optional<double> value,
         double scale = 1, const Labels& labels = {});

// {"p50": 1.0, "p95": ..., "mean": ..., "p50_interval": [low, high]} or, with `suffix` "_ns", {"p50_ns": ...}: NAME
// with the label quantile, NAME_mean, NAME_std, and the 95 % interval as NAME_low and NAME_high.
void add_summary(FigureRow& row, const std::string& name, const char* help, const Json& summary, const char* suffix,
                 double scale, const Labels& labels = {});

// A list of numbers; anything else makes the list end.
void add_series(FigureRow& row, const char* name, const char* unit, const Json& list, double scale);

// A text, or a number as text; bounded, because labels come with every sample.
std::string label(const Json& value);

// "a=1,b=x" of an object of scalars.
std::string settings(const Json& object);

std::vector<FigureRow> of_bench(const Json& document);
std::vector<FigureRow> of_overlap(const Json& document);
std::vector<FigureRow> of_preempt(const Json& document);
std::vector<FigureRow> of_channel(const Json& document);

inline constexpr double kFromNs = 1e-9, kFromMs = 1e-3;

}  // namespace weir::figures
