// Encodes samples as the bytes that a history stores: every value exactly, whole numbers in one or two bytes each.
// Knows no file.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::history {

std::string pack_samples(std::span<const double> samples);
// Empty where the bytes are not from pack_samples().
std::optional<std::vector<double>> unpack_samples(std::string_view bytes);

}  // namespace weir::history
