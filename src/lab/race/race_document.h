// weir.race/1: what a search found and how, and the races read back from it for a replay. Runs nothing.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "lab/race/search.h"
#include "lab/race/step_race.h"
#include "run/runner.h"

namespace weir::race {

Json race_document(const std::vector<std::string>& program, const SearchOptions& options, const Findings& findings,
                   const RunContext& context, const char* status);

// Of a workload of ours whose waits were taken away.
Json step_race_document(const std::string& workload, const StepRace& race, const RunContext& context);

// The race with this number, from 1. Rejects a document that has none, or delays and waits that make no sense.
Race race_in(const Json& document, std::size_t number, const std::string& name);

// What is missing in the program, in words: "stream 13 must wait for stream 7: ..."; empty where nothing was named.
std::string missing_call(const Race& race);

}  // namespace weir::race
