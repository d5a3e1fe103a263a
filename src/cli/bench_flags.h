// The flags of `weir bench`, and the settings of a run that follow from them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/ci_flags.h"
#include "cli/command.h"
#include "cli/document_output.h"
#include "cli/export_flags.h"
#include "lab/kernels/method.h"
#include "lab/kernels/package/package.h"
#include "lab/kernels/regression.h"

namespace weir::cli {

// The user's settings. Where a flag is missing, a package's bench.yaml decides, and then the default.
struct BenchOptions {
  std::vector<std::filesystem::path> paths;  // empty: package::kUsualFolders
  std::vector<Precision> precisions;         // empty: those of each kernel
  std::vector<package::Backend> backends;    // empty: those that exist here
  std::vector<std::string> filters;          // empty: all packages
  std::optional<int> iterations, warmup, rounds;
  std::optional<std::uint64_t> seed;
  std::optional<double> time_limit_s;
  bench::Stop stop = bench::Stop::iterations;
  double budget_s = 30;
  int threads = 1, device = 0;
  bool is_cold = false, has_roofline = true;

  int iterations_of(const package::Package& package) const;
  int warmup_of(const package::Package& package) const;
  std::uint64_t seed_of(const package::Package& package) const;
  double time_limit_of(const package::Package& package) const;
  // The number of processes that a package's samples are divided over.
  int rounds_of(const package::Package& package) const;
  // Samples per round; they add up to iterations_of(), and none has fewer than kLeastPerRound unless there is only one.
  int iterations_of(const package::Package& package, int round) const;
  bool takes(const package::Package& package) const;
  Json to_json() const;
};

inline constexpr int kLeastPerRound = 5;

// A word of --filter matches part of a name; with * ? or [ it is a pattern for the whole name.
bool filter_takes(const std::string& word, const std::string& name);

// As typed. Numbers are kept as text, so that messages can show the flag and the word.
struct BenchFlags {
  std::vector<std::string> paths;
  std::string iterations, warmup, precision, backends, output_dir = "reports", seed, filter, compare_to;
  std::string latency_threshold = "10%", accuracy_threshold = "1e-3";
  std::string stop = "iterations", budget = "30s", rounds, time_limit, threads, device = "0";
  bool is_cold = false, leaves_roofline = false, is_list = false, is_strict = false, is_verbose = false;
  DocumentOutput document_output;
  CiFlags ci;
  ExportFlags exports;
  std::string child;  // set in a child of Weir: the file with its request

  void add_to(CommandSyntax syntax);
  // Each rejects bad values, naming the flag.
  BenchOptions options() const;
  bench::RegressionOptions regression() const;
};

}  // namespace weir::cli
