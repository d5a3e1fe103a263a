// A race of weir.race/1 as a picture: the streams as lanes, the commands around the pair, the delay, and the wait that
// is missing as a dashed arrow. Knows no file.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "report/text/fields.h"
#include "report/text/sections.h"
#include "report/text/svg.h"

namespace weir {
namespace {

using namespace fields;

constexpr double kRaceLabelWidth = 110, kRaceCell = 120, kRaceGap = 12, kRaceLane = 74, kRaceBox = 38, kRaceHead = 56;
constexpr std::size_t kMostRaceCells = 24;

constexpr TextLiteral kRaceStyle =
    "<style>text{font:12px sans-serif;fill:#222}.t{font-size:15px;font-weight:600}.s{font-size:10px;fill:#666}"
    ".b{fill:#fff}.l{fill:#f3f4f6}.c{fill:#cdd9ee;stroke:#7d95bd}.r{fill:#f4c7c3;stroke:#b3261e}"
    ".d{fill:#fff3cd;stroke:#c79a00;stroke-dasharray:3 2}.a{stroke:#b3261e;stroke-width:2;stroke-dasharray:6 4;"
    "fill:none}.m{fill:#b3261e;font-size:11px}.h{fill:#b3261e}</style>\n";

struct Place {
  double x = 0, y = 0;
};

}  // namespace

std::string race_svg(const Json& race) {
  const Json& lanes = list(race, {"lanes"});
  const std::string first = string(race, {"first", "command"}), second = string(race, {"second", "command"});
  const bool is_host = is_true(race, {"is_host"});
  // One column per command, in the order of the calls.
  std::set<double> orders;
  for (const Json& lane : fields::first(lanes, 3))
    for (const Json& command : list(lane, {"commands"}))
      if (orders.size() < kMostRaceCells) orders.insert(number(command, {"order"}).value_or(0));
  std::map<double, std::size_t> columns;
  for (const double order : orders) columns.emplace(order, columns.size());

  const std::size_t lane_count = std::min<std::size_t>(lanes.size(), 3) + (is_host ? 1 : 0);
  const double width =
      std::max(520.0, kRaceLabelWidth + static_cast<double>(columns.size() + 1) * (kRaceCell + kRaceGap));
  const double height = kRaceHead + static_cast<double>(std::max<std::size_t>(lane_count, 1)) * kRaceLane + 30;
  Markup body = svg_label(16, 26, "t", "Nothing orders these commands");
  std::optional<Place> from, to;
  double y = kRaceHead;
  const auto lane_of = [&](const std::string& name) {
    body += svg_box(12, y, width - 24, kRaceLane - 10, "l");
    body += svg_label(20, y + 36, "n", name);
  };
  for (const Json& lane : fields::first(lanes, 3)) {
    lane_of(string(lane, {"stream"}, "stream"));
    for (const Json& command : list(lane, {"commands"})) {
      const auto column = columns.find(number(command, {"order"}).value_or(0));
      if (column == columns.end()) continue;
      const double x = kRaceLabelWidth + static_cast<double>(column->second) * (kRaceCell + kRaceGap), top = y + 12;
      const std::string name = string(command, {"command"});
      const bool is_one_of_both = !name.empty() && (name == first || name == second);
      body += svg_box(x, top, kRaceCell, kRaceBox, is_one_of_both ? "r" : "c");
      body += svg_label(x + 6, top + 16, "n", short_kernel_name(string(command, {"label"}), 17));
      body += svg_label(x + 6, top + 31, "s", name);
      if (name == first) from = {x + kRaceCell, top + kRaceBox / 2};
      if (name == second && !is_host) to = {x, top + kRaceBox / 2};
      for (const Json& delay : fields::first(list(race, {"delays"}), 100))
        if (string(delay, {"command"}) == name) {
          body += svg_box(x - kRaceGap + 1, top, kRaceGap - 2, kRaceBox, "d");
          body += svg_label(x - kRaceGap, top - 2, "m", "delay " + duration(number(delay, {"delay_ns"})));
        }
    }
    y += kRaceLane;
  }
  if (is_host) {
    lane_of("host");
    const double x = kRaceLabelWidth + static_cast<double>(columns.size()) * (kRaceCell + kRaceGap);
    body += svg_box(x, y + 12, kRaceCell, kRaceBox, "r");
    body += svg_label(x + 6, y + 28, "n", "goes on");
    to = {x, y + 12 + kRaceBox / 2};
    y += kRaceLane;
  }
  if (from && to) {
    body += Markup::format(
        "<path class=\"a\" d=\"M{:.1f} {:.1f} C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}\"/>\n"
        "<path class=\"h\" d=\"M{:.1f} {:.1f} l-9 -5 l0 10 z\"/>\n",
        from->x, from->y, from->x + 30, from->y, to->x - 30, to->y, to->x, to->y, to->x, to->y);
    body += svg_label((from->x + to->x) / 2, (from->y + to->y) / 2 - 4, "m", "missing wait", "middle");
  }
  body += svg_label(16, height - 12, "s", "Commands in the order of their calls. The dashed arrow is what is missing.");
  return svg_picture(width, height, Markup::literal(kRaceStyle), body);
}

}  // namespace weir
