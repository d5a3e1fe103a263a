// What a comparison needs of a weir.bench/1 document. Baselines come from anywhere: whatever they hold, entries come
// out, with their trouble where they cannot be used, or the document is rejected by name. Compares nothing.
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
  std::string status;   // as written; "unknown" where there is none
  std::string failure;  // in words, for a status other than ok
  // Facts that must agree for times to mean the same, by name; empty where the document does not say.
  std::map<std::string, std::string> conditions;
  std::optional<double> p50_ms;
  RunTimes times;
  std::string trouble;  // why there are no times to compare
  bool has_rounds = true;
  std::map<std::string, double> errors;  // rmse, max_error, relative_error, as far as they are numbers

  bool is_ok() const { return status == "ok"; }
  bool has_failed() const { return status == "failed" || status == "crashed" || status == "timed_out"; }
};

struct ComparedSummary {
  std::vector<ComparedEntry> entries;  // in the document's order
  std::map<std::string, std::size_t> by_key;
  std::map<std::string, std::string> machine;   // facts of the environment without which times mean something else
  std::map<std::string, std::string> software;  // that may be why times differ: told, not judged

  const ComparedEntry* find(const std::string& key) const;
};

// Rejects what is no weir.bench/1, has no list of cases, or has one of them twice. `name` stands for the file.
ComparedSummary compared_summary(const Json& document, const std::string& name);

}  // namespace weir::bench
