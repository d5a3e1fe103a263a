// The vendors' libraries besides their drivers, as parts of the table: each is opened on the first call, and null with
// a reason if there is none. Also the parts of cuda.cpp and hip.cpp that have their own sources.
#pragma once

#include <string>

#include "base/vendor_library.h"
#include "device/gpu/api.h"

namespace weir {

const GpuBlas* open_cublas(std::string* reason);
const GpuBlas* open_rocblas(std::string* reason);
const GpuFp8* open_cublas_lt(std::string* reason);
const GpuManagement* open_nvml(std::string* reason);
const GpuManagement* open_rocm_smi(std::string* reason);
const GpuCollectives* open_nccl(std::string* reason);
const GpuCollectives* open_rccl(std::string* reason);  // has NCCL's entry points

// The collective library's number for an element type: ncclDataType_t.
constexpr int nccl_type(ElementType type) {
  constexpr int kNumbers[] = {7, 6, 9, 2};  // f32, f16, bf16, i32
  return kNumbers[static_cast<int>(type)];
}
inline constexpr int kNcclSum = 0;

// Parts of an NVIDIA GPU (green contexts). Fills the four entries if the driver has everything they need; otherwise
// leaves them null and sets the reason. `driver` is the open library.
void bind_parts(const VendorLibrary& driver, GpuApi& api);
// Kernel launches of NVIDIA's libraries, read from a captured graph and repeated without calling the library again.
// Fills the entries if the driver has what they need; otherwise leaves them null.
void bind_recording(const VendorLibrary& driver, GpuApi& api);

// The embedded device code for AMD GPUs, unpacked on the first call. Null with a reason if it is damaged. Lives as long
// as the program.
const void* hip_code(std::string* reason);

}  // namespace weir
