// What a report compares its measurements with: a baseline, or their history. Knows no flag.
#pragma once

#include <filesystem>
#include <vector>

#include "report/page/measured.h"
#include "report/page/page.h"

namespace weir::page {

// Compares the measurements with those of a result, a sweep or a folder. Refuses a baseline without a matching
// measurement.
void add_baseline(Page& page, const std::filesystem::path& baseline, const std::vector<Measured>& measured);

// Adds the series of a history, and their latest changes; with `machines` (ids or serial numbers) only theirs.
void add_history(Page& page, const std::string& where, const std::vector<std::string>& machines = {});

}  // namespace weir::page
