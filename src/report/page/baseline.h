// What a report sets its measurements against: a baseline, or their history. Knows no flag.
#pragma once

#include <filesystem>
#include <vector>

#include "report/page/measured.h"
#include "report/page/page.h"

namespace weir::page {

// Compares the measurements with those of a result, a sweep or a folder. Refuses a baseline that has no partner here.
void add_baseline(Page& page, const std::filesystem::path& baseline, const std::vector<Measured>& measured);

// Series of a history file, and where they changed last.
void add_history(Page& page, const std::filesystem::path& file);

}  // namespace weir::page
