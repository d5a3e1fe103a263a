#include "device/cpu/host.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <string_view>

#include "base/file.h"
#include "measure/environment.h"

namespace weir::cpu {
namespace {

// The value of the first line "key<blanks>: value" of a file.
std::string field(const std::string& path, std::string_view key) {
  std::istringstream file(read_kernel_file(path));
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || !line.starts_with(key)) continue;
    if (line.find_first_not_of(" \t", key.size()) != colon) continue;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    if (begin != std::string::npos) return line.substr(begin);
  }
  return {};
}

std::optional<std::uint64_t> number_in(const std::string& text, int base = 10) {
  try {
    return std::stoull(text, nullptr, base);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::optional<std::uint64_t> number_of(const std::string& path) {
  std::istringstream file(read_kernel_file(path));
  std::string text;
  file >> text;
  return number_in(text);
}

// MemAvailable:   24117248 kB
std::optional<std::uint64_t> meminfo_bytes(const HostRoots& roots, std::string_view key) {
  const auto kibibytes = number_in(field(roots.proc + "/meminfo", key));
  return kibibytes ? std::optional(*kibibytes * 1024) : std::nullopt;
}

// arm64 kernels print numbers where x86 ones print a name; this table covers servers and workstations.
std::string arm_model(std::uint64_t implementer, std::uint64_t part) {
  struct Part {
    std::uint64_t implementer, part;
    std::string_view name;
  };
  static constexpr Part kParts[] = {
      {0x41, 0xd03, "ARM Cortex-A53"},  {0x41, 0xd08, "ARM Cortex-A72"},  {0x41, 0xd0b, "ARM Cortex-A76"},
      {0x41, 0xd0c, "ARM Neoverse-N1"}, {0x41, 0xd40, "ARM Neoverse-V1"}, {0x41, 0xd42, "ARM Cortex-A78AE"},
      {0x41, 0xd49, "ARM Neoverse-N2"}, {0x41, 0xd4f, "ARM Neoverse-V2"}, {0x41, 0xd83, "ARM Neoverse-V3AE"},
      {0x41, 0xd84, "ARM Neoverse-V3"}, {0x41, 0xd8e, "ARM Neoverse-N3"}, {0x48, 0xd01, "HiSilicon Kunpeng-920"},
      {0x4e, 0x004, "NVIDIA Carmel"},   {0xc0, 0xac3, "Ampere-1"},        {0xc0, 0xac4, "Ampere-1a"},
  };
  for (const Part& known : kParts)
    if (known.implementer == implementer && known.part == part) return std::string(known.name);
  return fmt::format("arm64 CPU (implementer {:#04x}, part {:#05x})", implementer, part);
}

}  // namespace

std::string host_model(const HostRoots& roots) {
  const std::string cpuinfo = roots.proc + "/cpuinfo";
  // model name      : AMD EPYC 9654 96-Core Processor
  if (std::string name = field(cpuinfo, "model name"); !name.empty()) return name;
  // CPU implementer : 0x41
  // CPU part        : 0xd40
  const auto implementer = number_in(field(cpuinfo, "CPU implementer"), 16);
  const auto part = number_in(field(cpuinfo, "CPU part"), 16);
  return implementer && part ? arm_model(*implementer, *part) : "unknown CPU";
}

std::optional<std::uint64_t> total_memory_bytes(const HostRoots& roots) { return meminfo_bytes(roots, "MemTotal"); }

std::optional<std::uint64_t> available_memory_bytes(const HostRoots& roots) {
  auto available = meminfo_bytes(roots, "MemAvailable");
  // Inside a container its own group's files are at the top. memory.max is "max" if there is no limit.
  const auto limit = number_of(roots.sys + "/fs/cgroup/memory.max");
  const auto used = number_of(roots.sys + "/fs/cgroup/memory.current");
  if (limit && used) {
    const std::uint64_t room = *limit - std::min(*limit, *used);
    available = available ? std::min(*available, room) : room;
  }
  return available;
}

Telemetry host_telemetry(const HostRoots& roots) {
  const std::string cpufreq = roots.sys + "/devices/system/cpu/cpu0/cpufreq/";
  Telemetry telemetry;
  // Both in kHz: 2600000
  if (const auto khz = number_of(cpufreq + "scaling_cur_freq")) telemetry.clock_mhz = static_cast<double>(*khz) / 1000;
  if (const auto khz = number_of(cpufreq + "cpuinfo_max_freq"))
    telemetry.max_clock_mhz = static_cast<double>(*khz) / 1000;
  telemetry.energy_j = rapl_energy_j(roots.sys);
  return telemetry;
}

}  // namespace weir::cpu
