// What is put into a history: points of result files, each with its machine, its date and a digest by which it is known
// again. Reads files; writes nothing.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "report/history/machine.h"
#include "run/load.h"

namespace weir::history {

struct NewPoint {
  ResultPoint point;
  Machine machine;
  Json device, environment;               // as the file has them; null where it has none
  std::string measured;                   // ISO 8601; empty where the file does not say
  std::string weir_version, weir_commit;  // that measured it; empty where the file does not say
  std::string digest;                     // of the content
};

struct Intake {
  std::vector<NewPoint> points;
  std::vector<std::string> notes;    // files of a folder that hold something else
  std::vector<std::string> refused;  // files that should have been read and could not be, with the reason
};

// Results, sweeps, summaries of `weir bench` (each case is a point), AORTA's results, and folders of them.
Intake read_intake(std::span<const std::filesystem::path> paths);

// 2026-01-31T12:00:00Z, as results have it.
bool is_time(std::string_view text);

// The cases of a weir.bench/1 document. Rejects what has no list of cases.
std::vector<NewPoint> bench_points(const Json& document, const std::string& name);

}  // namespace weir::history
