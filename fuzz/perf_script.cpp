// What perf script may print, and anything else: counted stacks come out, each sample once, and no line has two.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "measure/folded_stacks.h"
#include "report/text/svg.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  weir::FoldedStacks stacks;
  // In two pieces, the cut taken from the text itself.
  const std::size_t cut = size == 0 ? 0 : data[0] % size;
  stacks.add(text.substr(0, cut));
  stacks.add(text.substr(cut));
  stacks.end();
  std::uint64_t counted = 0;
  for (const weir::FoldedStack& stack : stacks.stacks()) {
    counted += stack.count;
    if (stack.frames.find('\n') != std::string::npos || stack.frames.empty()) __builtin_trap();
  }
  if (counted + stacks.left_out() != stacks.samples()) __builtin_trap();
  if (weir::flame_svg(stacks.stacks(), "fuzz").empty()) __builtin_trap();
  return 0;
}
