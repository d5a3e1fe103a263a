#include "package/launch_arguments.h"

#include <cstring>

namespace weir::package {
namespace {

template <class T>
PackedArgument packed(T value) {
  static_assert(sizeof value <= sizeof(std::uint64_t));
  PackedArgument result{0, sizeof value};
  std::memcpy(&result.word, &value, sizeof value);
  return result;
}

}  // namespace

PackedArgument pack(const WeirArgument& argument, std::span<void* const> buffers) {
  switch (argument.kind) {
    case WEIR_ARGUMENT_I32:
      return packed(argument.value.i32);
    case WEIR_ARGUMENT_I64:
      return packed(argument.value.i64);
    case WEIR_ARGUMENT_F32:
      return packed(argument.value.f32);
    case WEIR_ARGUMENT_F64:
      return packed(argument.value.f64);
    default:
      return packed(buffers[argument.buffer]);
  }
}

const char* launch_fault(const WeirLaunch& launch, std::size_t buffer_count) noexcept {
  if (launch.function == nullptr || *launch.function == '\0') return "has no name";
  if (launch.argument_count > kMostArguments) return "has more than 64 arguments";
  if (launch.argument_count > 0 && launch.arguments == nullptr) return "has arguments, but the pointer to them is null";
  for (std::uint32_t i = 0; i < launch.argument_count; ++i) {
    const WeirArgument& argument = launch.arguments[i];
    if (argument.kind > WEIR_ARGUMENT_F64) return "has an argument of a kind that weir/kernel.h does not have";
    if (argument.kind == WEIR_ARGUMENT_BUFFER && argument.buffer >= buffer_count)
      return "has an argument that names a buffer which setup() did not declare";
  }
  return nullptr;
}

}  // namespace weir::package
