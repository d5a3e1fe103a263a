#include "lab/race/extents.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>
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

// New memory holds nothing to read, so the first kernel that gets a pointer into it writes there, and probably does so
// with that operand whenever it runs.
class FirstTouches {
 public:
  void add(const Call& call, std::uint32_t operand, std::uint32_t block, std::uint64_t address, std::uint32_t range) {
    const std::uint64_t role = std::uint64_t{call.label} << 32 | operand;
    roles_.emplace_back(range, role);
    if (seen_.insert({block, address}).second) outputs_.insert(role);
  }
  // Copies and sets say themselves what they write.
  void touch(std::uint32_t block, std::uint64_t address) { seen_.insert({block, address}); }
  void mark(std::vector<Extent>& extents) const {
    for (const auto& [range, role] : roles_) extents[range].is_likely_output = outputs_.contains(role);
  }

 private:
  std::vector<std::pair<std::uint32_t, std::uint64_t>> roles_;  // range, kernel and operand
  std::set<std::pair<std::uint32_t, std::uint64_t>> seen_;      // block, address
  std::unordered_set<std::uint64_t> outputs_;                   // kernel and operand
};

}  // namespace

std::vector<Extent> extents_of(const Log& log) {
  std::vector<Extent> extents(log.ranges.size());
  std::vector<std::uint32_t> block_of(log.ranges.size(), kUnseen);
  std::vector<std::pair<std::uint32_t, std::uint64_t>> pointers;  // block, address
  Blocks blocks;
  FirstTouches touches;
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
      if (call.kind == Kind::kernel && block.number != 0) {
        touches.add(call, i - call.first_range, block.number, range.begin, i);
      } else {
        touches.touch(block.number, range.begin);
      }
      extents[i] = {range.begin, range.end, range.is_exact ? range.end : end, block.is_host};
    }
  }
  touches.mark(extents);
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
