// The part of NVML that Weir calls, with fixed answers for one board. Prototypes and numbers of nvml.h of driver 580:
// success 0, invalid argument 2, not supported 3, insufficient size 7; clocks graphics 0, SM 1, memory 2, in MHz; power
// in milliwatts. Built twice: the variant `old` lacks what boards before Ampere, or drivers before 535, do not have.
#include <cstdio>
#include <cstring>

#define WEIR_FAKE_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kSuccess = 0, kInvalid = 2, kNotSupported = 3, kInsufficientSize = 7;
int g_board = 0;

int text(void* board, char* to, unsigned size, const char* what) {
  if (board != &g_board) return kInvalid;
  if (std::strlen(what) >= size) return kInsufficientSize;
  std::snprintf(to, size, "%s", what);
  return kSuccess;
}

template <class Number>
int number(void* board, Number* to, Number what) {
  if (board != &g_board) return kInvalid;
  *to = what;
  return kSuccess;
}

}  // namespace

WEIR_FAKE_EXPORT int nvmlInit_v2() { return kSuccess; }
WEIR_FAKE_EXPORT int nvmlSystemGetDriverVersion(char* version, unsigned size) {
  return text(&g_board, version, size, "580.65.06");
}
WEIR_FAKE_EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** board) {
  *board = &g_board;
  return std::strcmp(bus, "00000000:C1:00.0") == 0 ? kSuccess : 6;  // not found
}
WEIR_FAKE_EXPORT int nvmlDeviceGetClockInfo(void* board, int clock, unsigned* mhz) {
  return number(board, mhz, clock == 2 ? 3201u : 1710u);
}
WEIR_FAKE_EXPORT int nvmlDeviceGetMaxClockInfo(void* board, int, unsigned* mhz) { return number(board, mhz, 1980u); }
WEIR_FAKE_EXPORT int nvmlDeviceGetPowerUsage(void* board, unsigned* mw) { return number(board, mw, 690'500u); }
WEIR_FAKE_EXPORT int nvmlDeviceGetTemperature(void* board, int, unsigned* c) { return number(board, c, 61u); }
WEIR_FAKE_EXPORT int nvmlDeviceGetSerial(void* board, char* to, unsigned size) {
  return text(board, to, size, "1650123456789");
}
WEIR_FAKE_EXPORT int nvmlDeviceGetUUID(void* board, char* to, unsigned size) {
  return text(board, to, size, "GPU-00000000-1111-2222-3333-444444444444");
}
WEIR_FAKE_EXPORT int nvmlDeviceGetVbiosVersion(void* board, char* to, unsigned size) {
  return text(board, to, size, "96.00.A5.00.01");
}
WEIR_FAKE_EXPORT int nvmlDeviceGetPersistenceMode(void* board, int* mode) { return number(board, mode, 1); }
WEIR_FAKE_EXPORT int nvmlDeviceGetEccMode(void* board, int* now, int* then) {
  *then = 1;
  return number(board, now, 1);
}
WEIR_FAKE_EXPORT int nvmlDeviceGetComputeMode(void* board, int* mode) { return number(board, mode, 3); }
WEIR_FAKE_EXPORT int nvmlDeviceGetPowerManagementDefaultLimit(void* board, unsigned* mw) {
  return number(board, mw, 700'000u);
}
WEIR_FAKE_EXPORT int nvmlDeviceGetPowerManagementLimit(void* board, unsigned* mw) {
  return number(board, mw, 600'000u);
}
WEIR_FAKE_EXPORT int nvmlDeviceGetCurrPcieLinkGeneration(void* board, unsigned* to) { return number(board, to, 5u); }
WEIR_FAKE_EXPORT int nvmlDeviceGetCurrPcieLinkWidth(void* board, unsigned* to) { return number(board, to, 8u); }
WEIR_FAKE_EXPORT int nvmlDeviceGetMaxPcieLinkWidth(void* board, unsigned* to) { return number(board, to, 16u); }
WEIR_FAKE_EXPORT int nvmlDeviceGetPcieReplayCounter(void* board, unsigned* to) { return number(board, to, 4u); }
WEIR_FAKE_EXPORT int nvmlDeviceGetTotalEccErrors(void* board, int type, int counter, unsigned long long* to) {
  if (counter != 0) return kNotSupported;
  return number(board, to, type == 0 ? 12ull : 1ull);
}
// With room for none it gives the count, and says that there is not enough room.
WEIR_FAKE_EXPORT int nvmlDeviceGetRetiredPages(void* board, int cause, unsigned* count, unsigned long long* addresses) {
  if (board != &g_board) return kInvalid;
#ifdef WEIR_FAKE_NVML_OLD
  const unsigned pages = cause == 0 ? 2 : 1;
  const bool has_room = addresses != nullptr && *count >= pages;
  *count = pages;
  return has_room ? kSuccess : kInsufficientSize;
#else
  (void)cause, (void)count, (void)addresses;
  return kNotSupported;  // they remap rows
#endif
}

#ifndef WEIR_FAKE_NVML_OLD
WEIR_FAKE_EXPORT int nvmlDeviceGetEnforcedPowerLimit(void* board, unsigned* mw) { return number(board, mw, 550'000u); }
WEIR_FAKE_EXPORT int nvmlDeviceGetGspFirmwareVersion(void* board, char* to) { return text(board, to, 64, "580.65.06"); }
WEIR_FAKE_EXPORT int nvmlDeviceGetMigMode(void* board, unsigned* now, unsigned* then) {
  *then = 0;
  return number(board, now, 0u);
}
// 18 links, of which the last is down; each counts one error of each kind.
WEIR_FAKE_EXPORT int nvmlDeviceGetNvLinkState(void* board, unsigned link, int* is_up) {
  return link < 18 ? number(board, is_up, link < 17 ? 1 : 0) : kInvalid;
}
WEIR_FAKE_EXPORT int nvmlDeviceGetNvLinkErrorCounter(void* board, unsigned link, int counter, unsigned long long* to) {
  return link < 18 && counter < 4 ? number(board, to, 1ull) : kInvalid;
}
WEIR_FAKE_EXPORT int nvmlDeviceGetRemappedRows(void* board, unsigned* corrected, unsigned* uncorrected,
                                               unsigned* is_pending, unsigned* has_failed) {
  *uncorrected = 1;
  *is_pending = 1;
  *has_failed = 0;
  return number(board, corrected, 2u);
}
#endif
