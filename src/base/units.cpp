#include "base/units.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/error.h"
#include "base/plain_text.h"

namespace weir {
namespace {

// Three significant digits, no exponent: 8.12, 81.2, 812.
std::string three_digits(double value) {
  const double size = std::fabs(value);
  if (size >= 99.95) return fmt::format("{:.0f}", value);
  if (size >= 9.995) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

template <std::size_t N>
std::string scaled(double value, double step, const std::array<const char*, N>& names) {
  std::size_t i = 0;
  while (i + 1 < N && std::fabs(value) >= step * 0.9995) {
    value /= step;
    ++i;
  }
  return fmt::format("{}{}", three_digits(value), names[i]);
}

}  // namespace

std::string format_duration(double ns) {
  if (ns == 0) return "0 ns";
  if (std::fabs(ns) < 999.5) return fmt::format("{} ns", three_digits(ns));
  return scaled(ns / 1e3, 1e3, std::array{" us", " ms", " s"});
}

std::string format_bytes(std::uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  return scaled(static_cast<double>(bytes) / 1024.0, 1024.0, std::array{" KiB", " MiB", " GiB", " TiB"});
}

std::string format_quantity(double value) { return scaled(value, 1e3, std::array{"", " k", " M", " G", " T", " P"}); }

std::string format_ratio(double ratio) { return fmt::format("{:.3f}x", ratio); }

std::string counted(double amount, std::string_view noun) {
  return fmt::format("{:.0f} {}{}", amount, noun, amount == 1 ? "" : "s");
}

double parse_fraction(std::string_view text, double most) {
  const bool is_percent = !text.empty() && text.back() == '%';
  const std::string_view digits = is_percent ? text.substr(0, text.size() - 1) : text;
  const auto value = parse_as<double>(digits);
  if (!value || !std::isfinite(*value) || *value < 0)
    reject(fmt::format("'{}' is not a percentage", text), "Write it as 5% or as 0.05.");
  // 5 is 5 % to one reader and 500 % to the next: nobody should have to guess.
  if (!is_percent && *value >= 1)
    reject(fmt::format("write {}% ({:g}){}", text, *value / 100,
                       *value <= most ? fmt::format(", or {:g}% if that is meant", *value * 100) : ""),
           "Percentages are written as 5% or as 0.05.");
  return is_percent ? *value / 100.0 : *value;
}

}  // namespace weir
