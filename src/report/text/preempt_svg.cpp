// weir.preempt/2 as a picture: latency over the length of the victim's blocks. Knows no experiment and no file.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/plain_text.h"
#include "base/units.h"
#include "report/text/fields.h"
#include "report/text/svg.h"

namespace weir {
namespace {

using namespace fields;

constexpr double kPreemptMargin = 20;
constexpr double kPanelWidth = 540, kPanelHeight = 360;
constexpr double kLeft = 62, kRight = 132, kTop = 30, kBottom = 42;  // around a panel's plot
constexpr double kPictureHead = 76;
constexpr double kLabelStep = 13;
constexpr std::size_t kCurveColours = 9;
constexpr std::size_t kMaxPanels = 8;
constexpr std::size_t kLongestLabel = 22;

struct CurvePoint {
  double x = 0, p50 = 0;
  std::optional<double> tail;  // p99 or p90; nothing if the picture shows medians only
};

struct Series {
  std::string name;
  std::size_t colour = 0;
  bool is_published = false;
  std::vector<CurvePoint> places;
};

struct Panel {
  std::string title, axis;
  bool has_times = true;  // along x; false: counts
  bool has_alone = true;
  std::vector<Series> series;
};

struct Range {
  double low = INFINITY, high = -INFINITY;
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool is_empty() const { return !(low <= high); }
  // Rounds out to whole decades, at least one apart; the 1e-9 absorbs rounding errors of the logarithm.
  void round_out() {
    low = std::floor(std::log10(low) + 1e-9);
    high = std::ceil(std::log10(high) - 1e-9);
    if (high <= low) high = low + 1;
  }
};

bool is_drawable(std::optional<double> value) { return value && std::isfinite(*value) && *value > 0 && *value < 1e18; }

// The latency that the picture shows: to the start of the first block if every mechanism has that, else to the end.
const char* latency_of(const Json& document) {
  for (const Json& mechanism : at(document, {"mechanisms"}))
    for (const Json& point : at(mechanism, {"points"}))
      if (at(point, {"failure"}).is_null() && !is_drawable(number(point, {"to_start_ns", "p50"}))) return "to_end_ns";
  return is_drawable(number(document, {"alone", "to_start_ns", "p50"})) ? "to_start_ns" : "to_end_ns";
}

// The quantile that the picture shows beside p50: the lowest tail of its points, so that all of them can have it.
std::string lowest_tail(const Json& document) {
  double lowest = 0.99;
  for (const Json& mechanism : at(document, {"mechanisms"}))
    for (const Json& point : at(mechanism, {"points"}))
      if (at(point, {"failure"}).is_null() && is_drawable(number(point, {"to_end_ns", "p50"})))
        lowest = std::min(lowest, number(point, {"tail_quantile"}).value_or(0.99));
  return lowest < 0.9 ? "p50" : lowest < 0.99 ? "p90" : "p99";
}

std::optional<double> tail_value(const Json& point, const char* latency, const std::string& tail) {
  if (tail == "p50") return std::nullopt;
  const auto value = number(point, {latency, tail.c_str()});
  return is_drawable(value) ? value : std::nullopt;
}

std::optional<CurvePoint> curve_point(const Json& point, const char* latency, const std::string& tail, double x) {
  const auto p50 = number(point, {latency, "p50"});
  if (!is_drawable(p50) || !is_drawable(x)) return std::nullopt;
  return CurvePoint{x, *p50, tail_value(point, latency, tail)};
}

// Victims that differ in only one respect share a panel: by block time, or by waves.
std::vector<Panel> own_panels(const Json& document, const char* latency, const std::string& tail) {
  struct Key {
    bool is_by_waves;
    std::string kind;
    double fixed;  // waves, or block time where waves vary
    auto operator<=>(const Key&) const = default;
  };
  std::map<Key, std::set<double>> lengths;
  const auto keys_of = [](const Json& victim) {
    const std::string kind = text(victim, {"kind"});
    const double waves = number(victim, {"waves"}).value_or(0), block = number(victim, {"block_ns"}).value_or(0);
    std::vector<std::pair<Key, double>> keys = {{{false, kind, waves}, block}};
    if (waves > 0) keys.push_back({{true, kind, block}, waves});
    return keys;
  };
  for (const Json& victim : at(document, {"plan", "victims"}))
    for (const auto& [key, x] : keys_of(victim)) lengths[key].insert(x);
  std::vector<Key> chosen;
  for (const auto& [key, values] : lengths)
    if (values.size() >= 2) chosen.push_back(key);
  if (chosen.empty())
    for (const auto& [key, values] : lengths)
      if (!key.is_by_waves) chosen.push_back(key);
  std::stable_sort(chosen.begin(), chosen.end(), [&](const Key& a, const Key& b) {
    return std::pair(a.is_by_waves, -static_cast<double>(lengths[a].size())) <
           std::pair(b.is_by_waves, -static_cast<double>(lengths[b].size()));
  });
  if (chosen.size() > kMaxPanels) chosen.resize(kMaxPanels);
  std::vector<Panel> panels;
  for (const Key& key : chosen) {
    Panel panel;
    const std::string kind = key.kind == "waves" ? "" : key.kind + ", ";
    panel.has_times = !key.is_by_waves;
    if (key.is_by_waves) {
      panel.title = fmt::format("{}blocks of {}", kind, format_duration(key.fixed));
      panel.axis = "waves of blocks per kernel";
    } else {
      panel.title = key.fixed > 0
                        ? fmt::format("{}kernels of {:.0f} wave{}", kind, key.fixed, key.fixed == 1 ? "" : "s")
                        : key.kind + " kernel";
      panel.axis = "block time of the victim";
    }
    std::size_t colour = 0;
    for (const Json& mechanism : at(document, {"mechanisms"})) {
      Series series{text(mechanism, {"name"}), colour++ % kCurveColours, false, {}};
      for (const Json& point : at(mechanism, {"points"}))
        for (const auto& [other, x] : keys_of(at(point, {"victim"})))
          if (other == key)
            if (const auto place = curve_point(point, latency, tail, x)) series.places.push_back(*place);
      std::sort(series.places.begin(), series.places.end(),
                [](const CurvePoint& a, const CurvePoint& b) { return a.x < b.x; });
      if (!series.places.empty()) panel.series.push_back(std::move(series));
    }
    panels.push_back(std::move(panel));
  }
  return panels;
}

Panel published_panel(const Json& document, const std::string& tail) {
  const Json& published = at(document, {"published"});
  Panel panel;
  panel.title = fmt::format("Published: {}, {}", text(published, {"source"}), text(published, {"device"}));
  panel.axis = "time of the preempted kernel";
  panel.has_alone = false;
  for (const Json& level : at(published, {"levels"})) {
    // The colour of a mechanism with the same preemption level, if there is one.
    std::size_t colour = kCurveColours - 1, index = 0;
    for (const Json& mechanism : at(document, {"mechanisms"})) {
      if (at(mechanism, {"level"}) == at(level, {"level"})) colour = index % kCurveColours;
      ++index;
    }
    Series series{"XSched " + text(level, {"level"}), colour, true, {}};
    for (const Json& point : at(level, {"points"})) {
      const auto x = number(point, {"kernel_ns"}), p50 = number(point, {"latency_ns", "p50"});
      const auto high = number(point, {"latency_ns", tail.c_str()});
      if (!is_drawable(x) || !is_drawable(p50) || !is_drawable(high)) continue;
      series.places.push_back({*x, *p50, tail == "p50" ? std::nullopt : high});
    }
    if (!series.places.empty()) panel.series.push_back(std::move(series));
  }
  return panel;
}

constexpr const char* kPreemptStyle =
    "<style>text{font:11px system-ui,sans-serif;fill:#24292f}.t{font-size:15px;font-weight:600}"
    ".h{font-size:12px;font-weight:600}.q{fill:#57606a}.g{stroke:#d0d7de;stroke-width:.6}"
    ".f{stroke:#d0d7de;stroke-width:.3}.b{fill:#ffffff}.p{fill:#f6f8fa}.a{fill:#8c959f;opacity:.28}"
    ".m0{color:#24292f}.m1{color:#0072b2}.m2{color:#d55e00}.m3{color:#009e73}.m4{color:#a6449a}"
    ".m5{color:#b07d00}.m6{color:#c2185b}.m7{color:#8a4b2b}.m8{color:#6f7b1e}"
    ".l{fill:currentColor;font-weight:600}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.q{fill:#9aa4af}.g{stroke:#3d444d}.f{stroke:#3d444d}"
    ".b{fill:#0d1117}.p{fill:#161b22}.a{fill:#9aa4af;opacity:.25}"
    ".m0{color:#e6edf3}.m1{color:#58a6e0}.m2{color:#ff8a4c}.m3{color:#3ddba5}.m4{color:#e08ad6}"
    ".m5{color:#f0c04a}.m6{color:#ff6fa8}.m7{color:#d39a7a}.m8{color:#c3cf5e}.l{fill:currentColor}}</style>\n";

class PreemptPicture {
 public:
  explicit PreemptPicture(const Json& document)
      : document_(document), latency_(latency_of(document)), tail_(lowest_tail(document)) {}

  std::string draw() {
    std::vector<Panel> panels = own_panels(document_, latency_, tail_);
    // Placed next to the first panel, which it can be compared with.
    if (Panel others = published_panel(document_, tail_); !others.series.empty())
      panels.insert(panels.begin() + (panels.empty() ? 0 : 1), std::move(others));
    find_ranges(panels);
    const double width = 2 * kPanelWidth + 2 * kPreemptMargin;
    label(kPreemptMargin, kPreemptMargin + 14, "t",
          fmt::format("How long urgent work waits: {} ({})", text(document_, {"device", "name"}),
                      text(document_, {"device", "model"})));
    label(kPreemptMargin, kPreemptMargin + 34, "q",
          fmt::format("From the moment a request was due {}. {} Dashed: published by others.",
                      std::string(latency_) == "to_start_ns" ? "to its first block" : "to its end", legend()));
    if (text(document_, {"status"}) == "ended_early" || !at(document_, {"failures"}).empty())
      label(kPreemptMargin, kPreemptMargin + 50, "q",
            !at(document_, {"failures"}).empty() ? "FAILED: work was lost, repeated or not observed; see the report."
                                                 : "Ended early: some points are missing.");
    std::size_t index = 0;
    for (const Panel& panel : panels) {
      draw_panel(panel, kPreemptMargin + kPanelWidth * static_cast<double>(index % 2),
                 kPictureHead + (kPanelHeight + 14) * static_cast<double>(index / 2));
      ++index;
    }
    const double height =
        kPictureHead + (kPanelHeight + 14) * std::ceil(static_cast<double>(panels.size()) / 2) + kPreemptMargin;
    return svg_picture(width, height, Markup::literal(kPreemptStyle), body_);
  }

 private:
  std::string legend() const {
    if (tail_ == "p50") return "Thick: p50.";
    return fmt::format("Thick: p50, thin: {0}, band: the same command alone, p50 to {0}.", tail_);
  }

  // All panels share one latency scale and one time scale along x, so that equal lengths mean equal values.
  void find_ranges(const std::vector<Panel>& panels) {
    for (const Panel& panel : panels)
      for (const Series& series : panel.series)
        for (const CurvePoint& place : series.places) {
          y_.add(place.p50);
          y_.add(place.tail.value_or(place.p50));
          (panel.has_times ? times_ : counts_).add(place.x);
        }
    low_ = number(document_, {"alone", latency_, "p50"});
    high_ = tail_value(at(document_, {"alone"}), latency_, tail_);
    if (is_drawable(low_)) y_.add(*low_);
    for (Range* range : {&y_, &times_, &counts_}) {
      if (range->is_empty()) range->add(1e3);
      range->round_out();
    }
  }

  void label(double x, double y, const std::string& style, const std::string& words, const char* anchor = "start") {
    body_ += svg_label(x, y, style, words, anchor);
  }

  void draw_panel(const Panel& panel, double left, double top) {
    const Range& along = panel.has_times ? times_ : counts_;
    const double x0 = left + kLeft, x1 = left + kPanelWidth - kRight;
    const double y0 = top + kTop, y1 = top + kPanelHeight - kBottom;
    const auto scaled = [](double value, const Range& range, double from, double to) {
      return from + (to - from) * (std::log10(value) - range.low) / (range.high - range.low);
    };
    const auto x = [&](double value) { return scaled(value, along, x0, x1); };
    const auto y = [&](double value) { return std::clamp(scaled(value, y_, y1, y0), y0, y1); };
    label(left + kLeft, top + 18, "h", panel.title);
    body_ += svg_box(x0, y0, x1 - x0, y1 - y0, "p");
    const auto line = [&](double ax, double ay, double bx, double by, bool is_main) {
      body_ += Markup::format("<path class=\"{}\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\"/>\n", is_main ? "g" : "f", ax, ay,
                              bx, by);
    };
    const auto grid = [](const Range& range, const auto& draw) {
      for (double decade = range.low; decade <= range.high; ++decade)
        for (const double step : {1.0, 2.0, 5.0})
          if (const double value = std::pow(10, decade) * step; value <= std::pow(10, range.high) * 1.001)
            draw(value, step == 1);
    };
    grid(along, [&](double value, bool is_main) {
      line(x(value), y0, x(value), y1, is_main);
      if (is_main)
        label(x(value), y1 + 15, "q", panel.has_times ? tick(value) : fmt::format("{:.0f}", value), "middle");
    });
    grid(y_, [&](double value, bool is_main) {
      line(x0, y(value), x1, y(value), is_main);
      if (is_main) label(x0 - 6, y(value) + 4, "q", tick(value), "end");
    });
    label((x0 + x1) / 2, y1 + 32, "q", panel.axis, "middle");
    if (panel.has_alone && is_drawable(low_) && is_drawable(high_)) {
      body_ += Markup::format(
          "<rect class=\"a\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"><title>alone: p50 {}, {} "
          "{}</title></rect>\n",
          x0, y(*high_), x1 - x0, std::max(1.5, y(*low_) - y(*high_)), format_duration(*low_), tail_,
          format_duration(*high_));
      label(x1 - 5, y(*low_) - 3, "q", "alone", "end");
    }
    for (const Series& series : panel.series) draw_series(series, x, y);
    draw_names(panel, x1, y, y0, y1);
  }

  template <class X, class Y>
  void draw_series(const Series& series, const X& x, const Y& y) {
    const Markup dash = series.is_published ? Markup::format(" stroke-dasharray=\"5 4\"") : Markup();
    Markup middle, tail, back;
    for (const CurvePoint& place : series.places) {
      middle += Markup::format("{}{:.1f} {:.1f}", middle.empty() ? "M" : "L", x(place.x), y(place.p50));
      if (!place.tail) continue;
      tail += Markup::format("{}{:.1f} {:.1f}", tail.empty() ? "M" : "L", x(place.x), y(*place.tail));
      back = Markup::format("L{:.1f} {:.1f}", x(place.x), y(place.p50)) + back;
    }
    body_ += Markup::format("<g class=\"m{}\" fill=\"none\" stroke=\"currentColor\">\n", series.colour);
    if (!tail.empty())
      body_ +=
          Markup::format("<path d=\"{}{}Z\" fill=\"currentColor\" stroke=\"none\" opacity=\".08\"/>\n", tail, back);
    body_ += Markup::format("<path d=\"{}\" stroke-width=\"2.4\"{}/>\n", middle, dash);
    if (!tail.empty()) body_ += Markup::format("<path d=\"{}\" stroke-width=\"1\"{}/>\n", tail, dash);
    if (!series.is_published)
      for (const CurvePoint& place : series.places) {
        body_ += Markup::format(
            "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"currentColor\"><title>{}: p50 {}{}</title>"
            "</circle>\n",
            x(place.x), y(place.p50), series.name, format_duration(place.p50), tail_words(place));
        if (place.tail)
          body_ += Markup::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2\"/>\n", x(place.x), y(*place.tail));
      }
    body_ += Markup::format("</g>\n");
  }

  std::string tail_words(const CurvePoint& place) const {
    if (tail_ == "p50") return "";
    return fmt::format(", {} {}", tail_, place.tail ? format_duration(*place.tail) : "-");
  }

  // Labels at the ends of their lines, moved apart where they would overlap.
  template <class Y>
  void draw_names(const Panel& panel, double right, const Y& y, double highest, double lowest) {
    std::vector<std::pair<double, const Series*>> names;
    for (const Series& series : panel.series) names.emplace_back(y(series.places.back().p50), &series);
    std::sort(names.begin(), names.end());
    double next = highest;
    for (auto& [place, series] : names) next = (place = std::max(place, next)) + kLabelStep;
    double last = lowest;
    for (auto name = names.rbegin(); name != names.rend(); ++name)
      last = (name->first = std::min(name->first, last)) - kLabelStep;
    for (const auto& [place, series] : names)
      label(right + 7, place + 4, fmt::format("l m{}", series->colour),
            std::string(whole_characters(series->name, kLongestLabel)));
  }

  // 1 us, 10 us: format_duration would write 10.0 us.
  static std::string tick(double ns) {
    constexpr std::pair<double, const char*> kUnits[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}};
    for (const auto& [size, unit] : kUnits)
      if (ns >= size * 0.999) return fmt::format("{:.0f} {}", ns / size, unit);
    return fmt::format("{:g} ns", ns);
  }

  const Json& document_;
  const char* latency_;
  std::string tail_;  // p99, p90 or p50
  Range y_, times_, counts_;
  std::optional<double> low_, high_;  // for the command alone
  Markup body_;
};

}  // namespace

std::string preempt_svg(const Json& document) { return PreemptPicture(document).draw(); }

}  // namespace weir
