// One launch of a catalogue kernel over its own operands: the groups `kernels` and `gemm` are made of these.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lab/conformance/conformance.h"
#include "lab/conformance/steps.h"

namespace weir::conformance {

// The contents of a read operand before the launch.
struct OperandContents {
  enum Kind : std::uint8_t { uniform, integers, constant, indices, ramp } kind = uniform;
  float value = 2;       // scale, limit or value
  float offset = 0.25f;  // of `uniform`
};

struct KernelCase {
  std::string_view kernel;
  KernelShape shape;
  std::string sizes = {};                      // for its name; empty: the dims
  std::vector<OperandContents> contents = {};  // for operands that are not written completely, in order
  // Elements before and after each operand in its buffer, so that runs are unaligned and writes out of bounds show.
  std::uint64_t margin = 0;
};

// The default precision in which an element type is computed.
constexpr Precision precision_of(ElementType type) {
  return type == ElementType::f16 ? Precision::fp16 : type == ElementType::bf16 ? Precision::bf16 : Precision::fp32;
}
inline constexpr ElementType kFloats[] = {ElementType::f32, ElementType::f16, ElementType::bf16};
inline constexpr ElementType kAllTypes[] = {ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::i32};

// Kernels that only hosts have are launched on the host.
Step step_of(const KernelCase& kernel_case, int launches = 1);
std::string name_of(const KernelCase& kernel_case);
ConformanceCase conformance_case(std::string group, KernelCase kernel_case);

}  // namespace weir::conformance
