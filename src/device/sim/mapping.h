// Assigns streams to hardware queues: the policies, and the counts that they use. Knows no time and no packets.
#pragma once

#include <cstdint>
#include <vector>

#include "device/sim/profile.h"

namespace weir::sim {

class StreamMap {
 public:
  explicit StreamMap(const SimProfile& profile);

  // The queue of a new stream; counts as a reference to it until drop().
  std::int32_t create();
  void drop(std::int32_t home) noexcept { --references_[static_cast<std::size_t>(home)]; }

  // True if streams get a new queue whenever they become busy.
  bool is_dynamic() const noexcept { return mapping_ == Mapping::load_based || mapping_ == Mapping::rotating; }
  // The queue of a stream that becomes busy now.
  std::int32_t assign(std::int32_t home) noexcept;

  void add_command(std::int32_t queue) noexcept {
    if (commands_[static_cast<std::size_t>(queue)]++ == 0) ++busy_queues_;
  }
  void end_command(std::int32_t queue) noexcept {
    if (--commands_[static_cast<std::size_t>(queue)] == 0) --busy_queues_;
  }
  // Queues with commands that were submitted and have not ended.
  std::int64_t busy_queues() const noexcept { return busy_queues_; }

 private:
  Mapping mapping_;
  std::vector<std::int64_t> table_;
  std::vector<std::uint32_t> references_, commands_;  // by queue
  std::uint64_t created_ = 0;
  std::uint64_t rotated_ = 0;
  std::int64_t busy_queues_ = 0;
};

}  // namespace weir::sim
