// A timeline as a picture. Knows timelines; no analysis and no file.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "base/plain_text.h"
#include "base/units.h"
#include "report/text/svg.h"
#include "trace/timeline_builder.h"

namespace weir {
namespace {

constexpr double kLabels = 170;  // pixels left of the lanes
constexpr double kTimelineMargin = 16;
constexpr double kLane = 14;  // height
constexpr double kLaneGap = 4;
constexpr double kNamedBar = 2.5;  // wider bars show their name
constexpr std::size_t kMaxNamedBars = 12'000;
constexpr double kFaintest = 0.06;  // opacity: a single short kernel in an empty second is still seen

constexpr std::array kKinds = {SpanKind::kernel, SpanKind::collective, SpanKind::copy, SpanKind::memset,
                               SpanKind::host};

const char* class_of(SpanKind kind) {
  switch (kind) {
    case SpanKind::kernel:
      return "k";
    case SpanKind::collective:
      return "c";
    case SpanKind::copy:
      return "m";
    case SpanKind::memset:
      return "s";
    case SpanKind::host:
      break;
  }
  return "h";
}

const char* word_of(SpanKind kind) { return kind == SpanKind::kernel ? "compute" : to_string(kind); }

std::string shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  return std::string(whole_characters(text, most - 3)) + "...";
}

struct Scale {
  std::int64_t from_ns = 0, to_ns = 1;
  double left = 0, width = 1;
  double x(std::int64_t ns) const {
    const double share = static_cast<double>(ns - from_ns) / std::max<double>(1, static_cast<double>(to_ns - from_ns));
    return left + width * std::clamp(share, 0.0, 1.0);
  }
};

// Bars of one lane. Wide ones have their exact place and a name; all others share columns of one pixel, which are as
// opaque as the lane was busy there and have the colour of the kind with most time. The page's timeline follows the
// same rule (web/src/timeline/pixels.ts, palette.ts), so a lane's ink is its busy time.
class Lane {
 public:
  Lane(const Timeline& timeline, const Scale& scale, double y, double height, std::size_t* named)
      : timeline_(timeline),
        scale_(scale),
        y_(y),
        height_(height),
        columns_(static_cast<std::size_t>(std::ceil(scale.width))),
        named_(named) {}

  // In the order of their starts. Where several run at once, the first one is drawn.
  void add(const Span& span) {
    const double from = std::max(scale_.x(span.started_ns) - scale_.left, covered_);
    const double to = std::max(scale_.x(span.ended_ns) - scale_.left, from);
    covered_ = to;
    if (to - from >= kNamedBar && *named_ < kMaxNamedBars) {
      add_bar(span, from, to);
      return;
    }
    for (auto at = std::min(static_cast<std::size_t>(from), columns_.size() - 1); at < columns_.size(); ++at) {
      const auto left = static_cast<double>(at);
      columns_[at].is_used = true;  // instants too
      columns_[at].busy[static_cast<std::size_t>(span.kind)] += std::min(to, left + 1) - std::max(from, left);
      if (to <= left + 1) break;
    }
  }

  Markup finish() {
    std::map<std::pair<SpanKind, int>, Markup> paths;  // by kind and opacity in hundredths
    for (std::size_t at = 0; at < columns_.size();) {
      const auto [kind, opacity] = look(columns_[at]);
      std::size_t end = at + 1;
      while (end < columns_.size() && look(columns_[end]) == std::pair(kind, opacity)) ++end;
      if (opacity > 0)
        paths[{kind, opacity}] += Markup::format("M{:.0f} {:.1f}h{}v{:.1f}h-{}z", scale_.left + static_cast<double>(at),
                                                 y_, end - at, height_, end - at);
      at = end;
    }
    Markup out;
    for (const auto& [look, path] : paths)
      out += Markup::format("<path class=\"{}\" opacity=\"{:.2f}\" d=\"{}\"/>\n", class_of(look.first),
                            look.second / 100.0, path);
    return out + bars_;
  }

 private:
  struct Column {
    std::array<double, kKinds.size()> busy{};  // by kind
    bool is_used = false;
  };

  static std::pair<SpanKind, int> look(const Column& column) {
    if (!column.is_used) return {SpanKind::kernel, 0};
    const auto most = std::max_element(column.busy.begin(), column.busy.end());
    const double busy = std::accumulate(column.busy.begin(), column.busy.end(), 0.0);
    return {static_cast<SpanKind>(most - column.busy.begin()),
            static_cast<int>(std::lround(100 * std::clamp(busy, kFaintest, 1.0)))};
  }

  void add_bar(const Span& span, double from, double to) {
    ++*named_;
    const std::string name = span.name < timeline_.names.size() ? timeline_.names[span.name] : word_of(span.kind);
    const std::string title = fmt::format("{}: {}", shortened(name, 160),
                                          format_duration(static_cast<double>(span.ended_ns - span.started_ns)));
    bars_ += Markup::format(
        "<rect class=\"{}\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\"><title>{}</title></rect>\n",
        class_of(span.kind), scale_.left + from, y_, to - from, height_, title);
  }

  const Timeline& timeline_;
  const Scale& scale_;
  double y_, height_;
  double covered_ = 0;  // pixels from the left that are drawn already
  std::vector<Column> columns_;
  Markup bars_;
  std::size_t* named_;  // named bars so far, in the whole picture
};

double round_step(double ns) {
  const double power = std::pow(10.0, std::floor(std::log10(std::max(1.0, ns))));
  for (const double factor : {1.0, 2.0, 5.0})
    if (power * factor >= ns) return power * factor;
  return power * 10;
}

constexpr const char* kTimelineStyle =
    "<style>text{font:11px "
    "system-ui,sans-serif;fill:#24292f}.t{font-size:15px;font-weight:600}.d{font-size:12px;font-weight:600}"
    ".q{fill:#57606a}.g{stroke:#d0d7de;stroke-width:.5}.l{fill:#f6f8fa}.b{fill:#ffffff}"
    ".k{fill:#4477aa}.c{fill:#ee8866}.m{fill:#228833}.s{fill:#ccbb44}.h{fill:#999999}.x{fill:#cc3311}"
    ".a{stroke:#57606a;stroke-width:.7;fill:none;opacity:.6}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.q{fill:#8b949e}.g{stroke:#30363d}.l{fill:#161b22}.b{fill:#"
    "0d1117}"
    ".k{fill:#77aadd}.c{fill:#ee8866}.m{fill:#44bb99}.s{fill:#eedd88}.x{fill:#ff6b4a}.a{stroke:#8b949e}}</style>\n";

class TimelinePicture {
 public:
  TimelinePicture(const Timeline& timeline, const SvgOptions& options) : timeline_(timeline), options_(options) {
    scale_.left = kTimelineMargin + kLabels;
    scale_.width = std::max(100.0, options.width - kTimelineMargin * 2 - kLabels);
    scale_.from_ns = INT64_MAX;
    scale_.to_ns = INT64_MIN;
    for (const Span& span : timeline.spans) {
      if (span.started_ns == kNoTime || span.ended_ns == kNoTime) continue;
      scale_.from_ns = std::min(scale_.from_ns, span.started_ns);
      scale_.to_ns = std::max(scale_.to_ns, span.ended_ns);
    }
    has_spans_ = scale_.from_ns <= scale_.to_ns;
    if (!has_spans_) scale_.from_ns = 0, scale_.to_ns = 1;
  }

  std::string draw() {
    y_ = kTimelineMargin + 14;
    text(kTimelineMargin, y_, "t", options_.title.empty() ? "Timeline" : options_.title);
    y_ += 20;
    legend();
    if (!has_spans_) {
      text(kTimelineMargin, y_ + 10, "q", "No GPU commands.");
      y_ += 20;
    }
    std::map<std::uint16_t, std::vector<std::uint32_t>> by_device;
    for (std::uint32_t i = 0; i < timeline_.spans.size(); ++i) {
      const Span& span = timeline_.spans[i];
      if (span.started_ns == kNoTime || span.ended_ns == kNoTime) continue;
      by_device[span.stream < timeline_.streams.size() ? timeline_.streams[span.stream].device : 0].push_back(i);
    }
    std::size_t drawn = 0;
    for (auto& [device, spans] : by_device) {
      if (drawn++ == options_.devices) {
        text(kTimelineMargin, y_ + 10, "q",
             fmt::format("{} more devices are not drawn.", by_device.size() - options_.devices));
        y_ += 20;
        break;
      }
      std::sort(spans.begin(), spans.end(), [&](std::uint32_t a, std::uint32_t b) {
        return timeline_.spans[a].started_ns < timeline_.spans[b].started_ns;
      });
      draw_device(device, spans);
    }
    const double height = y_ + kTimelineMargin;
    return svg_picture(options_.width, height, Markup::literal(kTimelineStyle), body_);
  }

 private:
  void text(double x, double y, const char* style, const std::string& words, const char* anchor = "start") {
    body_ += svg_label(x, y, style, words, anchor);
  }

  void legend() {
    double x = kTimelineMargin;
    const auto entry = [&](const char* style, const char* word) {
      body_ += Markup::format("<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"10\" height=\"10\"/>\n", style, x,
                              y_ - 9);
      text(x + 14, y_, "q", word);
      x += 26 + 6.2 * static_cast<double>(std::string_view(word).size());
    };
    for (const SpanKind kind : kKinds) entry(class_of(kind), word_of(kind));
    entry("x", "collective that nothing hides");
    text(
        options_.width - kTimelineMargin, y_, "q",
        has_spans_ ? fmt::format("{} in all", format_duration(static_cast<double>(scale_.to_ns - scale_.from_ns))) : "",
        "end");
    y_ += 16;
  }

  void axis(double top, double bottom) {
    const double whole = static_cast<double>(scale_.to_ns - scale_.from_ns);
    const double step = round_step(whole / 8);
    for (double at = 0; at <= whole; at += step) {
      const double x = scale_.left + scale_.width * at / std::max(1.0, whole);
      grid_ += Markup::format("<path class=\"g\" d=\"M{:.1f} {:.1f}V{:.1f}\"/>\n", x, top, bottom);
      grid_ += Markup::format("<text class=\"q\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", x + 2, top + 8,
                              at == 0 ? "0" : format_duration(at));
    }
  }

  struct Busy {
    double sum = 0;
    std::vector<std::uint32_t> spans;
  };

  // The busiest lanes, in their original order.
  template <class Key>
  static std::vector<Key> choose(const std::map<Key, Busy>& lanes, std::size_t most) {
    std::vector<Key> keys;
    for (const auto& [key, lane] : lanes) keys.push_back(key);
    if (keys.size() > most) {
      std::stable_sort(keys.begin(), keys.end(),
                       [&](const Key& a, const Key& b) { return lanes.at(a).sum > lanes.at(b).sum; });
      keys.resize(most);
      std::sort(keys.begin(), keys.end());
    }
    return keys;
  }

  void lane(const std::string& label, const std::vector<std::uint32_t>& spans,
            std::map<std::uint32_t, double>* middles) {
    body_ += svg_box(scale_.left, y_, scale_.width, kLane, "l");
    text(scale_.left - 6, y_ + kLane - 3, "q", shortened(label, 28), "end");
    Lane bars(timeline_, scale_, y_ + 1, kLane - 2, &named_);
    for (const std::uint32_t i : spans) {
      bars.add(timeline_.spans[i]);
      if (middles != nullptr) (*middles)[i] = y_ + kLane / 2;
    }
    body_ += bars.finish();
    y_ += kLane + kLaneGap;
  }

  // Compute, communication and copies of all streams in three rows; communication that nothing hides is red.
  void activity(const std::vector<std::uint32_t>& spans) {
    struct Row {
      const char* label;
      std::vector<std::uint32_t> spans;
    };
    std::array<Row, 3> rows{Row{"compute", {}}, Row{"communication", {}}, Row{"copies", {}}};
    std::vector<std::uint32_t> others;  // everything that hides communication
    for (const std::uint32_t i : spans) {
      const SpanKind kind = timeline_.spans[i].kind;
      if (kind == SpanKind::host) continue;
      rows[kind == SpanKind::kernel ? 0 : kind == SpanKind::collective ? 1 : 2].spans.push_back(i);
      if (kind != SpanKind::collective) others.push_back(i);
    }
    for (const Row& row : rows) {
      if (row.spans.empty()) continue;
      const double y = y_;
      lane(row.label, row.spans, nullptr);
      if (row.label == rows[1].label) draw_exposed(others, row.spans, y);
    }
    y_ += 4;
  }

  void draw_exposed(const std::vector<std::uint32_t>& others, const std::vector<std::uint32_t>& communication,
                    double y) {
    Markup path;
    std::int64_t covered = INT64_MIN;  // end of the communication drawn so far
    std::size_t next = 0;
    const auto add = [&](std::int64_t from, std::int64_t to) {
      if (to <= from) return;
      const double x = scale_.x(from);
      path += Markup::format("M{:.2f} {:.1f}h{:.2f}v{:.1f}h-{:.2f}z", x, y + kLane - 4, std::max(0.1, scale_.x(to) - x),
                             3.0, std::max(0.1, scale_.x(to) - x));
    };
    std::int64_t busy_to = INT64_MIN;  // end of the other work seen so far
    for (const std::uint32_t i : communication) {
      const std::int64_t from = std::max(timeline_.spans[i].started_ns, covered);
      const std::int64_t to = timeline_.spans[i].ended_ns;
      if (to <= from) continue;
      covered = to;
      std::int64_t at = from;
      while (next < others.size() && timeline_.spans[others[next]].started_ns < to) {
        const Span& other = timeline_.spans[others[next]];
        at = std::max(at, std::min(busy_to, to));
        if (other.started_ns > at) add(at, other.started_ns);
        busy_to = std::max(busy_to, other.ended_ns);
        at = std::max(at, std::min(busy_to, to));
        ++next;
      }
      at = std::max(at, std::min(busy_to, to));
      add(at, to);
    }
    if (!path.empty()) body_ += Markup::format("<path class=\"x\" d=\"{}\"/>\n", path);
  }

  void draw_device(std::uint16_t device, const std::vector<std::uint32_t>& spans) {
    y_ += 12;
    std::string title = "Device";
    if (device < timeline_.devices.size()) {
      const TraceDevice& facts = timeline_.devices[device];
      title = facts.label;
      if (timeline_.processes.size() > 1 && facts.process < timeline_.processes.size())
        title = fmt::format("Rank {}, {}", timeline_.processes[facts.process].rank, facts.label);
    }
    text(kTimelineMargin, y_, "d", title);
    y_ += 6;
    const double top = y_;
    const Markup above = std::exchange(body_, {});
    y_ += 12;
    activity(spans);

    std::map<std::uint16_t, Busy> streams;
    std::map<std::int32_t, Busy> queues;
    for (const std::uint32_t i : spans) {
      const Span& span = timeline_.spans[i];
      const auto length = static_cast<double>(span.ended_ns - span.started_ns);
      streams[span.stream].sum += length;
      streams[span.stream].spans.push_back(i);
      if (span.queue == kNoQueue) continue;
      queues[span.queue].sum += length;
      queues[span.queue].spans.push_back(i);
    }
    std::map<std::uint32_t, double> middles;
    for (const std::uint16_t stream : choose(streams, options_.lanes))
      lane(stream < timeline_.streams.size() ? timeline_.streams[stream].label : fmt::format("stream {}", stream),
           streams[stream].spans, timeline_.dependencies.empty() ? nullptr : &middles);
    more(streams.size(), "streams");
    if (!queues.empty()) y_ += 4;
    for (const std::int32_t queue : choose(queues, options_.lanes)) lane(label_of(queue), queues[queue].spans, nullptr);
    more(queues.size(), "hardware queues");
    arrows(middles);
    axis(top, y_);
    body_ = above + std::exchange(grid_, {}) + body_;
  }

  void more(std::size_t count, const char* what) {
    if (count <= options_.lanes) return;
    text(scale_.left, y_ + 9, "q",
         fmt::format("{} more {}, which did less, are not drawn", count - options_.lanes, what));
    y_ += 16;
  }

  std::string label_of(std::int32_t queue) const {
    for (const TraceQueue& facts : timeline_.queues)
      if (facts.id == queue) return facts.label;
    return queue >= kCopyQueues ? fmt::format("copy engine {}", queue - kCopyQueues) : fmt::format("queue {}", queue);
  }

  void arrows(const std::map<std::uint32_t, double>& middles) {
    Markup path;
    std::size_t count = 0;
    for (const Dependency& dependency : timeline_.dependencies) {
      const auto before = middles.find(dependency.before), after = middles.find(dependency.after);
      if (before == middles.end() || after == middles.end()) continue;
      if (++count > options_.arrows) {
        text(scale_.left, y_ + 9, "q", fmt::format("more than {} waits between streams: no arrows", options_.arrows));
        y_ += 16;
        return;
      }
      const double x0 = scale_.x(timeline_.spans[dependency.before].ended_ns);
      const double x1 = scale_.x(timeline_.spans[dependency.after].started_ns);
      path += Markup::format("M{:.1f} {:.1f}L{:.1f} {:.1f}", x0, before->second, x1, after->second);
    }
    if (!path.empty()) body_ += Markup::format("<path class=\"a\" d=\"{}\"/>\n", path);
  }

  const Timeline& timeline_;
  const SvgOptions& options_;
  Scale scale_;
  bool has_spans_ = false;
  double y_ = 0;
  std::size_t named_ = 0;
  Markup body_, grid_;
};

}  // namespace

std::string timeline_svg(const Timeline& timeline, const SvgOptions& options) {
  return TimelinePicture(timeline, options).draw();
}

}  // namespace weir
