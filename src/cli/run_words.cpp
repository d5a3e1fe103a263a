#include "cli/run_words.h"

#include <fmt/format.h>

namespace weir::cli {

std::vector<std::string> RunWords::words() const {
  std::vector<std::string> words = {"run"};
  if (!workload.name.empty()) words.push_back(workload.name);
  const auto give = [&](const char* flag, const std::string& value) {
    if (!value.empty()) words.push_back(fmt::format("{}={}", flag, value));
  };
  give("--file", workload.file);
  give("--device", device);
  give("--streams", streams);
  give("--scale", scale);
  for (const auto& [name, value] : params) give("--param", name + "=" + value);
  for (const std::string& setting : sim) give("--sim", setting);
  give("--iterations", iterations);
  give("--warmup", warmup);
  give("--precision", precision);
  give("--submit", submit);
  give("--placement", placement);
  give("--seed", seed);
  give("--compute-units", compute_units);
  if (skips_check) words.emplace_back("--no-check");
  words.emplace_back("--no-trace");
  return words;
}

}  // namespace weir::cli
