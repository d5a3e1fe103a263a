// Names of outputs where the user gave none. One rule for all commands; `weir help files` explains it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace weir::cli {

// What happens to an output of an earlier run: it stays, it is replaced (--force), or it is continued (--resume).
enum class Earlier { stays, is_replaced, is_continued };

Earlier earlier_output(bool is_forced, bool resumes = false);

// STEM + SUFFIX. If an earlier output stays, the first free name of STEM-2, STEM-3, ...; if it is continued, the newest
// existing one. `is_taken` decides where one name stands for several files; by default it checks whether the file
// exists.
std::filesystem::path default_output(const std::string& stem, const std::string& suffix, Earlier earlier,
                                     const std::function<bool(const std::filesystem::path&)>& is_taken = {});

}  // namespace weir::cli
