// What a run of `weir bench` has to do: which packages on which backends, and which cases are settled without running,
// because they are broken, skipped or unavailable. Runs nothing.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "lab/kernels/options.h"

namespace weir::bench {

// One package on one backend: the work of one process.
struct BenchUnit {
  std::size_t package = 0;  // index into BenchPlan::packages
  package::Backend backend = package::Backend::cpu;
};

struct BenchPlan {
  std::vector<package::Package> packages;  // selected packages, by name
  std::vector<BenchUnit> units;
  std::vector<Json> settled;  // entries (document.h) that need no process
  std::vector<package::Skipped> skipped;

  const package::Package& package_of(const BenchUnit& unit) const { return packages[unit.package]; }
};

// Where dependencies of packages are searched for: folders with ":" between them.
struct SearchPaths {
  std::string programs, libraries;
};

// `facts` is as in facts.h.
BenchPlan plan_bench(const package::Discovery& discovery, const BenchOptions& options, const Json& facts,
                     const SearchPaths& search);

// The output of --list (weir.bench_plan/1): {"units": [{"package", "backend", "precisions", "problems", "iterations",
// "rounds", "folder"}], "settled": [...], "skipped": [...]}
Json plan_document(const BenchPlan& plan, const BenchOptions& options);

}  // namespace weir::bench
