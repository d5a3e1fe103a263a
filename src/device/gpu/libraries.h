// The vendors' libraries besides their drivers, as parts of the table: each is opened on the first call, and null with
// a reason where there is none. Also the parts of cuda.cpp and hip.cpp that have sources of their own.
#pragma once

#include <string>

#include "device/gpu/api.h"
#include "device/vendor_library.h"

namespace weir {

const GpuBlas* open_cublas(std::string* reason);
const GpuBlas* open_rocblas(std::string* reason);
const GpuManagement* open_nvml(std::string* reason);
const GpuManagement* open_rocm_smi(std::string* reason);
const GpuCollectives* open_nccl(std::string* reason);
const GpuCollectives* open_rccl(std::string* reason);  // has NCCL's entry points

// The collective library's number of an element type: ncclDataType_t.
constexpr int nccl_type(ElementType type) {
  constexpr int kNumbers[] = {7, 6, 9, 2};  // f32, f16, bf16, i32
  return kNumbers[static_cast<int>(type)];
}
inline constexpr int kNcclSum = 0;

// Parts of an NVIDIA GPU (green contexts). Fills the four entries where the driver has all of what they need; otherwise
// leaves them null and says why. `driver` is the open library.
void bind_parts(const VendorLibrary& driver, GpuApi& api);
// Kernel launches of NVIDIA's libraries, read back from a captured graph and repeated without asking the library again.
// Fills the entries where the driver has what they need; leaves them null otherwise.
void bind_recording(const VendorLibrary& driver, GpuApi& api);

// The device code for AMD GPUs that this program carries, unpacked on the first call. Null with a reason where it is
// damaged. Lives as long as the program.
const void* hip_code(std::string* reason);

}  // namespace weir
