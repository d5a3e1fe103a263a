#include "lab/channels/loops/list.h"

#include <vector>

namespace weir::channel_bench {

std::span<const Group> groups() {
  static const std::vector<Group> kGroups = {
      ping_pong(),     send_latency(),    mutex_latency(), round_trip(), throughput(), backpressure(),
      payload_clone(), memory_pool(),     sequential(),    contention(), producers(),  consumers(),
      placement(),     wait_strategies(), read_in_place(), request(),    priority(),   kernel_latency(),
      devices(),       memory_pressure(), error_path(),    metrics(),
  };
  return kGroups;
}

}  // namespace weir::channel_bench
