// Findings as a document (weir.preempt/2), and observations in the form in which processes exchange them. Knows no
// file.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "lab/preempt/curve.h"

namespace weir::preempt {

// Facts about the run in a document, besides its findings.
struct Circumstances {
  std::vector<std::string> command_line;
  Json device = Json::object();
  Json environment = Json::object();
};
Json preempt_document(const Findings& findings, const Circumstances& circumstances);

Json to_json(const ExperimentPlan& plan);
Json to_json(const Victim& victim);
Json to_json(const Observation& observation);
// Read the output of to_json. They reject anything else; messages name `file`.
ExperimentPlan plan_from(const Json& json, const std::string& file);
Victim victim_from(const Json& json, const std::string& file);
Observation observation_from(const Json& json, const std::string& file);

}  // namespace weir::preempt
