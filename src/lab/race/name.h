// What a delay that changes the output is about: the pair of commands whose order matters, found by waits that are put
// between suspects until the output is right again. Asks a search for runs.
#pragma once

#include <string>
#include <vector>

#include "lab/race/search.h"

namespace weir::race {

// Finds the pair, confirms it, and explains it. The race has no waits where none makes the output right again.
Race name_race(Search& search, std::vector<Delay> delays, const std::string& change);

// Who reads and who writes what both touch: from what is known of their accesses, and from hashes of the memory before
// and after each of them.
Hazard hazard_of(const Log& log, std::uint32_t first, std::uint32_t second);

}  // namespace weir::race
