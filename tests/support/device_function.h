// What stands behind a name in the device code (weir_layer_norm_bf16, weir_chain_mul_f32) where there is no GPU: the
// catalogue's entry, and a launch's parameters as its bodies on the host take them.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "kernel/chain.h"
#include "kernel/kernel.h"

namespace weir::testing {

struct DeviceFunction {
  const Kernel* kernel = nullptr;
  ElementType type = ElementType::f32;
  long long lean_op = 0;  // of a lean chain body, as chain_ops packs it
};

// The operation of a lean chain body, by its name without the type; 0 for every other body.
inline long long lean_op(std::string_view body) {
  constexpr std::pair<std::string_view, ChainOp> kBodies[] = {{"weir_chain_mul", ChainOp::mul},
                                                              {"weir_chain_add", ChainOp::add},
                                                              {"weir_chain_abs", ChainOp::abs},
                                                              {"weir_chain_clamp", ChainOp::clamp}};
  for (const auto& [name, op] : kBodies)
    if (name == body) return chain_ops({op});
  return 0;
}

inline std::optional<DeviceFunction> device_function(std::string_view name) {
  for (const Kernel& kernel : kernels()) {
    if (kernel.geometry == nullptr) continue;
    for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::i32}) {
      const std::string suffix = "_" + std::string(name_of(type));
      if (!name.ends_with(suffix)) continue;
      const std::string_view body = name.substr(0, name.size() - suffix.size());
      const long long op = kernel.name == "chain" ? lean_op(body) : 0;
      if (op == 0 && body != "weir_" + std::string(kernel.name)) continue;
      return DeviceFunction{&kernel, type, op};
    }
  }
  return std::nullopt;
}

// Copies what the only parameter of a device function points to: the caller may change it at once.
inline KernelCall kernel_call(const DeviceFunction& function, const void* parameter) {
  KernelArguments arguments{};
  if (function.lean_op == 0) {
    std::memcpy(&arguments, parameter, sizeof arguments);
  } else {
    ElementArguments lean;
    std::memcpy(&lean, parameter, sizeof lean);
    std::copy_n(lean.operands, 2, arguments.operands);
    std::copy_n(lean.scalars, 2, arguments.scalars);
    arguments.dims[0] = lean.count;
    arguments.dims[1] = function.lean_op;
  }
  const Precision precision = function.type == ElementType::f16    ? Precision::fp16
                              : function.type == ElementType::bf16 ? Precision::bf16
                                                                   : Precision::fp32;
  KernelCall call{{.type = function.type, .precision = precision}, {}};
  std::copy_n(arguments.dims, kMaxDims, call.shape.dims.begin());
  std::copy_n(arguments.scalars, kMaxScalars, call.shape.scalars.begin());
  std::copy_n(arguments.operands, kMaxOperands, call.operands.begin());
  return call;
}

}  // namespace weir::testing
