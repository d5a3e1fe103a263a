// The files of a `weir overlap` run: one folder that rank 0 fills. Knows documents and timelines; measures nothing.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lab/overlap/overlap.h"

namespace weir::cli {

// The folder that a run writes to: as asked, or results/overlap-NAME with a number behind it where that is taken.
// Rejects one that holds files already, unless `overwrites`.
std::filesystem::path overlap_folder(const std::string& asked, const std::string& name, bool overwrites);

// rank_NN.jsonl, summary.json, report.md, rank_NN.svg and trace.json (all ranks on one clock). Returns their names.
std::vector<std::string> write_overlap(const std::filesystem::path& folder, const OverlapRun& run, bool overwrites);

}  // namespace weir::cli
