// Logs of any origin, and what is concluded from them: indices that hold, and pairs of commands that share memory.
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "lab/race/order.h"
#include "lab/race/read_log.h"
#include "lab/race/suspects.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::race;
  const auto expect = [](bool holds) {
    if (!holds) __builtin_trap();
  };
  try {
    const Log log = read_log(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
    for (const Call& call : log.calls) {
      expect(std::uint64_t{call.first_range} + call.range_count <= log.ranges.size());
      expect(call.label < log.texts.size());
      expect(call.stream == kNoStream || call.stream < log.streams.size());
    }
    for (const Suspect& suspect : find_suspects(log).pairs) {
      expect(suspect.begin < suspect.end && suspect.first < log.calls.size());
      expect(suspect.second == kHost || (suspect.first < suspect.second && suspect.second < log.calls.size()));
      const std::pair both{suspect.first, suspect.second};
      expect(suspect.second == kHost || !are_ordered(log, std::span(&both, 1)).front());
    }
  } catch (const weir::Error& error) {
    if (error.fault != weir::Fault::input) __builtin_trap();
  }
  return 0;
}
