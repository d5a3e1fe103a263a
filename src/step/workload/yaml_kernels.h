// The names that a file uses for a kernel's dims, scalars and operands. Kernels without an entry take plain lists.
#pragma once

#include <span>
#include <string_view>

#include "kernel/kernel.h"

namespace weir {

struct YamlKernel {
  // A size or scalar by name. `initial` is the value if it is omitted.
  struct Slot {
    std::string_view name;
    int index = 0;  // into KernelShape::dims or ::scalars
    bool is_optional = false;
    double initial = 0;
    std::int64_t lowest = 1;
    std::int64_t highest = std::int64_t{1} << 40;
    int bit = -1;  // shares its dim with others, starting at this bit
  };
  enum class Types : std::uint8_t { floating, any, f32 };

  std::string_view name;
  std::span<const Slot> dims;
  std::span<const Slot> scalars;
  std::span<const std::string_view> operands;
  Types types = Types::floating;
  bool can_work_in_place = false;  // an operand may be both read and written
  bool counts_itself = false;      // `count` may be omitted: it is that of the written operand
};

// Null for kernels without an entry.
const YamlKernel* yaml_kernel(std::string_view name);

}  // namespace weir
