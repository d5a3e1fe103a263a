// What a history has to show on a report's page: one item of `histories` (type History in web/src/document.ts) for each
// series. Knows the page's fields; ids, sources and environments are the page's own.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"

namespace weir::history {

// Which series are wanted; what is empty selects nothing away.
struct HistorySelection {
  std::string workload;
  std::string metric;   // "latency" or "throughput"; empty: latency where there is one
  std::string machine;  // id of a machine, or how it begins
  std::map<std::string, std::string>
      key;  // names and values of ResultPoint::key that must agree: "streams", "param.size"
};

// One object for each machine and key, those with a change of late first: never two machines in one. Each holds
//   title, notes, workload, metric, unit, is_less_better, points, changes   as type History has them, and
//   device, environment   as the results had them (null where they had none), for Page::environment.
// It lacks id, source and the environment's number, so that a page does
//   Json item = page.item("histories", series["title"], source, page.environment(series["device"],
//   series["environment"]));
// and takes over the other fields, but device and environment. Rejects a file that is no history, or where this build
// has no SQLite. Reads only; a history that is being added to is read as it was.
std::vector<Json> history_items(const std::filesystem::path& file, const HistorySelection& selection = {});

}  // namespace weir::history
