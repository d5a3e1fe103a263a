#include "report/history/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/options.h"
#include "base/units.h"

namespace weir::history {
namespace {

constexpr std::size_t kIdDigits = 12;
constexpr std::size_t kLongestLabel = 200;
constexpr std::string_view kVariable = "environment.variables.";

// Of the job, not of the machine: they differ from run to run. Where something is installed says nothing of speed,
// unlike where the loader looks first.
bool is_of_this_run(std::string_view name) {
  constexpr std::array<std::string_view, 5> kPrefixes = {"SLURM_", "PMIX_", "OMPI_MCA_orte_", "OMPI_MCA_ess_",
                                                         "OMPI_MCA_shmem_"};
  if (std::any_of(kPrefixes.begin(), kPrefixes.end(),
                  [&](std::string_view prefix) { return name.starts_with(prefix); }))
    return true;
  return name != "LD_LIBRARY_PATH" && (name.ends_with("_PATH") || name.ends_with("_HOME") || name.ends_with("_ROOT"));
}

// What kernels reserve for themselves differs from version to version by some megabytes: whole GiB are the machine's.
std::string rounded_memory(const std::string& bytes) {
  const auto value = parse_integer(bytes);
  if (!value) return bytes;
  return fmt::format("{:.0f} GiB", std::round(static_cast<double>(*value) / (1024.0 * 1024 * 1024)));
}

}  // namespace

std::string digest_of(std::string_view text) {
  __extension__ using Wide = unsigned __int128;
  Wide hash = Wide{0x6c62272e07bb0142U} << 64 | 0x62b821756295c58dU;
  const Wide prime = Wide{1} << 88 | 0x13b;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= prime;
  }
  return fmt::format("{:016x}{:016x}", static_cast<std::uint64_t>(hash >> 64), static_cast<std::uint64_t>(hash));
}

Machine machine_of(const ResultPoint& point) {
  Machine machine;
  if (!point.device.empty()) machine.facts["device.name"] = point.device;
  constexpr std::array<std::string_view, 6> kFacts = {"environment.architecture", "environment.cpus",
                                                      "environment.cpu_model",    "environment.governor",
                                                      "environment.build_type",   "environment.scheduler.policy"};
  for (const auto& [name, value] : point.settings) {
    if (name.starts_with("device.") || std::find(kFacts.begin(), kFacts.end(), name) != kFacts.end())
      machine.facts[name] = value;
    else if (name == "environment.memory_bytes")
      machine.facts["environment.memory"] = rounded_memory(value);
    else if (name.starts_with(kVariable) && !is_of_this_run(std::string_view(name).substr(kVariable.size())))
      machine.facts[name] = value;
    else if (name.starts_with("environment.rocm_info.") || name.starts_with("environment.driver_info."))
      machine.facts[name] = value;  // AORTA's words for the driver
  }
  std::string all;
  for (const auto& [name, value] : machine.facts)
    all += fmt::format("{}:{}={}:{}\n", name.size(), name, value.size(), value);
  machine.id = digest_of(all).substr(0, kIdDigits);
  const auto model = point.settings.find("device.model");
  std::string label = model == point.settings.end() ? "" : model->second;
  if (!point.device.empty()) label += (label.empty() ? "" : ", ") + point.device;
  machine.label = label.empty() ? "unknown device" : label.substr(0, kLongestLabel);
  return machine;
}

}  // namespace weir::history
