// The settings of ROCm's runtime that make its log show queues; Weir uses and recommends only this set.
#pragma once

#include <cstdint>

namespace weir::amd {

// API 1, CMD 2, AQL 8, QUEUE 0x10, KERN 0x80, COPY 0x100, INIT 0x800, LOCATION 0x10000, KERN2 0x200000 (names of
// kernels in graphs, from ROCm 7.2 on). The reader uses all of these, and they print far less text than a full mask.
inline constexpr std::uint32_t kQueueLogMask = 0x21099b;
// Lines carry process and thread from level 4 on; ROCm 7.2 moved packets from level 4 to 5.
inline constexpr int kQueueLogLevel = 5;
inline constexpr const char* kQueueLogSettings = "AMD_LOG_LEVEL=5 AMD_LOG_MASK=0x21099b";

}  // namespace weir::amd
