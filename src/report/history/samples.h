// Samples as the bytes that a history keeps: every value exactly, whole numbers in one or two bytes each. Knows no
// file.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::history {

std::string pack_samples(std::span<const double> samples);
// Nothing where the bytes are not what pack_samples() makes.
std::optional<std::vector<double>> unpack_samples(std::string_view bytes);

}  // namespace weir::history
