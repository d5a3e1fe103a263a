// Which points of sweeps make one curve, and how that scales. Knows results as documents; runs nothing.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace weir {

// How a point is run, in words: "inline", "threads:4 on 16 units".
std::string way_of(const std::string& submit, int compute_units);
// The canonical name without its counts: ways to submit that differ in them only are points of one curve.
std::string submit_family(std::string_view name);
// Points of one curve have this in common: the number of threads follows the streams, so it is left out.
std::string curve_of(const std::string& submit, int compute_units);

// That a result's streams were confined to, as it was asked for: drivers round. 0: they were not.
int compute_units_asked(const Json& result);

// The scaling analysis of results, one entry per curve.
Json scaling_of(const Json& results, const std::string& scaling);

}  // namespace weir
