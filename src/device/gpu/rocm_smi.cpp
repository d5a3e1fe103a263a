// ROCm SMI as the table's board management.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>

#include "device/gpu/libraries.h"

namespace weir {
namespace {

// Declared here, because rocm_smi.h is not packaged everywhere. The numbers are those of rocm_smi.h.
constexpr std::uint32_t kEdgeSensor = 0, kJunctionSensor = 1;
constexpr int kCurrentTemperature = 0;
constexpr int kDriver = 0;
constexpr int kSystemClock = 0;
constexpr std::size_t kMaxClocks = 32;

// rsmi_frequencies_t in hertz: {u32 count, u32 current, u64 values[]} up to ROCm 5, preceded by a bool (and padding)
// since ROCm 6. The second word tells them apart: a small index, or a frequency.
struct Clocks {
  std::uint64_t words[64];
};
struct ClockView {
  std::uint32_t count = 0, current = 0;
  const std::uint64_t* values = nullptr;
};
ClockView view_of(const Clocks& clocks) {
  const auto half = [&](std::size_t i) { return static_cast<std::uint32_t>(clocks.words[i / 2] >> (i % 2 * 32)); };
  ClockView view;
  if (clocks.words[1] <= kMaxClocks) {
    view = {half(1), half(2), clocks.words + 2};
  } else {
    view = {half(0), half(1), clocks.words + 1};
  }
  return view.count > kMaxClocks || view.current >= view.count ? ClockView{} : view;
}

// rsmi_error_count_t, of one block of the GPU.
struct ErrorCount {
  std::uint64_t corrected, uncorrected;
};
constexpr int kErrorBlocks = 14;  // RSMI_GPU_BLOCK_UMC is 1 << 0, RSMI_GPU_BLOCK_FUSE is 1 << 13
constexpr int kRocmMemoryClock = 4;

struct RocmSmiLibrary : VendorLibrary {
  RocmSmiLibrary()
      : VendorLibrary(
            library_places({"", "/opt/rocm/lib/"}, {"librocm_smi64.so.8", "librocm_smi64.so.7", "librocm_smi64.so.6",
                                                    "librocm_smi64.so.5", "librocm_smi64.so.1"})) {}
  int (*init)(std::uint64_t) = need("rsmi_init");
  int (*count)(std::uint32_t*) = need("rsmi_num_monitor_devices");
  int (*bus_id)(std::uint32_t, std::uint64_t*) = need("rsmi_dev_pci_id_get");
  // In thousandths of a degree.
  int (*temperature)(std::uint32_t, std::uint32_t, int, std::int64_t*) = want("rsmi_dev_temp_metric_get");
  // In microwatts; the second entry exists since ROCm 6 and is the only one on MI300.
  int (*power)(std::uint32_t, std::uint32_t, std::uint64_t*) = want("rsmi_dev_power_ave_get");
  int (*power_now)(std::uint32_t, std::uint64_t*, int*) = want("rsmi_dev_power_get");
  // Ticks, microjoules per tick, time of the reading.
  int (*energy)(std::uint32_t, std::uint64_t*, float*, std::uint64_t*) = want("rsmi_dev_energy_count_get");
  int (*clocks)(std::uint32_t, int, Clocks*) = want("rsmi_dev_gpu_clk_freq_get");
  int (*busy)(std::uint32_t, std::uint32_t*) = want("rsmi_dev_busy_percent_get");  // in percent
  int (*version)(int, char*, std::uint32_t) = want("rsmi_version_str_get");

  // For the board.
  int (*serial)(std::uint32_t, char*, std::uint32_t) = want("rsmi_dev_serial_number_get");
  int (*unique_id)(std::uint32_t, std::uint64_t*) = want("rsmi_dev_unique_id_get");
  int (*vbios)(std::uint32_t, char*, std::uint32_t) = want("rsmi_dev_vbios_version_get");
  int (*power_cap)(std::uint32_t, std::uint32_t, std::uint64_t*) = want("rsmi_dev_power_cap_get");  // microwatts
  int (*performance)(std::uint32_t, int*) = want("rsmi_dev_perf_level_get");
  int (*replays)(std::uint32_t, std::uint64_t*) = want("rsmi_dev_pci_replay_counter_get");
  int (*ecc)(std::uint32_t, std::uint64_t, ErrorCount*) = want("rsmi_dev_ecc_count_get");
  int (*reserved_pages)(std::uint32_t, std::uint32_t*, void*) = want("rsmi_dev_memory_reserved_pages_get");
};

const RocmSmiLibrary* g_rocm_smi = nullptr;  // written once, by fill_rocm_smi()

// The runtime writes 0000:c1:00.0; the library uses domain << 32 | bus << 8 | device << 3 | function, with the
// partition in bits 28 to 31.
std::optional<std::uint64_t> parse_bus_id(const char* text) {
  unsigned domain = 0, bus = 0, device = 0, function = 0;
  if (std::sscanf(text, "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4) return std::nullopt;
  return std::uint64_t{domain} << 32 | (bus & 0xffu) << 8 | (device & 0x1fu) << 3 | (function & 7u);
}

// Boards count from 0, but a null pointer means no board, so the pointer is the number plus one.
void* find_rocm_smi_board(const char* bus_id) {
  const auto wanted = parse_bus_id(bus_id);
  std::uint32_t count = 0;
  if (!wanted || g_rocm_smi->count(&count) != 0) return nullptr;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::uint64_t found = 0;
    constexpr std::uint64_t kPartition = 0xf0000000u;
    if (g_rocm_smi->bus_id(i, &found) == 0 && (found & ~kPartition) == *wanted)
      return reinterpret_cast<void*>(static_cast<std::uintptr_t>(i) + 1);
  }
  return nullptr;
}

std::uint32_t index_of(void* board) { return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(board) - 1); }

std::optional<double> rocm_smi_energy_j(void* board) {
  std::uint64_t ticks = 0, when = 0;
  float per_tick = 0;
  if (g_rocm_smi->energy == nullptr || g_rocm_smi->energy(index_of(board), &ticks, &per_tick, &when) != 0)
    return std::nullopt;
  return static_cast<double>(ticks) * static_cast<double>(per_tick) * 1e-6;
}

Telemetry read_rocm_smi(void* board) {
  const std::uint32_t index = index_of(board);
  Telemetry telemetry;
  // Not every board has both sensors: MI300 has no edge sensor.
  for (const std::uint32_t sensor : {kJunctionSensor, kEdgeSensor}) {
    std::int64_t temperature = 0;
    if (g_rocm_smi->temperature == nullptr || telemetry.temperature_c) break;
    if (g_rocm_smi->temperature(index, sensor, kCurrentTemperature, &temperature) == 0)
      telemetry.temperature_c = static_cast<double>(temperature) * 1e-3;
  }
  std::uint64_t power = 0;
  int kind = 0;
  if ((g_rocm_smi->power_now != nullptr && g_rocm_smi->power_now(index, &power, &kind) == 0) ||
      (g_rocm_smi->power != nullptr && g_rocm_smi->power(index, 0, &power) == 0))
    telemetry.power_w = static_cast<double>(power) * 1e-6;
  Clocks clocks{};
  if (g_rocm_smi->clocks != nullptr && g_rocm_smi->clocks(index, kSystemClock, &clocks) == 0) {
    const ClockView view = view_of(clocks);
    if (view.count > 0) {
      telemetry.clock_mhz = static_cast<double>(view.values[view.current]) * 1e-6;
      telemetry.max_clock_mhz = static_cast<double>(*std::max_element(view.values, view.values + view.count)) * 1e-6;
    }
  }
  telemetry.energy_j = rocm_smi_energy_j(board);
  std::uint32_t busy = 0;
  if (g_rocm_smi->busy != nullptr && g_rocm_smi->busy(index, &busy) == 0) telemetry.utilisation = busy / 100.0;
  return telemetry;
}

template <class Entry>
std::string rocm_smi_text(Entry entry, std::uint32_t index) {
  char text[256] = {};
  if (entry == nullptr || entry(index, text, sizeof text) != 0) return "";
  text[sizeof text - 1] = '\0';
  return text;
}

DeviceBoard read_rocm_smi_board(void* board) {
  const std::uint32_t index = index_of(board);
  DeviceBoard found;
  found.serial = rocm_smi_text(g_rocm_smi->serial, index);
  std::uint64_t id = 0;
  if (g_rocm_smi->unique_id != nullptr && g_rocm_smi->unique_id(index, &id) == 0)
    found.uuid = fmt::format("{:016x}", id);
  if (std::string vbios = rocm_smi_text(g_rocm_smi->vbios, index); !vbios.empty()) found.facts["vbios"] = vbios;
  std::uint64_t microwatt = 0;
  if (g_rocm_smi->power_cap != nullptr && g_rocm_smi->power_cap(index, 0, &microwatt) == 0) {
    found.power_limit_w = static_cast<double>(microwatt) * 1e-6;
    found.facts["power_limit"] = fmt::format("{:.0f} W", *found.power_limit_w);
  }
  // rsmi_dev_perf_level_t
  constexpr const char* kLevels[] = {
      "auto",       "low", "high", "manual", "stable_std", "stable_peak", "stable_min_mclk", "stable_min_sclk",
      "determinism"};
  int level = 0;
  if (g_rocm_smi->performance != nullptr && g_rocm_smi->performance(index, &level) == 0 && level >= 0 &&
      level < static_cast<int>(std::size(kLevels)))
    found.facts["performance_level"] = kLevels[level];
  Clocks clocks{};
  if (g_rocm_smi->clocks != nullptr && g_rocm_smi->clocks(index, kRocmMemoryClock, &clocks) == 0)
    if (const ClockView view = view_of(clocks); view.count > 0)
      found.memory_clock_mhz = static_cast<double>(view.values[view.current]) * 1e-6;
  std::uint64_t replays = 0;
  if (g_rocm_smi->replays != nullptr && g_rocm_smi->replays(index, &replays) == 0)
    found.pcie_replays = static_cast<double>(replays);
  for (int block = 0; block < kErrorBlocks && g_rocm_smi->ecc != nullptr; ++block) {
    ErrorCount errors{};
    if (g_rocm_smi->ecc(index, std::uint64_t{1} << block, &errors) != 0) continue;
    found.ecc_corrected = found.ecc_corrected.value_or(0) + static_cast<double>(errors.corrected);
    found.ecc_uncorrected = found.ecc_uncorrected.value_or(0) + static_cast<double>(errors.uncorrected);
  }
  std::uint32_t pages = 0;
  if (g_rocm_smi->reserved_pages != nullptr && g_rocm_smi->reserved_pages(index, &pages, nullptr) == 0)
    found.retired_pages = pages;
  return found;
}

std::string fill_rocm_smi(GpuManagement& management) {
  g_rocm_smi = new RocmSmiLibrary;
  if (std::string reason = g_rocm_smi->shortfall("ROCm SMI", g_rocm_smi->name()); !reason.empty()) return reason;
  if (const int result = g_rocm_smi->init(0); result != 0)
    return fmt::format("ROCm SMI does not start: error {}", result);
  management.find = find_rocm_smi_board;
  management.read = read_rocm_smi;
  management.read_energy_j = rocm_smi_energy_j;
  management.read_board = read_rocm_smi_board;
  char version[128] = {};
  if (g_rocm_smi->version != nullptr && g_rocm_smi->version(kDriver, version, sizeof version) == 0)
    management.driver_version = fmt::format("amdgpu {}", version);
  return "";
}

}  // namespace

const GpuManagement* open_rocm_smi(std::string* reason) {
  static const Opened<GpuManagement> kOpened(fill_rocm_smi);
  return kOpened.get(reason);
}

}  // namespace weir
