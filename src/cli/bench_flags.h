// The flags of `weir bench`, and the settings of a run that follow from them.
#pragma once

#include <string>
#include <vector>

#include "cli/ci_flags.h"
#include "cli/command.h"
#include "cli/document_output.h"
#include "cli/export_flags.h"
#include "lab/kernels/options.h"
#include "lab/kernels/regression.h"

namespace weir::cli {

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
  bench::BenchOptions options() const;
  bench::RegressionOptions regression() const;
};

}  // namespace weir::cli
