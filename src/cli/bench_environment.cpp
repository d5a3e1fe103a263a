#include "cli/bench_environment.h"

#include <optional>
#include <sstream>

#include "base/process.h"
#include "cli/process.h"
#include "lab/kernels/document.h"
#include "weir_build.h"

namespace weir::cli {
namespace {

using bench::value_at;

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// g++ (Debian 12.2.0-14) 12.2.0
// Cuda compilation tools, release 12.8, V12.8.93
// HIP version: 6.2.41133-dd7f95766
Json version_of(const std::string& compiler) {
  const auto said = printed_by({compiler, "--version"});
  if (!said) return nullptr;
  std::istringstream lines(*said);
  for (std::string line; std::getline(lines, line);)
    if (line.find("release ") != std::string::npos) return line;
  // A wrapper without what it wraps says something else, and ends well.
  return said->find("Traceback") == std::string::npos ? Json(first_line(*said)) : Json();
}

// Of the working folder. Hooks of its configuration are not run.
Json git_state() {
  const auto commit = printed_by({"git", "rev-parse", "--verify", "HEAD"});
  if (!commit) return nullptr;
  const auto branch = printed_by({"git", "rev-parse", "--abbrev-ref", "HEAD"});
  const auto changes = printed_by(
      {"git", "--no-optional-locks", "-c", "core.fsmonitor=false", "status", "--porcelain", "--untracked-files=no"});
  return {{"commit", first_line(*commit)},
          {"branch", branch ? Json(first_line(*branch)) : Json()},
          {"is_changed", changes ? Json(!changes->empty()) : Json()}};
}

}  // namespace

Json bench_environment(const Json& facts, const std::string& compiler) {
  Json environment = {{"schema", "weir.bench_environment/1"}};
  const Json machine = run_context().environment;
  for (const auto& [key, value] : machine.items()) environment[key] = value;
  environment["weir"] = WEIR_VERSION;
  environment["cpu_model"] = value_at(facts, {"machine", "cpu_model"});
  environment["devices"] = value_at(facts, {"backends"});
  environment["compilers"] = {
      {"host", version_of(compiler)}, {"nvcc", version_of("nvcc")}, {"hipcc", version_of("hipcc")}};
  environment["git"] = git_state();
  return environment;
}

}  // namespace weir::cli
