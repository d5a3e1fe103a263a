#include "trace/analyse/peaks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace weir {
namespace {

constexpr double kNone = 0;

// In TFLOP/s and GB/s, as data sheets have them; those that give only figures with sparsity are halved. MI250X: one of
// its two dies, which programs see as a device of its own. `source` names where a figure can
// be looked up: the documents themselves were not opened. Most figures agreed with independent listings of them
// (November 2026); those of matrix products of the A10, V100S and H100 NVL were found in none.
struct Row {
  const char* model;
  const char* words;    // a device's name has all of these ...
  const char* without;  // ... and none of these
  std::uint32_t multiprocessors;
  double bytes, vector_f64, vector_f32;
  double f64, f32, tf32, f16, bf16, f8, i8;  // matrix products
  const char* source;
};

constexpr const char* kH100 = "NVIDIA H100 data sheet, https://www.nvidia.com/en-us/data-center/h100/";
constexpr const char* kH200 = "NVIDIA H200 data sheet, https://www.nvidia.com/en-us/data-center/h200/";
constexpr const char* kB200 = "NVIDIA HGX B200 specifications, https://www.nvidia.com/en-us/data-center/hgx/";
constexpr const char* kA100 = "NVIDIA A100 data sheet, https://www.nvidia.com/en-us/data-center/a100/";
constexpr const char* kA10 = "NVIDIA A10 data sheet, https://www.nvidia.com/en-us/data-center/products/a10-gpu/";
constexpr const char* kL4 = "NVIDIA L4 data sheet, https://www.nvidia.com/en-us/data-center/l4/";
constexpr const char* kL40S = "NVIDIA L40S data sheet, https://www.nvidia.com/en-us/data-center/l40s/";
constexpr const char* kV100 = "NVIDIA V100 data sheet, https://www.nvidia.com/en-us/data-center/v100/";
constexpr const char* kT4 = "NVIDIA T4 data sheet, https://www.nvidia.com/en-us/data-center/tesla-t4/";
constexpr const char* kAda =
    "NVIDIA Ada GPU architecture, appendix A, "
    "https://images.nvidia.com/aem-dam/Solutions/geforce/ada/nvidia-ada-gpu-architecture.pdf";
constexpr const char* kGa102 =
    "NVIDIA Ampere GA102 GPU architecture, "
    "https://www.nvidia.com/content/PDF/nvidia-ampere-ga-102-gpu-architecture-whitepaper-v2.pdf";
constexpr const char* kMi250x =
    "AMD Instinct MI250X data sheet, half of it, "
    "https://www.amd.com/en/products/accelerators/instinct/mi200/mi250x.html";
constexpr const char* kMi300x =
    "AMD Instinct MI300X data sheet, https://www.amd.com/en/products/accelerators/instinct/mi300/mi300x.html";
constexpr const char* kMi325x =
    "AMD Instinct MI325X data sheet, https://www.amd.com/en/products/accelerators/instinct/mi300/mi325x.html";
constexpr const char* kMi355x =
    "AMD Instinct MI355X data sheet, https://www.amd.com/en/products/accelerators/instinct/mi350/mi355x.html";

// clang-format off
constexpr Row kTable[] = {
    // model         words        without        units  GB/s  vector f64, f32    f64    f32   tf32     f16    bf16      f8      i8
    {"B200",         "B200",      "",              148, 8000,   37,    75,     37, kNone,  1125,  2250,  2250,  4500,  4500, kB200},
    {"H200 NVL",     "H200 NVL",  "",              132, 4800,   30,    60,     60, kNone, 417.5, 835.5, 835.5, 1670.5, 1670.5, kH200},
    {"H200 SXM",     "H200",      "NVL GH200",     132, 4800,   34,    67,     67, kNone, 494.5, 989.5, 989.5, 1979,  1979, kH200},
    {"H100 PCIe",    "H100 PCIE", "",              114, 2000,   26,    51,     51, kNone,   378, 756.5, 756.5, 1513,  1513, kH100},
    {"H100 NVL",     "H100 NVL",  "",              132, 3900,   30,    60,     60, kNone, 417.5, 835.5, 835.5, 1670.5, 1670.5, kH100},
    {"H100 SXM",     "H100 80GB", "PCIE NVL",      132, 3350,   34,    67,     67, kNone, 494.5, 989.5, 989.5, 1979,  1979, kH100},
    {"H100 SXM",     "H100 SXM5", "",              132, 3350,   34,    67,     67, kNone, 494.5, 989.5, 989.5, 1979,  1979, kH100},
    {"A100 80GB PCIe", "A100 80GB PCIE", "",       108, 1935,  9.7,  19.5,   19.5, kNone,   156,   312,   312, kNone,  624, kA100},
    {"A100 80GB SXM", "A100 80GB", "PCIE",         108, 2039,  9.7,  19.5,   19.5, kNone,   156,   312,   312, kNone,  624, kA100},
    {"A100 40GB",    "A100 40GB", "",              108, 1555,  9.7,  19.5,   19.5, kNone,   156,   312,   312, kNone,  624, kA100},
    {"A10",          "A10",       "",               72,  600, kNone, 31.2,  kNone, kNone,  62.5,   125,   125, kNone,  250, kA10},
    {"L4",           "L4",        "",               58,  300, kNone, 30.3,  kNone, kNone,    60,   121,   121, 242.5, 242.5, kL4},
    {"L40S",         "L40S",      "",              142,  864, kNone, 91.6,  kNone, kNone,   183, 362.05, 362.05, 733,  733, kL40S},
    {"V100 PCIe",    "V100 PCIE", "",               80,  900,    7,    14,  kNone, kNone, kNone,   112, kNone, kNone, kNone, kV100},
    {"V100 SXM2",    "V100 SXM2", "",               80,  900,  7.8,  15.7,  kNone, kNone, kNone,   125, kNone, kNone, kNone, kV100},
    {"V100S PCIe",   "V100S",     "",               80, 1134,  8.2,  16.4,  kNone, kNone, kNone,   130, kNone, kNone, kNone, kV100},
    {"T4",           "T4",        "",               40,  320, kNone,  8.1,  kNone, kNone, kNone,    65, kNone, kNone,  130, kT4},
    {"RTX 4090",     "RTX 4090",  "LAPTOP D",      128, 1008, kNone, 82.6,  kNone, kNone,  82.6, 165.2, 165.2, kNone, 660.6, kAda},
    {"RTX 3090",     "RTX 3090",  "TI",             82,  936, kNone, 35.6,  kNone, kNone,  35.6,    71,    71, kNone,  284, kGa102},
    {"MI250X, one die", "MI250X", "MI250",             110, 1638.4, 23.95, 23.95, 47.85, 47.85, kNone, 191.5, 191.5, kNone, 191.5, kMi250x},
    {"MI300X",       "MI300X",    "",              304, 5300,  81.7, 163.4, 163.4, 163.4, 653.7, 1307.4, 1307.4, 2614.9, 2614.9, kMi300x},
    {"MI325X",       "MI325X",    "",              304, 6000,  81.7, 163.4, 163.4, 163.4, 653.7, 1307.4, 1307.4, 2614.9, 2614.9, kMi325x},
    {"MI355X",       "MI355X",    "",              256, 8000,  78.6, 157.3,  78.6, 157.3, kNone, 2516.6, 2516.6, 5033.2, 5033.2, kMi355x},
};
// clang-format on

// "NVIDIA A100-SXM4-80GB" -> NVIDIA, A100, SXM4, 80GB
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      words.back() += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

bool has_all(const std::vector<std::string>& words, std::string_view wanted) {
  const std::vector<std::string> each = words_of(wanted);
  return std::all_of(each.begin(), each.end(), [&](const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  });
}

bool has_any(const std::vector<std::string>& words, std::string_view unwanted) {
  const std::vector<std::string> each = words_of(unwanted);
  return std::any_of(each.begin(), each.end(), [&](const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  });
}

DevicePeaks peaks_of(const Row& row) {
  constexpr double kTera = 1e12, kGiga = 1e9;
  const auto given = [](double value, double unit) { return value > 0 ? std::optional(value * unit) : std::nullopt; };
  DevicePeaks peaks;
  peaks.model = row.model;
  peaks.source = row.source;
  peaks.bytes_per_s = given(row.bytes, kGiga);
  peaks.vector_f64_flop_per_s = given(row.vector_f64, kTera);
  peaks.vector_f32_flop_per_s = given(row.vector_f32, kTera);
  const auto set = [&](NumberType type, double value) {
    peaks.matrix_flop_per_s[static_cast<std::size_t>(type)] = given(value, kTera);
  };
  set(NumberType::f64, row.f64);
  set(NumberType::f32, row.f32);
  set(NumberType::tf32, row.tf32);
  set(NumberType::f16, row.f16);
  set(NumberType::bf16, row.bf16);
  set(NumberType::f8, row.f8);
  set(NumberType::i8, row.i8);
  set(NumberType::u8, row.i8);
  return peaks;
}

PeaksFound in_table(const TraceDevice& device) {
  const std::string& name = device.model.empty() ? device.label : device.model;
  const std::vector<std::string> words = words_of(name);
  if (words.empty()) return {std::nullopt, "the trace does not name the device's model"};
  if (has_any(words, "MIG")) return {std::nullopt, fmt::format("'{}' is a part of a device", name)};
  for (const Row& row : kTable) {
    if (!has_all(words, row.words) || has_any(words, row.without)) continue;
    if (device.multiprocessors != 0 && device.multiprocessors != row.multiprocessors)
      return {std::nullopt, fmt::format("'{}' has {} multiprocessors here, and the {} of the table has {}", name,
                                        device.multiprocessors, row.model, row.multiprocessors)};
    return {peaks_of(row), {}};
  }
  return {std::nullopt, fmt::format("the peaks of '{}' are not in the table", name)};
}

}  // namespace

std::optional<double> DevicePeaks::flop_per_s(NumberType type, bool is_matrix) const noexcept {
  if (is_matrix)
    if (const auto matrix = matrix_flop_per_s[static_cast<std::size_t>(type)]) return matrix;
  // Without matrix units for them, products of these types are made like everything else.
  if (type == NumberType::f64) return vector_f64_flop_per_s;
  if (is_matrix && type != NumberType::f32) return std::nullopt;
  return vector_f32_flop_per_s;
}

PeaksFound device_peaks(const TraceDevice& device, const DevicePeaks* measured) {
  PeaksFound found = in_table(device);
  if (measured == nullptr) return found;
  if (!found.peaks) return {*measured, {}};
  const auto take = [](std::optional<double>& to, const std::optional<double>& from) {
    if (from) to = from;
  };
  take(found.peaks->bytes_per_s, measured->bytes_per_s);
  take(found.peaks->vector_f32_flop_per_s, measured->vector_f32_flop_per_s);
  take(found.peaks->vector_f64_flop_per_s, measured->vector_f64_flop_per_s);
  for (std::size_t i = 0; i < kNumberTypes; ++i)
    take(found.peaks->matrix_flop_per_s[i], measured->matrix_flop_per_s[i]);
  found.peaks->source = fmt::format("{}; what that lacks: {}", measured->source, found.peaks->source);
  return found;
}

std::vector<DevicePeaks> known_peaks() {
  std::vector<DevicePeaks> all;
  for (const Row& row : kTable)
    if (all.empty() || all.back().model != row.model) all.push_back(peaks_of(row));
  return all;
}

}  // namespace weir
