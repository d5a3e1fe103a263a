// One launch of a catalogue kernel over operands of its own: what the groups `kernels` and `gemm` are made of.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lab/conformance/conformance.h"
#include "lab/conformance/steps.h"

namespace weir::conformance {

// What an operand that is read holds before the launch.
struct OperandContents {
  enum Kind : std::uint8_t { uniform, integers, constant, indices, ramp } kind = uniform;
  float value = 2;       // scale, limit or value
  float offset = 0.25f;  // of `uniform`
};

struct KernelCase {
  std::string_view kernel;
  KernelShape shape;
  std::string sizes = {};                      // for its name; empty: the dims
  std::vector<OperandContents> contents = {};  // of operands that are not written whole, in order
  // Elements before and behind each operand in its buffer, so that runs are not aligned and writes outside show.
  std::uint64_t margin = 0;
};

// Precision in which an element type is computed where nothing else is said.
constexpr Precision precision_of(ElementType type) {
  return type == ElementType::f16 ? Precision::fp16 : type == ElementType::bf16 ? Precision::bf16 : Precision::fp32;
}
inline constexpr ElementType kFloats[] = {ElementType::f32, ElementType::f16, ElementType::bf16};
inline constexpr ElementType kAllTypes[] = {ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::i32};

// Kernels that only hosts have are launched there.
Step step_of(const KernelCase& kernel_case, int launches = 1);
std::string name_of(const KernelCase& kernel_case);
ConformanceCase conformance_case(std::string group, KernelCase kernel_case);

}  // namespace weir::conformance
