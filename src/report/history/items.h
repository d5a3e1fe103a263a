// What a history shows on a report's page: one item of `histories` (type History in web/src/document.ts) per series.
// Knows the page's fields; the page owns ids, sources and environments.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"

namespace weir::history {

// Which series are selected; an empty field matches everything.
struct HistorySelection {
  std::string workload;
  std::string metric;   // "latency" or "throughput"; empty: latency where there is one
  std::string machine;  // id of a machine, its beginning, or a serial number
  std::map<std::string, std::string>
      key;  // names and values of ResultPoint::key that must agree: "streams", "param.size"
};

// One object per machine and key, those with a recent change first: never two machines in one. Each holds
//   title, notes, workload, metric, unit, is_less_better, points, changes   as type History has them, and
//   device, environment   as the results had them (null where they had none), for Page::environment.
// It lacks id, source and the environment's number, so that a page does
//   Json item = page.item("histories", series["title"], source, page.environment(series["device"],
//   series["environment"]));
// and takes over the other fields, except device and environment. Rejects what is not a history, and any file where
// this build has no SQLite. Reads only; while a history is being added to, its previous state is read.
std::vector<Json> history_items(const std::string& where, const HistorySelection& selection = {});

}  // namespace weir::history
