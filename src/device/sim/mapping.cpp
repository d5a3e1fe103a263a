#include "device/sim/mapping.h"

#include <algorithm>

namespace weir::sim {

StreamMap::StreamMap(const SimProfile& profile)
    : mapping_(profile.mapping),
      table_(profile.map),
      references_(static_cast<std::size_t>(profile.queues), 0),
      commands_(static_cast<std::size_t>(packet_queues(profile)), 0) {}

std::int32_t StreamMap::create() {
  const std::uint64_t index = created_++;
  std::size_t queue = index % references_.size();
  if (mapping_ == Mapping::fixed) queue = static_cast<std::size_t>(table_[index % table_.size()]);
  if (mapping_ == Mapping::least_referenced)
    queue = static_cast<std::size_t>(std::min_element(references_.begin(), references_.end()) - references_.begin());
  ++references_[queue];
  return static_cast<std::int32_t>(queue);
}

std::int32_t StreamMap::assign(std::int32_t home) noexcept {
  const std::size_t count = references_.size();  // graphs' own queues take no streams
  if (mapping_ == Mapping::rotating) return static_cast<std::int32_t>(rotated_++ % count);
  if (mapping_ != Mapping::load_based) return home;
  // The search starts at home, so that home wins a tie, then the first queue after it.
  auto best = static_cast<std::size_t>(home);
  for (std::size_t i = 1; i < count && commands_[best] != 0; ++i) {
    std::size_t queue = static_cast<std::size_t>(home) + i;
    if (queue >= count) queue -= count;
    if (commands_[queue] < commands_[best]) best = queue;
  }
  return static_cast<std::int32_t>(best);
}

}  // namespace weir::sim
