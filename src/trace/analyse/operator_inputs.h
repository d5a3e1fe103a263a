// The inputs of an operator as importers write them: "bf16 [8, 1024], bf16 [1024, 4096]; [1, 1], False". Knows no
// operator.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

enum class NumberType : std::uint8_t { f64, f32, tf32, f16, bf16, f8, i64, i32, i16, i8, u8, boolean, c64 };
inline constexpr std::size_t kNumberTypes = static_cast<std::size_t>(NumberType::c64) + 1;

const char* to_string(NumberType type) noexcept;
std::optional<NumberType> number_type_named(std::string_view name) noexcept;
std::uint64_t bytes_of(NumberType type) noexcept;

struct TensorShape {
  NumberType type = NumberType::f32;
  std::vector<std::uint64_t> dims;  // none: a single number
  double elements() const noexcept;
  double bytes() const noexcept;
};

// The inputs of an operator in their order, as importers write them: `bf16 [8, 1024], bf16 [1024, 4096]; [1, 1],
// False`. What has no type is no tensor but a value, which keeps its text. Lists of tensors, `2 tensors of 96
// elements`, are only marked.
struct OperatorInputs {
  std::vector<TensorShape> tensors;
  std::vector<std::string> values;
  bool has_lists = false;
};

// Empty where the text is not of this form, or a dimension is out of range.
std::optional<OperatorInputs> operator_inputs(std::string_view shapes);

inline constexpr std::size_t kMostDims = 16;

// The parts between commas and semicolons that no bracket encloses; empty where brackets do not match.
std::optional<std::vector<std::string_view>> input_parts(std::string_view text);
// [8, 1024]
std::optional<std::vector<std::uint64_t>> input_dims(std::string_view text);

}  // namespace weir
