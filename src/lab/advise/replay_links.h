// Who waits for whom in a model: its edges, waits and wakes the other way round. Commands of one stream are not in
// them, because the replay decides which comes first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "lab/advise/replay_model.h"

namespace weir::advise {

// Lists of numbers, by number.
class NumberLists {
 public:
  // `each(add)` calls add(key, number) for every entry, twice in the same order.
  template <class Each>
  NumberLists(std::size_t keys, Each each) : begin_(keys + 1, 0) {
    each([&](std::uint32_t key, std::uint32_t) { ++begin_[key + 1]; });
    for (std::size_t i = 1; i < begin_.size(); ++i) begin_[i] += begin_[i - 1];
    numbers_.resize(begin_.back());
    std::vector<std::uint32_t> place(begin_.begin(), begin_.end() - 1);
    each([&](std::uint32_t key, std::uint32_t number) { numbers_[place[key]++] = number; });
  }
  std::span<const std::uint32_t> operator[](std::uint32_t key) const {
    return std::span(numbers_).subspan(begin_[key], begin_[key + 1] - begin_[key]);
  }

 private:
  std::vector<std::uint32_t> begin_, numbers_;
};

struct ReplayLinks {
  explicit ReplayLinks(const ReplayModel& model);
  NumberLists followers;  // by command: commands of other streams that wait for it
  NumberLists awaiting;   // by command: actions that wait for it
  NumberLists woken;      // by action: actions that it wakes
};

}  // namespace weir::advise
