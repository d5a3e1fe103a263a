// The limit of top_k, for its bodies on host and device.
#pragma once

namespace weir {

inline constexpr int kMaxPicks = 64;
// Rows up to this long fit into a warp's registers.
inline constexpr int kShortRow = 256;

}  // namespace weir
