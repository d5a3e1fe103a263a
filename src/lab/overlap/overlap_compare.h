// Compares runs of `weir overlap`: step time, exposed communication and efficiency, by the statistics of `weir
// compare`. Reads weir.overlap/2 documents; prints nothing.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "run/compare.h"

namespace weir {

// One run, or one point of a sweep.
struct OverlapPointFile {
  std::string origin;  // the file
  std::string label;   // distinguishes it from the others of its folder; "" for the only one
  std::map<std::string, std::string> config;
  std::map<std::string, std::string> settings;  // settings of the device and the environment, for notes
  bool is_virtual = false;                      // measured in virtual time, which is the same in every process
  std::string failure;
  std::vector<double> step_ns, exposed_ns, efficiency;
  // How many of the samples came from each process, in their order: of step_ns, exposed_ns and efficiency, which a
  // traced step may lack. Empty: one process, or not known.
  std::vector<std::size_t> step_processes, traced_processes, efficiency_processes;
};

struct OverlapFile {
  std::string name;
  std::vector<OverlapPointFile> points;
};

// Reads a summary.json, a folder of `weir overlap -o`, or the folder of a sweep. Rejects anything else.
OverlapFile load_overlap(const std::filesystem::path& path);

// Pairs points by label. If both files have only one point, these are compared whatever their settings, and notes list
// the differences. Rejects files that have no point in common.
Comparison compare_overlap(const OverlapFile& baseline, const OverlapFile& test, const CompareOptions& options = {});

}  // namespace weir
