// What `weir try` varies: factors (variables, or the command itself) with their values, and the settings, which are
// combinations of one value each. Knows neither processes nor results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "run/variable_axis.h"

namespace weir::trials {

// One thing that is varied. A value of nothing leaves the variable unset.
using Factor = VariableAxis;

// The words of a command as a shell would split them: blanks separate, quotes and backslashes keep. Nothing is
// expanded, and what only a shell could do (pipes, variables, globs) is rejected.
std::vector<std::string> split_words(const std::string& text);

using Setting = std::vector<std::uint32_t>;  // the number of a value, for each factor

struct Design {
  std::vector<Factor> factors;
  std::vector<Setting> settings;  // the first is the baseline: the first value of each factor
  double combinations = 1;        // how many there are
  bool is_sample() const { return combinations > static_cast<double>(settings.size()); }
};

inline constexpr std::size_t kMaxSettings =
    256;  // with more combinations, a balanced sample of kSampleSettings is tried
inline constexpr std::size_t kSampleSettings = 64;

// All combinations, the last factor changing fastest; or, beyond kMaxSettings, a random sample in which each value of
// a factor is equally frequent.
Design design_of(std::vector<Factor> factors, std::uint64_t seed);

// "NCCL_ALGO=Ring", "NCCL_ALGO unset".
std::string words_for(const Factor& factor, std::uint32_t value);
// "GPU_MAX_HW_QUEUES=2 NCCL_ALGO=Ring"; "as it is" where nothing is varied.
std::string words_for(const Design& design, const Setting& setting);

}  // namespace weir::trials
