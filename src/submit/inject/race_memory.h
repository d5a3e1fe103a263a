// The blocks of memory that a program has allocated, on devices and as pinned memory of the host. Knows no vendor;
// locks nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace weir::inject {

class RaceMemory {
 public:
  struct Block {
    std::uint64_t begin = 0, bytes = 0;
    bool is_host = false;
    std::uint64_t end() const noexcept { return begin + bytes; }
  };

  // Replaces blocks that it overlaps: their ends were not seen.
  void add(const Block& block) {
    if (block.bytes == 0 || block.begin + block.bytes < block.begin) return;
    const auto first = std::partition_point(blocks_.begin(), blocks_.end(),
                                            [&](const Block& one) { return one.end() <= block.begin; });
    const auto last =
        std::partition_point(first, blocks_.end(), [&](const Block& one) { return one.begin < block.end(); });
    if (first == last) {
      blocks_.insert(first, block);
    } else {
      *first = block;
      blocks_.erase(first + 1, last);
    }
  }
  std::optional<Block> remove(std::uint64_t begin) {
    const auto at =
        std::partition_point(blocks_.begin(), blocks_.end(), [&](const Block& one) { return one.begin < begin; });
    if (at == blocks_.end() || at->begin != begin) return std::nullopt;
    const Block block = *at;
    blocks_.erase(at);
    return block;
  }
  // The block that has this address in it, or null.
  const Block* find(std::uint64_t address) const noexcept {
    if (blocks_.empty() || address < blocks_.front().begin || address >= blocks_.back().end()) return nullptr;
    const auto at =
        std::partition_point(blocks_.begin(), blocks_.end(), [&](const Block& one) { return one.end() <= address; });
    return at->begin <= address ? &*at : nullptr;
  }
  std::span<const Block> blocks() const noexcept { return blocks_; }
  void clear() noexcept { blocks_.clear(); }

 private:
  std::vector<Block> blocks_;  // by address; they do not overlap
};

}  // namespace weir::inject
