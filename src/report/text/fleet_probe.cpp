// weir.fleet_probe/1: what a node's devices can do, their states, what is wrong with them, and what was not measured.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/units.h"
#include "lab/fleet/figures.h"
#include "report/text/documents.h"
#include "report/text/fields.h"

namespace weir {
namespace {

using namespace fields;
using fleet::FigureKind;
using fleet::Goal;

// Of more devices, a row per figure shows them all.
constexpr std::size_t kMostInFull = 2;

std::string amount(std::string_view unit, double value) {
  if (unit == "ns") return format_duration(value);
  if (unit.ends_with("/s")) return fmt::format("{}{}", format_quantity(value), unit);
  return unit == "count" ? fmt::format("{:g}", value) : fmt::format("{:.4g} {}", value, unit);
}

// "+-3.1 %"
std::string range_words(const Json& figure, double value) {
  const auto range = interval(figure, {"range"});
  if (!range || !(value > 0)) return "-";
  return fmt::format("+-{:.1f} %", 100 * std::max(range->second - value, value - range->first) / value);
}

// The figures of a device by name; of copies to several devices the worst.
std::map<std::string, const Json*> figures_by_name(const Json& device) {
  std::map<std::string, const Json*> found;
  for (const Json& figure : list(device, {"figures"})) {
    const auto [place, is_new] = found.emplace(string(figure, {"name"}), &figure);
    const auto value = number(figure, {"value"}), other = number(*place->second, {"value"});
    if (!is_new && value && (!other || *value < *other)) place->second = &figure;
  }
  return found;
}

ReportTable table_of_one(const Json& device) {
  ReportTable table{{{"figure", true}, {"value"}, {"another probe"}}};
  const auto figures = figures_by_name(device);
  for (const FigureKind& kind : fleet::figure_kinds()) {
    const auto found = figures.find(std::string(kind.name));
    if (kind.goal == Goal::none || found == figures.end()) continue;
    if (const auto value = number(*found->second, {"value"}))
      table.rows.push_back({std::string(kind.words), amount(kind.unit, *value), range_words(*found->second, *value)});
  }
  return table;
}

// figure, median of the devices, the worst one and how far it is from the median
ReportTable table_of_many(const Json& devices) {
  ReportTable table{{{"figure", true}, {"median"}, {"another probe"}, {"worst", true}, {"is"}, {"off by"}}};
  for (const FigureKind& kind : fleet::figure_kinds()) {
    if (kind.goal == Goal::none) continue;
    struct Seen {
      double value;
      const Json *figure, *device;
    };
    std::vector<Seen> seen;
    for (const Json& device : devices) {
      const auto figures = figures_by_name(device);
      const auto found = figures.find(std::string(kind.name));
      if (found == figures.end()) continue;
      if (const auto value = number(*found->second, {"value"})) seen.push_back({*value, found->second, &device});
    }
    if (seen.empty()) continue;
    // From the best to the worst.
    std::stable_sort(seen.begin(), seen.end(), [&](const Seen& one, const Seen& other) {
      return kind.goal == Goal::lower ? one.value < other.value : one.value > other.value;
    });
    const Seen& middle = seen[seen.size() / 2];
    const Seen& worst = seen.back();
    table.rows.push_back(
        {std::string(kind.words), amount(kind.unit, middle.value), range_words(*middle.figure, middle.value),
         text(*worst.device, {"name"}), amount(kind.unit, worst.value),
         middle.value > 0 ? fmt::format("{:.1f} %", 100 * std::abs(worst.value / middle.value - 1)) : "-"});
  }
  return table;
}

ReportTable table_of_states(const Json& devices) {
  constexpr std::array<std::string_view, 5> kStates = {"clock", "power", "temperature", "pcie_width", "nvlink_links"};
  ReportTable table{{{"device", true}, {"clock"}, {"power"}, {"temp."}, {"PCIe"}, {"NVLinks"}, {"throttled by", true}}};
  for (const Json& device : devices) {
    const auto figures = figures_by_name(device);
    std::vector<std::string> row = {text(device, {"name"})};
    bool has_any = false;
    for (const std::string_view state : kStates) {
      const auto found = figures.find(std::string(state));
      const auto value = found == figures.end() ? std::nullopt : number(*found->second, {"value"});
      has_any = has_any || value;
      row.push_back(value ? amount(fleet::find_figure(state)->unit, *value) : "-");
    }
    const std::string throttle = joined(list(device, {"throttle"}));
    row.push_back(throttle.empty() ? "-" : throttle);
    if (has_any || !throttle.empty()) table.rows.push_back(std::move(row));
  }
  return table;
}

// "GEMM fp8: the device does not offer this precision (cuda:0, cuda:1)": once for all devices with the same reason.
std::vector<std::string> missing_words(const Json& devices) {
  std::vector<std::pair<std::string, std::vector<std::string>>> missing;
  for (const Json& device : devices)
    for (const Json& figure : list(device, {"figures"})) {
      const FigureKind* const kind = fleet::find_figure(string(figure, {"name"}));
      if (kind == nullptr || kind->goal == Goal::none || number(figure, {"value"})) continue;
      const std::string words = fmt::format("{}: {}", kind->words, first_line(figure, {"reason"}));
      auto known = std::find_if(missing.begin(), missing.end(), [&](const auto& each) { return each.first == words; });
      if (known == missing.end()) known = missing.insert(known, {words, {}});
      known->second.push_back(text(device, {"name"}));
    }
  std::vector<std::string> lines;
  for (const auto& [words, names] : missing)
    lines.push_back(names.size() == devices.size() ? words + "."
                                                   : fmt::format("{} ({}).", words, fmt::join(names, ", ")));
  return lines;
}

}  // namespace

DocumentText text_list::fleet_probe(const Json& document) {
  const Json& devices = list(document, {"devices"});
  TextReport report{fmt::format("{}: {}, probed in {}", text(document, {"name"}), counted(devices.size(), "device"),
                                duration(document, {"duration_ns"}))};
  if (const std::string failure = first_line(document, {"failure"}); !failure.empty()) report.open("{}", failure);
  if (devices.size() <= kMostInFull) {
    for (const Json& device : devices) {
      const std::string serial = string(device, {"serial"});
      report.add_unless_empty(fmt::format("{}: {}{}", text(device, {"name"}), text(device, {"model"}),
                                          serial.empty() ? "" : ", serial number " + serial),
                              table_of_one(device));
    }
  } else {
    report.add_unless_empty("Devices", table_of_many(devices));
  }
  report.add_unless_empty("Under load", table_of_states(devices));

  ReportSection wrong{"Wrong or failed"};
  for (const Json& device : devices) {
    for (const Json& sentence : list(device, {"wrong"}))
      if (sentence.is_string()) wrong.remark("{}: {}", text(device, {"name"}), first_line(sentence, {}));
    if (const std::string failure = first_line(device, {"failure"}); !failure.empty())
      wrong.remark("{}: {}", text(device, {"name"}), failure);
  }
  if (!wrong.remarks.empty()) report.sections.push_back(std::move(wrong));

  if (std::vector<std::string> missing = missing_words(devices); !missing.empty())
    report.section("Not measured").remarks = std::move(missing);

  ReportTable links{{{"link to", true}, {"each way"}}};
  for (const Json& link : list(document, {"links"})) {
    std::vector<double> rates;
    for (const Json& rate : list(link, {"bytes_per_s"}))
      if (rate.is_number()) rates.push_back(rate.get<double>());
    std::sort(rates.begin(), rates.end());
    links.rows.push_back(
        {text(link, {"to"}), rates.empty() ? first_line(link, {"reason"}) : amount("B/s", rates[rates.size() / 2])});
  }
  report.add_unless_empty("Links to other nodes", std::move(links));
  return report;
}

}  // namespace weir
