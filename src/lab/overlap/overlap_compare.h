// Compares runs of `weir overlap`: step time, exposed communication and efficiency, by the statistics of `weir
// compare`. Reads weir.overlap/1 documents; prints nothing.
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
  std::string label;   // what tells it from the others of its folder; "" where it is the only one
  std::map<std::string, std::string> config;
  std::map<std::string, std::string> settings;  // of the device and the environment, for notes
  std::string failure;
  std::vector<double> step_ns, exposed_ns, efficiency;
};

struct OverlapFile {
  std::string name;
  std::vector<OverlapPointFile> points;
};

// A summary.json, a folder of `weir overlap -o`, or one of a sweep. Rejects what is none of these.
OverlapFile load_overlap(const std::filesystem::path& path);

// Points are paired by label; where both have only one, these are compared whatever their settings, and notes tell how
// they differ. Rejects files that have no point in common.
Comparison compare_overlap(const OverlapFile& baseline, const OverlapFile& test, const CompareOptions& options = {});

}  // namespace weir
