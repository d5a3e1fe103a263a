// Reads what the library inside a program wrote (trace/race_format.h). Its writer may have died at any instruction, and
// anybody may have written the file: every count is checked, and what makes no sense is counted. Judges nothing.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "lab/race/log.h"

namespace weir::race {

// Rejects what is not a log, or of another version, with its name. A torn end is where the log ends.
Log read_log(std::string_view bytes, const std::string& name);
Log read_log(const std::filesystem::path& file);

}  // namespace weir::race
