// What is added to a history: points of result files, each with its machine, its date and a digest that identifies it.
// Reads files; writes nothing.
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

// Identifies results taken under the same conditions: the facts that make two numbers incomparable, and their
// fingerprint. Facts that may explain a change (kernel, compiler, version of Weir) are not among them: they are
// annotations.
struct Machine {
  std::string id;                            // 12 hexadecimal digits of the facts: same facts, same id
  std::string label;                         // "NVIDIA H200, cuda:0"
  std::map<std::string, std::string> facts;  // "device.driver", "environment.cpus", "environment.variables.NAME", ...
};

Machine machine_of(const ResultPoint& point);
// With the id that follows from its facts.
Machine machine_from(std::map<std::string, std::string> facts, const std::string& label);

// FNV-1a of 128 bits, as 32 hexadecimal digits. Distinguishes contents; not secure against attacks.
std::string digest_of(std::string_view text);

struct NewPoint {
  ResultPoint point;
  Machine machine;
  Json device, environment;               // as in the file; null where it has none
  std::string measured;                   // ISO 8601; empty where the file has no date
  std::string weir_version, weir_commit;  // of the Weir that measured it; empty where the file does not name it
  std::string digest;                     // of the content
};

// A document that is kept whole, beside the points that it gave.
struct NewDocument {
  std::string kind;      // "fleet_probe"
  std::string subject;   // what it is about: the node
  std::string measured;  // ISO 8601
  std::string digest, text;
};

struct Intake {
  std::vector<NewPoint> points;
  std::vector<NewDocument> documents;
  std::vector<std::string> notes;    // files in a folder that hold something else
  std::vector<std::string> refused;  // files that should have been read but could not be, with the reason
};

// Reads results, sweeps, summaries of `weir bench` (each case is a point), documents of `weir channel` (each benchmark
// is a point) and of `weir fleet probe` (each figure of each device is a point), AORTA's results, and folders of them.
Intake read_intake(std::span<const std::filesystem::path> paths);

// 2026-01-31T12:00:00Z, as in results.
bool is_time(std::string_view text);

// The cases of a weir.bench/2 document; `written` is the same as its file has it. Rejects a document without a list of
// cases.
std::vector<NewPoint> bench_points(const Json& document, const Json& written, const std::string& name);

// The benchmarks of a weir.channel/2 document that were run. Rejects a document without a list of benchmarks.
std::vector<NewPoint> channel_points(const Json& document, const std::string& name);

// The figures of a weir.fleet_probe/1 document that devices are judged by. A device is a machine of its own, by its
// serial number: its series goes on where it is moved, or has another driver.
std::vector<NewPoint> fleet_points(const Json& document, const std::string& name);
NewDocument fleet_document_of(const Json& document, const std::string& name);

}  // namespace weir::history
