// The documents of `weir bench`: one entry per case, one file per kernel, one summary. Merges rounds; runs nothing.
//
// An entry: {"kernel_name", "backend", "precision", "problem_size": {name: number | [numbers]}, "key", "seed",
//  "device": {"name", "model"}, "how", "launches_per_run",
//  "timing": {"latency_ns": {"p50", "p90", "p99", "mean", "std", "p50_interval"}, "runs_per_s", "iterations",
//             "samples_ns", "rounds": [samples per process],
//             "batch", "clock", "resolution", "stopped_by", "warmup_runs", "is_steady", "disturbed", "outliers",
//             "is_cold", "is_launch_bound", "items_per_s"},
//  "memory": {"peak_bytes", "allocated_bytes", "reason"},
//  "energy": {"energy_j" (per run), "power_w", "source", "window_ns", "reason"},
//  "accuracy": {"rmse", "max_error", "relative_error", "tolerance", "is_within", "outputs", "reason"},
//  "roofline": {...}, "yardstick_ns": [...],
//  "success": bool, "status": "ok" | "inaccurate" | "failed" | "crashed" | "timed_out" | "skipped",
//  "error": null | {"what", "hint", "signal", "output"}}
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "lab/kernels/method.h"
#include "lab/kernels/package/discovery.h"

namespace weir::bench {

// An entry without results: what was to be measured. It has no precision if the package could not be asked for its own;
// its key then ends at the backend.
Json entry_of(const package::Package& package, const package::Case& wanted);
Json entry_of(const package::Package& package, package::Backend backend);
// An entry for a package that cannot run at all.
Json entry_of(const package::Package& package);
// Adds the results, or why there are none.
void put_measurement(Json& entry, const MeasuredKernel& measurement, const package::ReadyKernel& kernel);
void put_failure(Json& entry, const std::string& status, const std::string& what, const std::string& hint,
                 const std::string& signal, const std::string& output);

// Merges entries of the same key from several processes: all samples, the worst accuracy, the total energy. Rejects an
// empty list.
Json merge_rounds(std::span<const Json> rounds);

// kernels/NAME.json (weir.bench_kernel/2): the fields of the first entry that succeeded (otherwise of the first), and
// all entries under "cases".
Json kernel_document(const std::string& name, std::span<const Json> entries);

// summary.json (weir.bench/2): "environment", "options", "ceilings", "cases" (all entries, by p50), "findings",
// "recommendations", "skipped", "regressions" (null without a baseline), "counts" by status.
Json summary_document(const Json& environment, const Json& options, const Json& ceilings, std::span<const Json> entries,
                      std::span<const package::Skipped> skipped);

// Remarkable results, each with its figures, from entries alone; empty if there are none.
std::vector<std::string> findings(std::span<const Json> entries);
std::vector<std::string> recommendations(std::span<const Json> entries);

// The value at a path in an entry; null if it does not exist.
inline const Json& value_at(const Json& entry, JsonPath path) { return at_path(entry, path); }
std::optional<double> number_at(const Json& entry, std::initializer_list<const char*> path);
bool is_set(const Json& entry, std::initializer_list<const char*> path);  // the value exists and is true

}  // namespace weir::bench
