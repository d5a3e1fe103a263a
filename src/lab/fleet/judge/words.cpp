#include "lab/fleet/judge/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/plain_text.h"

namespace weir::fleet {

std::string grouped(double number) {
  if (!(std::fabs(number) < 1e15)) return fmt::format("{:.3g}", number);
  const double rounded = std::round(number * 100) / 100;
  std::string digits = fmt::format("{:.0f}", std::trunc(std::fabs(rounded)));
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  if (rounded != std::trunc(rounded))
    digits += fmt::format("{:.2g}", std::fabs(rounded - std::trunc(rounded))).substr(1);
  return rounded < 0 ? "-" + digits : digits;
}

std::string share_text(double effect) {
  const double percent = std::fabs(effect) * 100;
  if (!(percent < 1000)) return fmt::format("{:.3g} times as much, and above", effect + 1);
  return fmt::format("{:.{}f} % {}", percent, percent < 10 ? 1 : 0, effect < 0 ? "below" : "above");
}

std::string plain_fact(std::string_view text) {
  constexpr std::size_t kLongest = 120;
  const std::string_view whole = whole_characters(text, kLongest);
  return without_controls(whole, '?') + (whole.size() < text.size() ? "..." : "");
}

std::string name_of_device(const DeviceRow& row) {
  std::string name = plain_fact(row.node->name) + " " + plain_fact(row.device->name);
  if (!row.device->serial.empty()) name += fmt::format(" ({})", plain_fact(row.device->serial));
  return name;
}

std::string counted_devices(std::size_t count) {
  return fmt::format("{} device{}", grouped(static_cast<double>(count)), count == 1 ? "" : "s");
}

std::string first_names(const std::vector<std::string>& names, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < std::min(most, names.size()); ++i) text += (i == 0 ? "" : ", ") + plain_fact(names[i]);
  if (names.size() > most) text += fmt::format(" and {} more", grouped(static_cast<double>(names.size() - most)));
  return text;
}

}  // namespace weir::fleet
