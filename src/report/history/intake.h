// What is put into a history: points of result files, each with its machine, its date and a digest by which it is known
// again. Reads files; writes nothing.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "run/load.h"

namespace weir::history {

// Which results were taken under the same conditions: the facts that make two numbers incomparable, and their
// fingerprint. Facts that may explain a change (kernel, compiler, version of Weir) are not among them: they annotate.
struct Machine {
  std::string id;                            // 12 hexadecimal digits of the facts: same facts, same id
  std::string label;                         // "NVIDIA H200, cuda:0"
  std::map<std::string, std::string> facts;  // "device.driver", "environment.cpus", "environment.variables.NAME", ...
};

Machine machine_of(const ResultPoint& point);

// FNV-1a of 128 bits, as 32 hexadecimal digits. Tells contents apart; guards against nobody.
std::string digest_of(std::string_view text);

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
