// All workloads of a class (`weir run P0`), each as one run or as a small sweep, and a report of them.
#pragma once

#include <string>

#include "cli/export_flags.h"
#include "cli/run_flags.h"
#include "cli/submit_flags.h"

namespace weir::cli {

struct ClassRun {
  std::string name;  // P0, P1, P2, P3 or all
  RunFlags run;
  std::string streams;
  SubmitFlags submit;
  std::string folder;  // empty: results/NAME; "-": none
  ExportFlags exports;
  bool resumes = false;
  bool prints_json = false;  // the report's document, and no text

  bool is_quiet() const { return run.is_quiet || prints_json; }
};

// Whether the word is a class, and no workload.
bool is_class(const std::string& word);

// Continues after a failure. Returns the exit code.
int run_class(const ClassRun& request);

}  // namespace weir::cli
