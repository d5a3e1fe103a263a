// The parts of a weir.bench/2 document that a comparison needs. Baselines may come from anywhere: whatever they
// contain, the result is entries, with their trouble if they cannot be used, or the document is rejected by name.
// Compares nothing.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "lab/kernels/latency_change.h"

namespace weir::bench {

struct ComparedEntry {
  std::string key;
  std::string status;   // as written; "unknown" if missing
  std::string failure;  // a description, for a status other than ok
  // Facts that must agree for times to be comparable, by name; empty if the document lacks them.
  std::map<std::string, std::string> conditions;
  std::optional<double> p50_ns;
  RunTimes times;
  std::string trouble;  // why no times can be compared
  bool has_rounds = true;
  std::map<std::string, double> errors;  // rmse, max_error, relative_error; only those that are numbers

  bool is_ok() const { return status == "ok"; }
  bool has_failed() const { return status == "failed" || status == "crashed" || status == "timed_out"; }
};

struct ComparedSummary {
  std::vector<ComparedEntry> entries;  // in the document's order
  std::map<std::string, std::size_t> by_key;
  std::map<std::string, std::string> machine;   // facts of the environment that must agree for times to be comparable
  std::map<std::string, std::string> software;  // facts that may explain differences: reported, not judged

  const ComparedEntry* find(const std::string& key) const;
};

// Rejects documents that are not weir.bench/2, have no list of cases, or have a case twice. `name` is the file's name
// in messages.
ComparedSummary compared_summary(const Json& document, const std::string& name);

}  // namespace weir::bench
