// The output of `weir history` as documents (weir.history/2, docs/schema). Knows no text.
#pragma once

#include <string>

#include "base/json.h"
#include "report/history/series.h"
#include "report/history/store.h"

namespace weir::history {

Json added_document(const Store& store, const Added& added, const AddOptions& options, const Intake& intake);
Json list_document(Store& store, const EntryFilter& filter);
// Rejects an entry that does not exist.
Json show_document(Store& store, std::int64_t entry);

struct TrendOptions {
  HistorySelection selection;
  ChangeOptions changes;
  bool is_gate = false;
  std::size_t within = 10;  // runs; an older regression does not fail the gate
};
// Rejects a selection that matches nothing, and lists what exists.
Json trend_document(Store& store, const TrendOptions& options);
// 3 where the document has a gate that failed, else 0.
int gate_code(const Json& trend);

// CSV with a heading, one row per point.
std::string points_csv(Store& store, const PointFilter& filter);

}  // namespace weir::history
