// Arguments of a kernel body on every device: pointers, sizes, scalars. Compiled by both the host compiler and
// nvcc/hipcc.
#pragma once

namespace weir {

inline constexpr int kMaxOperands = 6;
inline constexpr int kMaxDims = 4;
inline constexpr int kMaxScalars = 4;

// Passed by value as the only parameter of every device kernel; its layout is the same on host and device.
struct KernelArguments {
  void* operands[kMaxOperands];
  long long dims[kMaxDims];
  float scalars[kMaxScalars];
};

// The same for element-wise bodies: a third of the bytes, which the driver copies at every launch.
struct ElementArguments {
  void* operands[2];
  float scalars[2];
  int count;
};

}  // namespace weir
