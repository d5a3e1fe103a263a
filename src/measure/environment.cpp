#include "measure/environment.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <optional>
#include <sstream>
#include <thread>

#include "base/file.h"
#include "base/json.h"
#include "base/options.h"
#include "measure/recorded_variables.h"
#include "weir_build.h"

namespace weir {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& path) {
  std::istringstream file(read_kernel_file(path));
  std::string line;
  std::getline(file, line);
  return line;
}

// PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"
std::string system_name(const fs::path& root) {
  std::istringstream file(read_kernel_file(root / "etc/os-release"));
  for (std::string line; std::getline(file, line);) {
    constexpr std::string_view kKey = "PRETTY_NAME=";
    if (!line.starts_with(kKey)) continue;
    std::string value = line.substr(kKey.size());
    std::erase(value, '"');
    return value;
  }
  return {};
}

// MemTotal:       24659532 kB
Json memory_bytes(const fs::path& root) {
  std::istringstream file(read_kernel_file(root / "proc/meminfo"));
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("MemTotal:")) continue;
    const std::size_t digit = line.find_first_of("0123456789");
    if (digit == std::string::npos) break;
    const std::size_t end = line.find(' ', digit);
    if (const auto kib = parse_integer(std::string_view(line).substr(digit, end - digit))) return *kib * 1024;
  }
  return nullptr;
}

}  // namespace

Json describe_environment(std::span<const std::string> variables, const fs::path& root) {
  Json json = Json::object();
  utsname system{};
  uname(&system);
  json["system"] = text_or_null(system_name(root));
  json["kernel"] = fmt::format("{} {}", system.sysname, system.release);
  json["architecture"] = system.machine;
  json["cpus"] = std::thread::hardware_concurrency();
  json["memory_bytes"] = memory_bytes(root);
  json["governor"] = text_or_null(first_line(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
  json["load_average"] = text_or_null(first_line(root / "proc/loadavg"));
  json["compiler"] = WEIR_COMPILER;
  json["build_type"] = WEIR_BUILD_TYPE;
  Json kept = Json::object();
  for (const std::string& line : variables) {
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    const std::string name = line.substr(0, equals);
    if (auto value = recorded_variable(name, std::string_view(line).substr(equals + 1))) kept[name] = std::move(*value);
  }
  json["variables"] = std::move(kept);
  return json;
}

std::optional<double> rapl_energy_j(const fs::path& sys) {
  std::error_code status;
  double joules = 0;
  bool found = false;
  for (const auto& entry : fs::directory_iterator(sys / "class/powercap", status)) {
    // Packages are intel-rapl:0, intel-rapl:1; they include their parts (intel-rapl:0:0).
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("intel-rapl:") || std::count(name.begin(), name.end(), ':') != 1) continue;
    if (const auto value = parse_integer(first_line(entry.path() / "energy_uj"))) {
      joules += static_cast<double>(*value) * 1e-6;
      found = true;
    }
  }
  if (!found) return std::nullopt;
  return joules;
}

std::vector<int> usable_cores() {
  cpu_set_t set;
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(static_cast<std::size_t>(core), &set)) cores.push_back(core);
  return cores;
}

}  // namespace weir
