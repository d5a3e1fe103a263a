// The upcoming events of the simulated device: a heap ordered by time. At equal times, ends come first, then the entry
// that was added first, so the order is the same on every machine.
#pragma once

#include <cstdint>
#include <vector>

namespace weir::sim {

enum class DueKind : std::uint32_t { end = 0, queue = 1, graph = 2, foreign = 3 };

struct Due {
  std::int64_t ns = 0;
  std::uint32_t order = 0;  // also distinguishes an entry from an older one with the same subject
  std::uint32_t what = 0;   // kind in the two highest bits, then its subject

  DueKind kind() const noexcept { return static_cast<DueKind>(what >> 30); }
  std::uint32_t subject() const noexcept { return what & 0x3fffffffu; }
  friend bool operator<(const Due& a, const Due& b) noexcept { return a.ns != b.ns ? a.ns < b.ns : a.order < b.order; }
};

class Calendar {
 public:
  bool is_empty() const noexcept { return heap_.empty(); }
  const Due& next() const noexcept { return heap_.front(); }

  // Returns the entry's order. Allocates only when the calendar holds more entries than ever before.
  std::uint32_t enter(std::int64_t ns, DueKind kind, std::uint32_t subject) {
    const std::uint32_t order = (kind == DueKind::end ? 0 : 0x80000000u) | (count_++ & 0x7fffffffu);
    const Due due{ns, order, static_cast<std::uint32_t>(kind) << 30 | subject};
    std::size_t hole = heap_.size();
    heap_.push_back(due);
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / 2;
      if (!(due < heap_[parent])) break;
      heap_[hole] = heap_[parent];
      hole = parent;
    }
    heap_[hole] = due;
    return order;
  }

  Due take() noexcept {
    const Due first = heap_.front();
    const Due last = heap_.back();
    heap_.pop_back();
    const std::size_t size = heap_.size();
    if (size == 0) return first;
    std::size_t hole = 0;
    for (std::size_t child = 1; child < size; child = 2 * hole + 1) {
      if (child + 1 < size && heap_[child + 1] < heap_[child]) ++child;
      if (!(heap_[child] < last)) break;
      heap_[hole] = heap_[child];
      hole = child;
    }
    heap_[hole] = last;
    return first;
  }

 private:
  std::vector<Due> heap_;
  std::uint32_t count_ = 0;
};

}  // namespace weir::sim
