// Groups the points of sweeps into curves and analyses their scaling. Knows results as documents; runs nothing.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace weir {

// How a point is run, in words: "inline", "threads:4 on 16 units", "inline, NCCL_ALGO=Ring". `variables`: words_for().
std::string way_of(const std::string& submit, int compute_units, const std::string& variables = {});
// The canonical name without its counts: submit modes that differ only in them are points of one curve.
std::string submit_family(std::string_view name);
// The label that all points of one curve share: without the number of threads, which follows the streams.
std::string curve_of(const std::string& submit, int compute_units, const std::string& variables = {});

// The compute units that a result's streams were confined to, before the driver's rounding. 0: not confined.
int compute_units_asked(const Json& result);

// The scaling analysis of results, one entry per curve.
Json scaling_of(const Json& results, const std::string& scaling);

}  // namespace weir
