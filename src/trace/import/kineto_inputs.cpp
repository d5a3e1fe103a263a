#include "trace/import/kineto_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "trace/import/json_text.h"

namespace weir {
namespace {

using In = JsonReader::In;

constexpr std::size_t kLongestInputs = 400;  // of all inputs of an operation; hostile files have longer ones

// One letter and bits where Weir has a word for the type; empty for what is no tensor.
std::string_view short_type_of(std::string_view type) {
  // As PyTorch writes them, the common ones first.
  static constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
      {"float", "f32"},      {"c10::BFloat16", "bf16"},
      {"c10::Half", "f16"},  {"long int", "i64"},
      {"Scalar", ""},        {"", ""},
      {"ScalarList", ""},    {"TensorList", ""},
      {"int", "i32"},        {"bool", "bool"},
      {"double", "f64"},     {"unsigned char", "u8"},
      {"signed char", "i8"}, {"short int", "i16"},
      {"long", "i64"},       {"c10::complex<float>", "c64"},
      {"BFloat16", "bf16"},  {"Half", "f16"},
      {"short", "i16"},      {"c10::complex<double>", "c128"},
      {"char", "i8"},        {"long long", "i64"},
      {"Float", "f32"},      {"Double", "f64"},
      {"int64_t", "i64"},    {"int32_t", "i32"},
      {"uint8_t", "u8"},     {"int8_t", "i8"},
  };
  for (const auto& [written, word] : kTypes)
    if (type == written) return word;
  return type.find("Float8") != std::string_view::npos ? "f8" : "";
}

std::string_view next_line(std::string_view& text) noexcept {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

}  // namespace

bool KinetoInputReader::needs_values(std::string_view name) noexcept {
  return name.find("conv") != std::string_view::npos || name.find("attention") != std::string_view::npos;
}

// Calls read() for each element that is an array, whose '[' was consumed, and other() for any other one.
template <class Read, class Other>
void KinetoInputReader::elements(Read&& read, Other&& other) {
  while (reader_.next_element()) {
    if (reader_.take('[')) {
      read();
    } else if (reader_.peek() == '{') {
      reader_.skip(In::array);
    } else {
      std::int64_t number = 0;
      other(reader_.plain_number(0, &number) ? number : signed_of(reader_.scalar(In::array)).value_or(0));
    }
  }
}

// [[8, 1024], [], [[64], [64, 3]]]
void KinetoInputReader::dimensions() {
  if (reader_.peek() != '[') return reader_.skip(In::object);
  reader_.take('[');
  std::string& text = to_.dimensions;
  text.clear();
  const auto end_item = [&] {
    if (text.size() < 2 * kLongestInputs) text += '\n';  // the last item may be longer
  };
  elements(
      [&] {
        const std::size_t from = text.size();
        if (from >= kLongestInputs) return reader_.skip_rest();
        std::uint64_t tensors = 0, all = 0;
        text += '[';
        elements(
            [&] {  // of a list's tensor
              std::uint64_t product = 1;
              elements([&] { reader_.skip_rest(); },
                       [&](std::int64_t extent) { product *= static_cast<std::uint64_t>(extent); });
              ++tensors;
              all += product;
            },
            [&](std::int64_t extent) {
              if (text.size() < kLongestInputs)
                fmt::format_to(std::back_inserter(text), "{}{}", text.size() > from + 1 ? ", " : "", extent);
            });
        text += ']';
        if (tensors > 0) {
          text.resize(from);
          text +=
              fmt::format("{} tensor{} of {} element{}", tensors, tensors == 1 ? "" : "s", all, all == 1 ? "" : "s");
        }
        end_item();
      },
      [&](std::int64_t) { end_item(); });
}

// ["float", "Scalar", ...]
void KinetoInputReader::types() {
  to_.types.clear();
  texts([&](std::string_view type) {
    if (to_.types.size() >= kLongestInputs) return;
    to_.types += short_type_of(type);
    to_.types += '\n';
  });
}

// ["", "[1, 1]", "False", ...]
void KinetoInputReader::values() {
  to_.values.clear();
  texts([&](std::string_view value) {
    if (value.empty() || to_.values.size() + value.size() > kLongestInputs) return;
    to_.values += value;
    to_.values += '\n';
  });
}

template <class Use>
void KinetoInputReader::texts(Use&& use) {
  if (reader_.peek() != '[') return reader_.skip(In::object);
  reader_.take('[');
  while (reader_.next_element()) {
    if (const char next = reader_.peek(); next == '[' || next == '{') {
      reader_.skip(In::array);
      use({});
    } else {
      use(reader_.scalar(In::array));
    }
  }
}

std::string shapes_of(const KinetoInputs& inputs) {
  std::string text;
  std::string_view types = inputs.types, dimensions = inputs.dimensions, values = inputs.values;
  while (!dimensions.empty()) {
    const std::string_view type = next_line(types), extents = next_line(dimensions);
    const bool is_list = !extents.empty() && extents.front() != '[';
    if (extents.empty() || (type.empty() && !is_list)) continue;
    if (!text.empty()) text += ", ";
    if (!is_list) text.append(type) += ' ';
    text += extents;
  }
  for (const char* before = "; "; !text.empty() && !values.empty(); before = ", ")
    text.append(before).append(next_line(values));
  return text;
}

}  // namespace weir
