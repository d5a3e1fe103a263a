// Which files a command that reads traces means: those that were typed, and the traces in folders. Reads no trace.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "device/rank/communicator.h"
#include "trace/import/import.h"

namespace weir::cli {

// A folder stands for the traces directly in it, by name, numbers in names by their value; other files in it are
// passed over, which `notes` says. "-" is standard input. Rejects a folder without traces.
std::vector<std::filesystem::path> trace_files(const std::vector<std::string>& typed, const ImportOptions& import,
                                               std::vector<std::string>& notes);

// What rank 0 found, on every rank.
std::vector<CaptureFiles> broadcast_captures(Communicator& ranks, const std::vector<CaptureFiles>& found);

}  // namespace weir::cli
