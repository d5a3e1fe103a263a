// The part of ROCm SMI that Weir calls, with fixed answers for the boards of the fake HIP runtime. Prototypes and
// numbers of rocm_smi.h of ROCm 6 (not packaged by Debian): rsmi_status_t success 0, invalid_args 1, not_supported 2;
// temperature sensors edge 0, junction 1, memory 2, metric current 0, in thousandths of a degree; power in microwatts;
// clocks system 0 and memory 4, in Hz; an energy counter with its resolution in microjoules.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#define WEIR_FAKE_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kSuccess = 0, kInvalid = 1, kNotSupported = 2;
constexpr std::uint32_t kBoards = 4;  // as many as there may be fake devices

// Since ROCm 6; before, there was no `has_deep_sleep`.
struct Frequencies {
  bool has_deep_sleep;
  std::uint32_t supported, current;
  std::uint64_t hertz[33];
};
static_assert(sizeof(Frequencies) == 280);

struct Version {
  std::uint32_t major, minor, patch;
  const char* build;
};

}  // namespace

WEIR_FAKE_EXPORT int rsmi_init(std::uint64_t) { return kSuccess; }

WEIR_FAKE_EXPORT int rsmi_num_monitor_devices(std::uint32_t* count) {
  *count = kBoards;
  return kSuccess;
}

// Domain in the upper half, bus in bits 8 to 15; numbered the other way round than HIP's, as boards may be.
WEIR_FAKE_EXPORT int rsmi_dev_pci_id_get(std::uint32_t board, std::uint64_t* id) {
  if (board >= kBoards) return kInvalid;
  *id = std::uint64_t{0xc1 + kBoards - 1 - board} << 8;
  return kSuccess;
}

// An MI300 has no sensor at the edge.
WEIR_FAKE_EXPORT int rsmi_dev_temp_metric_get(std::uint32_t board, std::uint32_t sensor, int metric,
                                              std::int64_t* value) {
  if (board >= kBoards || metric != 0) return kInvalid;
  if (sensor != 1) return kNotSupported;
  *value = 41'000;
  // WEIR_FAKE_SMI=heating: a board that is a degree hotter whenever somebody looks.
  static std::atomic<int> looks = 0;
  if (const char* const how = std::getenv("WEIR_FAKE_SMI"); how != nullptr && std::string_view(how) == "heating")
    *value += 1000 * looks.fetch_add(1);
  return kSuccess;
}

// An MI300 says what it takes now, not what it took on average.
WEIR_FAKE_EXPORT int rsmi_dev_power_ave_get(std::uint32_t, std::uint32_t, std::uint64_t*) { return kNotSupported; }

WEIR_FAKE_EXPORT int rsmi_dev_power_get(std::uint32_t board, std::uint64_t* microwatt, int* type) {
  if (board >= kBoards) return kInvalid;
  *microwatt = 142'000'000;
  *type = 1;
  return kSuccess;
}

WEIR_FAKE_EXPORT int rsmi_dev_gpu_clk_freq_get(std::uint32_t board, int clock, Frequencies* frequencies) {
  if (board >= kBoards) return kInvalid;
  if (clock != 0 && clock != 4) return kNotSupported;
  // One by one, as the real one does: what lies between them stays as it was.
  frequencies->has_deep_sleep = false;
  frequencies->supported = 3;
  frequencies->current = 1;
  frequencies->hertz[0] = 132'000'000;
  frequencies->hertz[1] = 1'300'000'000;
  frequencies->hertz[2] = 2'100'000'000;
  if (clock == 4) frequencies->hertz[1] = 900'000'000;
  return kSuccess;
}

WEIR_FAKE_EXPORT int rsmi_dev_energy_count_get(std::uint32_t board, std::uint64_t* count, float* resolution,
                                               std::uint64_t* timestamp) {
  if (board >= kBoards) return kInvalid;
  *count = 100'000'000;
  *resolution = 15.259f;
  *timestamp = 1;
  return kSuccess;
}

WEIR_FAKE_EXPORT int rsmi_dev_busy_percent_get(std::uint32_t board, std::uint32_t* percent) {
  if (board >= kBoards) return kInvalid;
  *percent = 37;
  return kSuccess;
}

WEIR_FAKE_EXPORT int rsmi_dev_serial_number_get(std::uint32_t board, char* text, std::uint32_t size) {
  if (board >= kBoards) return kInvalid;
  std::snprintf(text, size, "FAKE%04u", board);
  return kSuccess;
}

WEIR_FAKE_EXPORT int rsmi_dev_unique_id_get(std::uint32_t board, std::uint64_t* id) {
  if (board >= kBoards) return kInvalid;
  *id = 0xfa4e000000000000u + board;
  return kSuccess;
}

WEIR_FAKE_EXPORT int rsmi_dev_vbios_version_get(std::uint32_t board, char* text, std::uint32_t size) {
  if (board >= kBoards) return kInvalid;
  std::snprintf(text, size, "113-FAKE-001");
  return kSuccess;
}

WEIR_FAKE_EXPORT int rsmi_dev_power_cap_get(std::uint32_t board, std::uint32_t sensor, std::uint64_t* microwatt) {
  if (board >= kBoards || sensor != 0) return kInvalid;
  *microwatt = 750'000'000;
  return kSuccess;
}

WEIR_FAKE_EXPORT int rsmi_dev_perf_level_get(std::uint32_t board, int* level) {
  if (board >= kBoards) return kInvalid;
  *level = 0;
  return kSuccess;
}

WEIR_FAKE_EXPORT int rsmi_dev_pci_replay_counter_get(std::uint32_t board, std::uint64_t* count) {
  if (board >= kBoards) return kInvalid;
  *count = 3;
  return kSuccess;
}

// Two blocks have counters: the memory (1 << 0), which had an error, and the compute units (1 << 2).
WEIR_FAKE_EXPORT int rsmi_dev_ecc_count_get(std::uint32_t board, std::uint64_t block, std::uint64_t* counts) {
  if (board >= kBoards) return kInvalid;
  if (block != 1 && block != 4) return kNotSupported;
  counts[0] = block == 1 ? 2 : 0;
  counts[1] = block == 1 ? 1 : 0;
  return kSuccess;
}

WEIR_FAKE_EXPORT int rsmi_dev_memory_reserved_pages_get(std::uint32_t board, std::uint32_t* count, void* records) {
  if (board >= kBoards || records != nullptr) return kInvalid;
  *count = 5;
  return kSuccess;
}

WEIR_FAKE_EXPORT int rsmi_version_get(Version* version) {
  *version = {7, 7, 0, "fake"};
  return kSuccess;
}

WEIR_FAKE_EXPORT int rsmi_version_str_get(int component, char* text, std::uint32_t size) {
  if (component != 0) return kInvalid;
  std::snprintf(text, size, "6.12.12");
  return kSuccess;
}
