// Baselines of `weir bench` of any origin: whatever the bytes, they either give a summary that can be compared with
// itself and told, or our own error of bad input.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "base/upgrade.h"
#include "lab/kernels/regression.h"
#include "report/text/documents.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    weir::Json document = weir::parse_json(text, "fuzz");
    weir::upgrade(document);
    const weir::Json found = weir::bench::compare_summaries(document, document, "fuzz");
    // The same on both sides is never a change.
    if (weir::bench::exit_code(found) != 0) __builtin_trap();
    for (const weir::Json& entry : found["cases"]) {
      const weir::Json& verdict = entry["verdict"];
      if (verdict == "slower" || verdict == "faster" || verdict == "new" || verdict == "gone") __builtin_trap();
      if (!entry["ratio"].is_null() && entry["ratio"] != 1.0) __builtin_trap();
    }
    if (weir::report_markdown(weir::regressions_report(found)).empty()) __builtin_trap();
    // As its own block, too: reports read documents of others.
    weir::regressions_section(document);
    weir::to_text(found);
  } catch (const weir::Error& error) {
    if (error.fault != weir::Fault::input) __builtin_trap();
  }
  return 0;
}
