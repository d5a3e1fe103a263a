#include "cli/bench_output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kKernels = "kernels";

// {"schema": "weir.bench/1", ...
// # weir bench
// The beginning says whose it is: a report may be large, and half of one is somebody's all the same.
bool is_ours(const fs::path& file) {
  std::ifstream from(file, std::ios::binary);
  std::string beginning(200, '\0');
  from.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  beginning.resize(static_cast<std::size_t>(from.gcount()));
  if (file.extension() == ".md") return beginning.starts_with("# weir bench") || beginning.starts_with("# Regressions");
  return beginning.starts_with('{') && beginning.find("\"schema\": \"weir.") != std::string::npos;
}

void check_ours(const fs::path& file) {
  std::error_code ignored;
  if (!fs::exists(file, ignored) || is_ours(file)) return;
  reject(fmt::format("{}: would be replaced, and is no report of weir bench", file.string()),
         "Choose another --output-dir, or use --force.");
}

}  // namespace

BenchFolder::BenchFolder(fs::path folder, bool is_forced) : folder_(std::move(folder)) {
  std::error_code error;
  if (fs::exists(folder_, error) && !fs::is_directory(folder_, error))
    reject(fmt::format("--output-dir {}: is no folder", folder_.string()), "Name a folder: there are several files.");
  fs::create_directories(folder_ / kKernels, error);
  if (error)
    reject(fmt::format("--output-dir {}: cannot be made: {}", folder_.string(), error.message()),
           "Choose another folder.");
  for (const fs::path& one : {folder_, folder_ / kKernels})
    if (::access(one.c_str(), W_OK | X_OK) != 0)
      reject(fmt::format("--output-dir {}: cannot write into {}", folder_.string(), one.string()),
             "Choose another folder.");
  if (is_forced) return;
  for (const char* name : {"env.json", "kernel_manifest.json", "summary.json", "summary.md", "regressions.md"})
    check_ours(folder_ / name);
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_ / kKernels, error))
    if (entry.path().extension() == ".json") check_ours(entry.path());
}

void BenchFolder::write(const std::string& name, const std::string& text) {
  try {
    write_file(folder_ / name, text, true);
  } catch (const Error& error) {
    if (failure_.empty()) failure_ = error.what();
  }
}

void BenchFolder::write_kernel(const std::string& package, const Json& document) {
  write(fmt::format("{}/{}.json", kKernels, package), to_text(document));
}

bool BenchFolder::has(const std::string& name) const {
  std::error_code ignored;
  return fs::exists(folder_ / name, ignored);
}

void BenchFolder::check() const {
  if (!failure_.empty()) fail(fmt::format("the report is not complete: {}", failure_), "Make room, and measure again.");
}

}  // namespace weir::cli
