// NVML as the table's board management.
#include <fmt/format.h>

#include <vector>

#include "device/gpu/libraries.h"

namespace weir {
namespace {

// Declared here, because nvml.h is often not installed. The numbers are those of nvml.h.
constexpr int kSmClock = 1;
constexpr int kGpuTemperature = 0;

// nvmlUtilization_t in percent, and nvmlProcessInfo_t as filled by version 3 of its entry.
struct Utilisation {
  unsigned gpu, memory;
};
struct Process {
  unsigned id;
  unsigned long long memory_bytes;
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(Process) == 24);
constexpr int kInsufficientSize = 7;

struct NvmlLibrary : VendorLibrary {
  NvmlLibrary() : VendorLibrary({"libnvidia-ml.so.1"}) {}
  int (*init)() = need("nvmlInit_v2");
  int (*driver_version)(char*, unsigned) = want("nvmlSystemGetDriverVersion");
  int (*find)(const char*, void**) = need("nvmlDeviceGetHandleByPciBusId_v2");
  int (*clock)(void*, int, unsigned*) = want("nvmlDeviceGetClockInfo");
  int (*max_clock)(void*, int, unsigned*) = want("nvmlDeviceGetMaxClockInfo");
  int (*power)(void*, unsigned*) = want("nvmlDeviceGetPowerUsage");
  int (*energy)(void*, unsigned long long*) = want("nvmlDeviceGetTotalEnergyConsumption");
  int (*temperature)(void*, int, unsigned*) = want("nvmlDeviceGetTemperature");
  // Renamed in driver 535; later drivers still export the old name, earlier ones lack the new one.
  int (*throttle)(void*, unsigned long long*) = want("nvmlDeviceGetCurrentClocksEventReasons",
                                                     "nvmlDeviceGetCurrentClocksThrottleReasons");
  int (*utilisation)(void*, Utilisation*) = want("nvmlDeviceGetUtilizationRates");
  int (*processes)(void*, unsigned*, Process*) = want("nvmlDeviceGetComputeRunningProcesses_v3");
};

const NvmlLibrary* g_nvml = nullptr;  // written once, by fill_nvml()

// Idle (1), application clocks (2) and display clocks (0x100) are not throttling.
struct Reason {
  unsigned long long bit;
  const char* words;
};
constexpr Reason kReasons[] = {
    {0x4, "power cap"},
    {0x8, "hardware slowdown"},
    {0x10, "clocks held equal with other GPUs"},
    {0x20, "thermal slowdown by software"},
    {0x40, "thermal slowdown by hardware"},
    {0x80, "power brake"},
};

void* find_nvml_board(const char* bus_id) {
  void* board = nullptr;
  return g_nvml->find(bus_id, &board) == 0 ? board : nullptr;
}

template <class Number, class Entry, class... Arguments>
std::optional<double> value_of(double scale, Entry entry, Arguments... arguments) {
  Number value = 0;
  if (entry == nullptr || entry(arguments..., &value) != 0) return std::nullopt;
  return static_cast<double>(value) * scale;
}

// The list holds every process with a context on the board, including the caller. It is not searched for the caller,
// because in a container it may contain the host's pids. An empty list means unknown.
std::optional<int> other_processes(void* board) {
  if (g_nvml->processes == nullptr) return std::nullopt;
  unsigned count = 0;
  const int result = g_nvml->processes(board, &count, nullptr);
  if ((result != 0 && result != kInsufficientSize) || count == 0) return std::nullopt;
  // The count may include room for processes to come.
  std::vector<Process> processes(count + 16);
  count = static_cast<unsigned>(processes.size());
  if (g_nvml->processes(board, &count, processes.data()) != 0 || count == 0) return std::nullopt;
  return static_cast<int>(count) - 1;
}

std::optional<double> nvml_energy_j(void* board) { return value_of<unsigned long long>(1e-3, g_nvml->energy, board); }

Telemetry read_nvml(void* board) {
  Telemetry telemetry;
  telemetry.clock_mhz = value_of<unsigned>(1, g_nvml->clock, board, kSmClock);
  telemetry.max_clock_mhz = value_of<unsigned>(1, g_nvml->max_clock, board, kSmClock);
  telemetry.temperature_c = value_of<unsigned>(1, g_nvml->temperature, board, kGpuTemperature);
  telemetry.power_w = value_of<unsigned>(1e-3, g_nvml->power, board);
  telemetry.energy_j = nvml_energy_j(board);
  Utilisation utilisation{};
  if (g_nvml->utilisation != nullptr && g_nvml->utilisation(board, &utilisation) == 0)
    telemetry.utilisation = utilisation.gpu / 100.0;
  telemetry.other_processes = other_processes(board);
  unsigned long long bits = 0;
  if (g_nvml->throttle != nullptr && g_nvml->throttle(board, &bits) == 0)
    for (const Reason& reason : kReasons)
      if ((bits & reason.bit) != 0) telemetry.throttle.emplace_back(reason.words);
  return telemetry;
}

std::string fill_nvml(GpuManagement& management) {
  g_nvml = new NvmlLibrary;
  if (std::string reason = g_nvml->shortfall("NVML"); !reason.empty()) return reason;
  if (const int result = g_nvml->init(); result != 0) return fmt::format("NVML does not start: error {}", result);
  management.find = find_nvml_board;
  management.read = read_nvml;
  management.read_energy_j = nvml_energy_j;
  char version[96] = {};
  if (g_nvml->driver_version != nullptr && g_nvml->driver_version(version, sizeof version) == 0)
    management.driver_version = version;
  return "";
}

}  // namespace

const GpuManagement* open_nvml(std::string* reason) {
  static const Opened<GpuManagement> kOpened(fill_nvml);
  return kOpened.get(reason);
}

}  // namespace weir
