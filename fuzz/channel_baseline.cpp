// Baselines of any origin: whatever the bytes, they either give a run that can be summarised and compared with itself,
// or our own error of bad input.
#include "lab/channels/channel_baseline.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "base/upgrade.h"
#include "lab/channels/channel_compare.h"
#include "lab/channels/channel_contests.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    weir::Json document = weir::parse_json(text, "fuzz");
    weir::upgrade(document);
    const weir::ChannelRun run = weir::parse_channel_run(document, "fuzz");
    if (weir::judge_contests(run).standings.size() != run.results.size()) __builtin_trap();
    const weir::ChannelComparison comparison = weir::compare_channels(run, "fuzz", run);
    for (const weir::ChannelChange& change : comparison.changes) {
      if (change.reason.starts_with("failed: ")) continue;  // slower, whatever its times
      if (change.verdict == weir::Verdict::slower || change.verdict == weir::Verdict::faster) __builtin_trap();
      if (change.noise && !(*change.noise >= 1)) __builtin_trap();
    }
  } catch (const weir::Error& error) {
    if (error.fault != weir::Fault::input) __builtin_trap();
  }
  return 0;
}
