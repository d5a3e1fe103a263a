// Runtime logs of any origin: whatever the text, it is read to its end within bounds or rejected with our own error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "amd/log/log_document.h"
#include "base/error.h"

namespace {

// Takes every call, as the join does.
struct Counting : weir::amd::LogSink {
  using LogSink::on;
  std::uint64_t events = 0;
  void on(const weir::amd::ApiCall&) override { ++events; }
  void on(const weir::amd::Packet& packet) override { events += packet.kernel.size(); }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    std::vector<weir::amd::SummarisedLog> logs(1);
    logs[0].file = "fuzz";
    logs[0].reading = weir::amd::read_log_text(text, "fuzz", logs[0].summary);
    const weir::amd::LogReading& reading = logs[0].reading;
    if (reading.records + reading.other_lines > reading.lines) __builtin_trap();
    if (weir::to_text(weir::amd::log_document(logs)).empty()) __builtin_trap();
    Counting counting;
    weir::amd::read_log_text(text, "fuzz", counting);
  } catch (const weir::Error& error) {
    if (error.fault != weir::Fault::input) __builtin_trap();
  }
  return 0;
}
