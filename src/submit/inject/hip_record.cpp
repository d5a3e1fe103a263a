#include "submit/inject/hip_record.h"

#include <string>

#include "submit/inject/flight_record.h"
#include "submit/inject/hip_calls.h"

namespace weir::inject {
namespace {

std::string prepare(bool is_exact) {
  if (is_exact) {
    flight_recorder().header().is_exact = 0;
    note_in_record("exact times need rocprofv3: weir profile -- program");
  }
  if (const char* const missing = missing_in_hip(); missing != nullptr) return std::string("HIP lacks ") + missing;
  return {};
}

std::string switch_on(Recorder& recorder, const CallsUser& user, bool) {
  record_hip_calls(recorder, user);
  return {};
}

RecordedVendor vendor_of_hip() noexcept {
  return {
      .driver = all_devices_driver(),
      .prepare = prepare,
      .switch_on = switch_on,
      .switch_off = [](bool) { stop_recording_hip_calls(); },
      .flush = [](bool) {},
      .handed_over = []() -> std::uint64_t { return 0; },
      .abandon = [](bool) { abandon_hip_calls(); },
  };
}

}  // namespace

void start_hip_record() {
  static const RecordedVendor kVendor = vendor_of_hip();
  start_flight_record(kVendor);
}

}  // namespace weir::inject
