// Kernel traces of any origin: spans whose bounds are in order come out, and a document, or our own error of bad input.
#include <cstddef>
#include <cstdint>

#include "amd/ftrace/summary.h"
#include "base/error.h"

namespace {

struct Checked final : weir::ftrace::KfdSink {
  weir::ftrace::KfdSummary summary;
  void on(const weir::ftrace::KfdSpan& span) override {
    if (span.duration_ns < -1 || span.longest_ns < -1) __builtin_trap();
    if (span.duration_ns >= 0 && span.longest_ns >= 0 && span.longest_ns < span.duration_ns) __builtin_trap();
    if (span.end == weir::ftrace::EndKind::exact && span.longest_ns >= 0) __builtin_trap();
    summary.on(span);
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    Checked sink;
    const auto source = weir::bytes_of({reinterpret_cast<const char*>(data), size});
    const weir::ftrace::FtraceCounters counters = weir::ftrace::read_ftrace(*source, sink);
    if (weir::ftrace::ftrace_document(sink.summary, counters, {}).dump().empty()) __builtin_trap();
    weir::ftrace::require_kfd(counters, "fuzz");
  } catch (const weir::Error& error) {
    if (error.fault != weir::Fault::input) __builtin_trap();
  }
  return 0;
}
