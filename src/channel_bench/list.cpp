#include "channel_bench/list.h"

#include <vector>

namespace weir::channel_bench {

std::span<const Group> groups() {
  static const std::vector<Group> kGroups = {
      ping_pong(),
      payload_clone(),
      memory_pool(),
      memory_pressure(),
  };
  return kGroups;
}

}  // namespace weir::channel_bench
