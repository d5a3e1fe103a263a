// The parts of a weir.analysis/1 document that are about communication beside other work.
#pragma once

#include "base/json.h"
#include "run/analyze_words.h"
#include "trace/analyse/breakdown.h"
#include "trace/analyse/exposed_causes.h"

namespace weir {

// Share of communication that was hidden, which is beside anything else; null without communication.
Json efficiency_json(const BusyTimes& times);
// Of a device's slice with communication.
Json overlap_json(const Timeline& part);
Json exposed_causes_json(const ExposedCauses& found, const Timeline& part, const TimelineWords& words);

}  // namespace weir
