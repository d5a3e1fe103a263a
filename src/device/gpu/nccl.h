// NCCL, and RCCL with the same entry points, as the table's collectives.
#pragma once

#include <string>

#include "device/gpu/api.h"

namespace weir {

// Open the library on the first call; null with a reason where there is none.
const GpuCollectives* open_nccl(std::string* reason);
const GpuCollectives* open_rccl(std::string* reason);

// The library's number of an element type: ncclDataType_t.
constexpr int nccl_type(ElementType type) {
  constexpr int kNumbers[] = {7, 6, 9, 2};  // f32, f16, bf16, i32
  return kNumbers[static_cast<int>(type)];
}
inline constexpr int kNcclSum = 0;

}  // namespace weir
