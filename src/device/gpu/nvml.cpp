// NVML as the table's board management.
#include <fmt/format.h>

#include <cstring>
#include <utility>
#include <vector>

#include "device/gpu/libraries.h"

namespace weir {
namespace {

// Declared here, because nvml.h is often not installed. The numbers are those of nvml.h.
constexpr int kSmClock = 1;
constexpr int kMemoryClock = 2;
constexpr unsigned kMostLinks = 18;              // NVML_NVLINK_MAX_LINKS
constexpr int kLinkErrors[] = {0, 1, 2, 3};      // replays, recoveries, checksums of flits and of data
constexpr int kCorrected = 0, kUncorrected = 1;  // nvmlMemoryErrorType_t
constexpr int kVolatile = 0;                     // counted since the driver was loaded
constexpr int kRetirementCauses[] = {0, 1};      // many corrected errors, one uncorrected
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

  // For the board.
  int (*serial)(void*, char*, unsigned) = want("nvmlDeviceGetSerial");
  int (*uuid)(void*, char*, unsigned) = want("nvmlDeviceGetUUID");
  int (*vbios)(void*, char*, unsigned) = want("nvmlDeviceGetVbiosVersion");
  int (*inforom)(void*, char*, unsigned) = want("nvmlDeviceGetInforomImageVersion");
  int (*gsp)(void*, char*) = want("nvmlDeviceGetGspFirmwareVersion");
  int (*persistence)(void*, int*) = want("nvmlDeviceGetPersistenceMode");
  int (*compute_mode)(void*, int*) = want("nvmlDeviceGetComputeMode");
  int (*mig)(void*, unsigned*, unsigned*) = want("nvmlDeviceGetMigMode");
  int (*ecc)(void*, int*, int*) = want("nvmlDeviceGetEccMode");
  int (*power_limit)(void*, unsigned*) = want("nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetPowerManagementLimit");
  int (*usual_power_limit)(void*, unsigned*) = want("nvmlDeviceGetPowerManagementDefaultLimit");
  int (*application_clock)(void*, int, unsigned*) = want("nvmlDeviceGetApplicationsClock");
  int (*pcie_generation)(void*, unsigned*) = want("nvmlDeviceGetCurrPcieLinkGeneration");
  int (*pcie_width)(void*, unsigned*) = want("nvmlDeviceGetCurrPcieLinkWidth");
  int (*most_pcie_generation)(void*, unsigned*) = want("nvmlDeviceGetMaxPcieLinkGeneration");
  int (*most_pcie_width)(void*, unsigned*) = want("nvmlDeviceGetMaxPcieLinkWidth");
  int (*pcie_replays)(void*, unsigned*) = want("nvmlDeviceGetPcieReplayCounter");
  int (*link_state)(void*, unsigned, int*) = want("nvmlDeviceGetNvLinkState");
  int (*link_errors)(void*, unsigned, int, unsigned long long*) = want("nvmlDeviceGetNvLinkErrorCounter");
  int (*ecc_errors)(void*, int, int, unsigned long long*) = want("nvmlDeviceGetTotalEccErrors");
  int (*retired_pages)(void*, int, unsigned*, unsigned long long*) = want("nvmlDeviceGetRetiredPages");
  int (*remapped_rows)(void*, unsigned*, unsigned*, unsigned*, unsigned*) = want("nvmlDeviceGetRemappedRows");
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

template <class Entry>
std::string nvml_text(Entry entry, void* board) {
  char text[96] = {};
  if (entry == nullptr || entry(board, text, sizeof text) != 0) return "";
  text[sizeof text - 1] = '\0';
  return text;
}

void add_nvml_settings(void* board, DeviceBoard& found) {
  const auto add = [&](const char* name, std::string text) {
    if (!text.empty()) found.facts[name] = std::move(text);
  };
  const auto add_switch = [&](const char* name, bool is_known, bool is_on) {
    if (is_known) found.facts[name] = is_on ? "on" : "off";
  };
  add("vbios", nvml_text(g_nvml->vbios, board));
  add("inforom", nvml_text(g_nvml->inforom, board));
  char gsp[80] = {};  // NVML_GSP_FIRMWARE_VERSION_BUF_SIZE is 64
  if (g_nvml->gsp != nullptr && g_nvml->gsp(board, gsp) == 0)
    add("firmware", std::string(gsp, strnlen(gsp, sizeof gsp)));
  int now = 0, then = 0;
  const bool has_persistence = g_nvml->persistence != nullptr && g_nvml->persistence(board, &now) == 0;
  add_switch("persistence", has_persistence, now != 0);
  const bool has_ecc = g_nvml->ecc != nullptr && g_nvml->ecc(board, &now, &then) == 0;
  add_switch("ecc", has_ecc, now != 0);
  unsigned mig = 0, pending = 0;
  add_switch("mig", g_nvml->mig != nullptr && g_nvml->mig(board, &mig, &pending) == 0, mig != 0);
  constexpr const char* kModes[] = {"default", "exclusive thread", "prohibited", "exclusive process"};
  if (g_nvml->compute_mode != nullptr && g_nvml->compute_mode(board, &now) == 0 && now >= 0 && now < 4)
    add("compute_mode", kModes[now]);
  for (const auto& [name, clock] :
       {std::pair("application_clock", kSmClock), {"application_memory_clock", kMemoryClock}})
    if (const auto mhz = value_of<unsigned>(1, g_nvml->application_clock, board, clock))
      add(name, fmt::format("{:.0f} MHz", *mhz));
  if (const auto watt = value_of<unsigned>(1e-3, g_nvml->usual_power_limit, board))
    add("default_power_limit", fmt::format("{:.0f} W", *watt));
  if (const auto watt = value_of<unsigned>(1e-3, g_nvml->power_limit, board))
    add("power_limit", fmt::format("{:.0f} W", *watt));
  if (const auto most = value_of<unsigned>(1, g_nvml->most_pcie_generation, board))
    add("max_pcie_generation", fmt::format("{:.0f}", *most));
  if (const auto most = value_of<unsigned>(1, g_nvml->most_pcie_width, board))
    add("max_pcie_width", fmt::format("{:.0f}", *most));
}

void count_nvml_errors(void* board, DeviceBoard& found) {
  const auto add = [](std::optional<double>& sum, double count) { sum = sum.value_or(0) + count; };
  found.pcie_replays = value_of<unsigned>(1, g_nvml->pcie_replays, board);
  for (unsigned link = 0; link < kMostLinks && g_nvml->link_state != nullptr; ++link) {
    int is_up = 0;
    if (g_nvml->link_state(board, link, &is_up) != 0) continue;
    add(found.nvlink_links, is_up != 0 ? 1 : 0);
    for (const int counter : kLinkErrors)
      if (const auto errors = value_of<unsigned long long>(1, g_nvml->link_errors, board, link, counter))
        add(found.nvlink_errors, *errors);
  }
  found.ecc_corrected = value_of<unsigned long long>(1, g_nvml->ecc_errors, board, kCorrected, kVolatile);
  found.ecc_uncorrected = value_of<unsigned long long>(1, g_nvml->ecc_errors, board, kUncorrected, kVolatile);
  for (const int cause : kRetirementCauses) {
    unsigned pages = 0;  // room for none: only the count is of interest
    if (g_nvml->retired_pages == nullptr) break;
    const int result = g_nvml->retired_pages(board, cause, &pages, nullptr);
    if (result == 0 || result == kInsufficientSize) add(found.retired_pages, pages);
  }
  unsigned corrected = 0, uncorrected = 0, is_pending = 0, has_failed = 0;
  if (g_nvml->remapped_rows != nullptr &&
      g_nvml->remapped_rows(board, &corrected, &uncorrected, &is_pending, &has_failed) == 0) {
    found.remapped_rows = static_cast<double>(corrected) + uncorrected;
    found.facts["row_remapping_pending"] = is_pending != 0 ? "yes" : "no";  // until the GPU is reset
    found.facts["row_remapping_failed"] = has_failed != 0 ? "yes" : "no";
  }
}

DeviceBoard read_nvml_board(void* board) {
  DeviceBoard found;
  found.serial = nvml_text(g_nvml->serial, board);
  found.uuid = nvml_text(g_nvml->uuid, board);
  found.power_limit_w = value_of<unsigned>(1e-3, g_nvml->power_limit, board);
  found.memory_clock_mhz = value_of<unsigned>(1, g_nvml->clock, board, kMemoryClock);
  found.pcie_generation = value_of<unsigned>(1, g_nvml->pcie_generation, board);
  found.pcie_width = value_of<unsigned>(1, g_nvml->pcie_width, board);
  add_nvml_settings(board, found);
  count_nvml_errors(board, found);
  return found;
}

std::string fill_nvml(GpuManagement& management) {
  g_nvml = new NvmlLibrary;
  if (std::string reason = g_nvml->shortfall("NVML"); !reason.empty()) return reason;
  if (const int result = g_nvml->init(); result != 0) return fmt::format("NVML does not start: error {}", result);
  management.find = find_nvml_board;
  management.read = read_nvml;
  management.read_energy_j = nvml_energy_j;
  management.read_board = read_nvml_board;
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
