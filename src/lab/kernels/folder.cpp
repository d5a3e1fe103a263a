#include "lab/kernels/folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <sstream>

#include "base/error.h"
#include "base/git.h"
#include "base/process.h"
#include "base/schemas.h"
#include "lab/kernels/document.h"
#include "weir_build.h"

namespace weir::bench {
namespace {

namespace fs = std::filesystem;

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// g++ (Debian 12.2.0-14) 12.2.0
// Cuda compilation tools, release 12.8, V12.8.93
// HIP version: 6.2.41133-dd7f95766
Json version_of(const std::string& compiler) {
  const auto printed = printed_by({compiler, "--version"});
  if (!printed) return nullptr;
  std::istringstream lines(*printed);
  for (std::string line; std::getline(lines, line);)
    if (line.find("release ") != std::string::npos) return line;
  // A wrapper whose compiler is missing prints something else, with exit code 0.
  return printed->find("Traceback") == std::string::npos ? Json(first_line(*printed)) : Json();
}

Json git_state(bool asks_changes) {
  const auto head = git_head();
  if (!head) return nullptr;
  return {{"commit", head->commit},
          {"branch", or_null(head->branch)},
          {"is_changed", asks_changes ? or_null(has_git_changes()) : Json()}};
}

constexpr std::string_view kKernels = "kernels";

}  // namespace

BenchFolder::BenchFolder(fs::path folder, bool is_forced) : folder_(std::move(folder)) {
  std::error_code error;
  if (fs::exists(folder_, error) && !fs::is_directory(folder_, error))
    reject(fmt::format("-o {}: is not a folder", folder_.string()), "Name a folder: there are several files.");
  fs::create_directories(folder_ / kKernels, error);
  if (error)
    reject(fmt::format("-o {}: cannot be created: {}", folder_.string(), error.message()), "Choose another folder.");
  for (const fs::path& one : {folder_, folder_ / kKernels})
    if (::access(one.c_str(), W_OK | X_OK) != 0)
      reject(fmt::format("-o {}: cannot write into {}", folder_.string(), one.string()), "Choose another folder.");
  lock_.emplace(folder_ / "summary.json");
  if (is_forced) return;
  for (const char* name : {"env.json", "kernel_manifest.json", "summary.json", "summary.md", "regressions.md"})
    if (has(name))
      reject(fmt::format("-o {}: has {} already", folder_.string(), name),
             "Use --force to replace the report there, or choose another folder.");
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
  if (!failure_.empty())
    fail(fmt::format("the report is not complete: {}", failure_), "Free some disk space, and measure again.");
}

Json bench_environment(const Json& machine, const Json& facts, const std::string& compiler, bool asks_changes) {
  Json environment = {{"schema", schemas::bench_environment}};
  for (const auto& [key, value] : machine.items()) environment[key] = value;
  environment["weir"] = WEIR_VERSION;
  environment["cpu_model"] = value_at(facts, {"machine", "cpu_model"});
  environment["devices"] = value_at(facts, {"backends"});
  environment["compilers"] = {
      {"host", version_of(compiler)}, {"nvcc", version_of("nvcc")}, {"hipcc", version_of("hipcc")}};
  environment["python"] = value_at(facts, {"python"});
  environment["git"] = git_state(asks_changes);
  return environment;
}

}  // namespace weir::bench
