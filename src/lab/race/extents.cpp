#include "lab/race/extents.h"

#include <algorithm>
#include <map>
#include <utility>

namespace weir::race {
namespace {

// A kernel may well reach beyond the next pointer: that may be a part of the same array. Not beyond many.
constexpr std::ptrdiff_t kFarPointers = 8;
constexpr std::uint32_t kUnseen = UINT32_MAX;

struct Block {
  std::uint64_t end = 0;
  std::uint32_t number = 0;  // 0: memory that nobody allocated
  bool is_host = false;
};

class Blocks {
 public:
  void allocate(const Range& range, bool is_host) {
    release(range);
    blocks_[range.begin] = {range.end, ++count_, is_host};
  }
  void release(const Range& range) {
    auto block = blocks_.lower_bound(range.begin);
    if (block != blocks_.begin() && std::prev(block)->second.end > range.begin) --block;
    while (block != blocks_.end() && block->first < std::max(range.end, range.begin + 1)) block = blocks_.erase(block);
  }
  Block at(std::uint64_t address) const {
    const auto after = blocks_.upper_bound(address);
    if (after == blocks_.begin() || std::prev(after)->second.end <= address) return {};
    return std::prev(after)->second;
  }

 private:
  std::map<std::uint64_t, Block> blocks_;
  std::uint32_t count_ = 0;
};

}  // namespace

std::vector<Extent> extents_of(const Log& log) {
  std::vector<Extent> extents(log.ranges.size());
  std::vector<std::uint32_t> block_of(log.ranges.size(), kUnseen);
  std::vector<std::pair<std::uint32_t, std::uint64_t>> pointers;  // block, address
  Blocks blocks;
  for (const Call& call : log.calls) {
    for (std::uint32_t i = call.first_range; i < call.first_range + call.range_count; ++i) {
      const Range& range = log.ranges[i];
      if (call.kind == Kind::allocate) blocks.allocate(range, call.is_host);
      if (call.kind == Kind::release) blocks.release(range);
      // Launches of one graph share their ranges.
      if (!is_command(call.kind) || block_of[i] != kUnseen) continue;
      const Block block = blocks.at(range.begin);
      block_of[i] = block.number;
      pointers.emplace_back(block.number, range.begin);
      const std::uint64_t end = block.number == 0 ? range.end : std::min(range.end, block.end);
      extents[i] = {range.begin, range.end, range.is_exact ? range.end : end, block.is_host};
    }
  }
  std::sort(pointers.begin(), pointers.end());
  pointers.erase(std::unique(pointers.begin(), pointers.end()), pointers.end());
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (block_of[i] == kUnseen || log.ranges[i].is_exact) continue;
    Extent& extent = extents[i];
    const auto next = std::upper_bound(pointers.begin(), pointers.end(), std::pair(block_of[i], extent.begin));
    const auto bound = [&](std::ptrdiff_t pointers_on) {
      const auto at = pointers.end() - next > pointers_on ? next + pointers_on : pointers.end();
      return at != pointers.end() && at->first == block_of[i] ? std::min(extent.far_end, at->second) : extent.far_end;
    };
    extent.near_end = bound(0);
    extent.far_end = bound(kFarPointers);
  }
  return extents;
}

}  // namespace weir::race
