#include "trace/analyse/operator_inputs.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/options.h"

namespace weir {
namespace {

constexpr std::array<const char*, kNumberTypes> kTypeNames = {"f64", "f32", "tf32", "f16", "bf16", "f8", "i64",
                                                              "i32", "i16", "i8",   "u8",  "bool", "c64"};
constexpr std::array<std::uint8_t, kNumberTypes> kTypeBytes = {8, 4, 4, 2, 2, 1, 8, 4, 2, 1, 1, 1, 8};
constexpr std::size_t kMaxInputs = 4096;
constexpr std::uint64_t kMaxDim = std::uint64_t{1} << 48;

std::string_view trimmed(std::string_view text) {
  const std::size_t from = text.find_first_not_of(' ');
  return from == std::string_view::npos ? std::string_view() : text.substr(from, text.find_last_not_of(' ') - from + 1);
}

}  // namespace

std::optional<std::vector<std::string_view>> input_parts(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t from = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[' || text[i] == '(') ++depth;
    if ((text[i] == ']' || text[i] == ')') && --depth < 0) return std::nullopt;
    if ((text[i] != ',' && text[i] != ';') || depth > 0) continue;
    parts.push_back(trimmed(text.substr(from, i - from)));
    from = i + 1;
    if (parts.size() > kMaxInputs) return std::nullopt;
  }
  if (depth != 0) return std::nullopt;
  if (const std::string_view last = trimmed(text.substr(from)); !parts.empty() || !last.empty()) parts.push_back(last);
  return parts;
}

std::optional<std::vector<std::uint64_t>> input_dims(std::string_view text) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return std::nullopt;
  const auto parts = input_parts(text.substr(1, text.size() - 2));
  if (!parts || parts->size() > kMostDims) return std::nullopt;
  std::vector<std::uint64_t> dims;
  for (const std::string_view part : *parts) {
    const auto dim = parse_integer(part);
    if (!dim || *dim < 0 || static_cast<std::uint64_t>(*dim) > kMaxDim) return std::nullopt;
    dims.push_back(static_cast<std::uint64_t>(*dim));
  }
  return dims;
}

const char* to_string(NumberType type) noexcept { return kTypeNames[static_cast<std::size_t>(type)]; }

std::optional<NumberType> number_type_named(std::string_view name) noexcept {
  const auto* const at = std::find(kTypeNames.begin(), kTypeNames.end(), name);
  return at == kTypeNames.end() ? std::nullopt
                                : std::optional(static_cast<NumberType>(std::distance(kTypeNames.begin(), at)));
}

std::uint64_t bytes_of(NumberType type) noexcept { return kTypeBytes[static_cast<std::size_t>(type)]; }

double TensorShape::elements() const noexcept {
  double all = 1;
  for (const std::uint64_t dim : dims) all *= static_cast<double>(dim);
  return all;
}
double TensorShape::bytes() const noexcept { return elements() * static_cast<double>(bytes_of(type)); }

std::optional<OperatorInputs> operator_inputs(std::string_view shapes) {
  const auto parts = input_parts(shapes);
  if (!parts) return std::nullopt;
  OperatorInputs inputs;
  for (const std::string_view part : *parts) {
    const std::size_t space = std::min(part.find(' '), part.size());
    const std::string_view rest = trimmed(part.substr(space));
    if (rest.starts_with("tensor")) {
      inputs.has_lists = true;
    } else if (const auto type = number_type_named(part.substr(0, space)); type && !rest.empty()) {
      auto dims = input_dims(rest);
      if (!dims) return std::nullopt;
      inputs.tensors.push_back({*type, std::move(*dims)});
    } else {
      inputs.values.emplace_back(part);
    }
  }
  return inputs;
}

}  // namespace weir
