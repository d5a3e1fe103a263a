#include "lab/channels/loops/list.h"

#include <vector>

namespace weir::channel_bench {

std::span<const Group> groups() {
  static const std::vector<Group> kGroups = {WEIR_CHANNEL_GROUPS};
  return kGroups;
}

}  // namespace weir::channel_bench
