#include "lab/watch/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/units.h"

namespace weir::watch {
namespace {

constexpr std::array<std::int64_t, 11> kIntervalsMs = {50,    100,    200,    500,    1'000,  2'000,
                                                       5'000, 10'000, 30'000, 60'000, 600'000};

constexpr std::array<std::string_view, 10> kHelp = {"q          quit",
                                                    "s  >  <    sort by the next, the previous column",
                                                    "r          reverse the order",
                                                    "p  space   pause: the picture stands still, sampling goes on",
                                                    "+  -       sample less often, more often",
                                                    "arrows     scroll; PgUp PgDn Home End too",
                                                    "Ctrl-L     draw the screen anew",
                                                    "h  ?       this page, and back",
                                                    "",
                                                    "- in a cell: the source does not know; --json says why."};

std::string fact_text(const Fact& fact) {
  struct Shown {
    std::string_view unit, suffix;
    double factor;
  };
  constexpr Shown kShown[] = {{"ratio", " %", 100}, {"watts", " W", 1}, {"celsius", " C", 1}, {"hertz", " MHz", 1e-6}};
  const double value = *fact.figure.value;
  std::string text =
      fact.unit == "bytes" ? format_bytes(static_cast<std::uint64_t>(std::max(0.0, value))) : fmt::format("{}", value);
  for (const Shown& shown : kShown)
    if (shown.unit == fact.unit) text = fmt::format("{:.0f}{}", value * shown.factor, shown.suffix);
  std::string words = fact.name;
  std::replace(words.begin(), words.end(), '_', ' ');
  return fmt::format("{} {}", words, text);
}

// "pid 4711 python3 on gpu f7bc: memory 12.0 GiB   96 CUs"; empty where nothing is known
std::string use_text(const ProcessUse& use) {
  std::string text;
  const auto add = [&](const SampleValue& value, const std::string& words) {
    if (value.value) text += (text.empty() ? "" : "   ") + words;
  };
  const auto of = [](const SampleValue& value) { return std::max(0.0, value.value.value_or(0)); };
  add(use.memory_bytes, "memory " + format_bytes(static_cast<std::uint64_t>(of(use.memory_bytes))));
  add(use.compute_units, fmt::format("{:.0f} CUs", of(use.compute_units)));
  add(use.busy, fmt::format("engines {:.0f} %", 100 * of(use.busy)));
  if (of(use.evictions) > 0) add(use.evictions, fmt::format("evicted {:.0f}x", of(use.evictions)));
  if (of(use.evicted_ns) > 0) add(use.evicted_ns, fmt::format("{} evicted", format_duration(of(use.evicted_ns))));
  if (text.empty()) return text;
  return printable(fmt::format("pid {}{}{} on {}: ", use.pid, use.name.empty() ? "" : " ", use.name, use.device)) +
         text;
}

// A line for each device, then one for each process. Shows only known values: a line of dashes would be useless.
std::vector<std::string> fact_lines(const Sample& sample) {
  std::vector<std::string> lines;
  const std::string* device = nullptr;
  for (const Fact& fact : sample.facts) {
    if (!fact.figure.value) continue;
    if (device == nullptr || *device != fact.device) {
      device = &fact.device;
      lines.push_back(fact.device.empty() ? "" : printable(fact.device) + ":");
    }
    if (!lines.back().empty()) lines.back() += "   ";
    lines.back() += fact_text(fact);
  }
  for (const ProcessUse& use : sample.processes)
    if (std::string text = use_text(use); !text.empty()) lines.push_back(std::move(text));
  return lines;
}

std::string title_text(const View& view, const Sample* sample) {
  std::string text = "weir watch";
  if (sample != nullptr) {
    text += sample->source == "kfd" ? "  KFD" : fmt::format("  {}", sample->device);
    if (!sample->workload.empty()) text += fmt::format("  {}", sample->workload);
  }
  text += fmt::format("  every {}", interval_text(view.interval_ns));
  if (sample != nullptr) text += fmt::format("  #{}", sample->number);
  return text;
}

std::vector<std::string> remarks_of(const Sample& sample) {
  std::vector<std::string> remarks = sample.notes;
  for (const Missing& missing : sample.missing)
    remarks.push_back(fmt::format("{}: {}: {}. {}", missing.part, missing.path, missing.reason, missing.hint));
  return remarks;
}

std::string no_rows_text(const Sample& sample) {
  return sample.missing.empty() ? "No queues now."
                                : fmt::format("No queues can be seen: {}", sample.missing.front().reason);
}

// Lines above the table. A small screen drops some of them, the title last.
struct Layout {
  int facts = 0, remarks = 0;  // number of lines of each
  int heading = 1;             // the line at which the table begins
  int footer = 0;
  std::size_t rows = 0;
};

Layout layout_of(const Sample* sample, int width, int height) {
  Layout layout;
  const std::size_t facts = sample == nullptr ? 0 : fact_lines(*sample).size();
  if (height >= 7) layout.facts = static_cast<int>(std::min<std::size_t>(facts, height >= 20 ? 6 : 1));
  if (sample != nullptr && height >= 10) {
    std::size_t lines = 0;
    for (const std::string& remark : remarks_of(*sample)) lines += broken(remark, width).size();
    layout.remarks = static_cast<int>(std::min<std::size_t>(lines, height >= 16 ? 3 : 1));
  }
  layout.heading = height >= 2 ? 1 + layout.facts + layout.remarks : 0;
  layout.footer = height >= 4 ? 1 : 0;
  layout.rows = static_cast<std::size_t>(std::max(0, height - layout.heading - 1 - layout.footer));
  return layout;
}

struct Placed {
  Column column;
  int x, width;
};

// The most important columns that fit, in their usual order, always including the sort column. The queue names take the
// remaining width.
std::vector<Placed> place_columns(Column sort, int width) {
  std::vector<ColumnType> chosen(columns().begin(), columns().end());
  std::stable_sort(chosen.begin(), chosen.end(), [&](const ColumnType& a, const ColumnType& b) {
    const auto weight = [&](const ColumnType& type) {
      if (type.column == Column::queue) return 100;
      return type.column == sort ? 99 : type.importance;
    };
    return weight(a) > weight(b);
  });
  std::vector<Placed> placed;
  int used = 0;
  for (const ColumnType& type : chosen) {
    const int wanted = static_cast<int>(type.width) + (placed.empty() ? 0 : 1);
    if (!placed.empty() && used + wanted > width) break;
    used += wanted;
    placed.push_back({type.column, 0, static_cast<int>(type.width)});
  }
  std::sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) { return a.column < b.column; });
  placed[0].width += std::max(0, width - used);
  int x = 0;
  for (Placed& one : placed) {
    one.x = x;
    x += one.width + 1;
  }
  return placed;
}

void put_cell(Grid& grid, const Placed& place, int y, const std::string& text, Style style) {
  const int length = std::min(static_cast<int>(text.size()), place.width);
  const int x = place.column == Column::queue ? place.x : place.x + place.width - length;
  grid.put(x, y, std::string_view(text).substr(0, static_cast<std::size_t>(length)), style);
}

void draw_table(Grid& grid, const View& view, const Sample& sample, int top, std::size_t rows) {
  const std::vector<Placed> places = place_columns(view.sort, grid.width());
  grid.paint(top, Style::reverse);
  for (const Placed& place : places)
    put_cell(grid, place, top, heading(place.column, sample),
             place.column == view.sort ? Style::sorted : Style::reverse);
  if (sample.rows.empty() && rows > 0) grid.put(0, top + 1, no_rows_text(sample), Style::dim);
  const std::vector<std::size_t> order = order_of(sample, view.sort, view.is_reversed);
  for (std::size_t i = 0; i < rows && view.first_row + i < order.size(); ++i) {
    const Row& row = sample.rows[order[view.first_row + i]];
    const bool is_busy = row.is_active == true || row.backlog.value.value_or(0) > 0;
    for (const Placed& place : places)
      put_cell(grid, place, top + 1 + static_cast<int>(i), cell(place.column, row),
               is_busy ? Style::plain : Style::dim);
  }
}

std::string footer_text(const View& view, const Sample* sample, std::size_t rows, int width) {
  std::string text = width >= 60   ? "q quit  s sort  r reverse  p pause  +- interval  h help"
                     : width >= 30 ? "q quit  s sort  p pause  h help"
                                   : "q quit  h help";
  const std::size_t all = sample == nullptr ? 0 : sample->rows.size();
  if (all <= rows) return text;
  const std::string range = fmt::format("{}-{} of {}", view.first_row + 1, std::min(all, view.first_row + rows), all);
  if (text.size() + 2 + range.size() > static_cast<std::size_t>(std::max(width, 0))) return range;
  return text + std::string(static_cast<std::size_t>(width) - text.size() - range.size(), ' ') + range;
}

}  // namespace

Key key_of(int character) {
  constexpr std::pair<Key, std::string_view> kKeys[] = {
      {Key::sort_next, "s>."}, {Key::sort_previous, "S<,"}, {Key::reverse, "r"},
      {Key::pause, "p "},      {Key::slower, "+="},         {Key::faster, "-"},
      {Key::help, "h?"},       {Key::quit, "qQ"},           {Key::up, "k"},
      {Key::down, "j"},        {Key::redraw, "\f"}};  // Ctrl-L
  if (character > 0 && character < 128)
    for (const auto& [key, characters] : kKeys)
      if (characters.find(static_cast<char>(character)) != std::string_view::npos) return key;
  return Key::none;
}

void press(View& view, Key key, std::size_t rows, std::size_t room) {
  const std::size_t count = columns().size();
  const auto column = static_cast<std::size_t>(view.sort);
  const std::size_t page = std::max<std::size_t>(room, 1);
  switch (key) {
    case Key::sort_next:
      view.sort = static_cast<Column>((column + 1) % count);
      break;
    case Key::sort_previous:
      view.sort = static_cast<Column>((column + count - 1) % count);
      break;
    case Key::reverse:
      view.is_reversed = !view.is_reversed;
      break;
    case Key::pause:
      view.is_paused = !view.is_paused;
      break;
    case Key::slower:
      for (const std::int64_t ms : kIntervalsMs)
        if (ms * 1'000'000 > view.interval_ns) {
          view.interval_ns = ms * 1'000'000;
          break;
        }
      break;
    case Key::faster:
      for (auto ms = kIntervalsMs.rbegin(); ms != kIntervalsMs.rend(); ++ms)
        if (*ms * 1'000'000 < view.interval_ns) {
          view.interval_ns = *ms * 1'000'000;
          break;
        }
      break;
    case Key::help:
      view.shows_help = !view.shows_help;
      break;
    case Key::quit:
      view.has_quit = true;
      break;
    case Key::up:
      view.first_row -= view.first_row > 0 ? 1 : 0;
      break;
    case Key::down:
      ++view.first_row;
      break;
    case Key::page_up:
      view.first_row -= std::min(view.first_row, page);
      break;
    case Key::page_down:
      view.first_row += page;
      break;
    case Key::first:
      view.first_row = 0;
      break;
    case Key::last:
      view.first_row = rows;
      break;
    case Key::none:
    case Key::redraw:
    case Key::resize:
      break;
  }
  // Also after a resize, or when rows have disappeared: the last row stays at the bottom.
  view.first_row = std::min(view.first_row, rows > room ? rows - room : 0);
}

std::size_t rows_shown(const View&, const Sample* sample, int width, int height) {
  return layout_of(sample, width, height).rows;
}

Grid picture(const View& view, const Sample* sample, int width, int height) {
  Grid grid(width, height);
  if (view.shows_help) {
    grid.put(0, 0, "weir watch: keys", Style::bold);
    for (std::size_t i = 0; i < kHelp.size(); ++i) grid.put(0, static_cast<int>(i) + 1, kHelp[i]);
    int y = static_cast<int>(kHelp.size()) + 2;
    if (sample != nullptr)
      for (const std::string& remark : remarks_of(*sample))
        for (const std::string& line : broken(remark, width)) grid.put(0, y++, line);
    return grid;
  }
  const Layout layout = layout_of(sample, width, height);
  if (layout.heading > 0) {
    grid.put(0, 0, title_text(view, sample), Style::bold);
    // Right-aligned, over the end of a long title: the user must see that the view is paused.
    constexpr std::string_view kPaused = " PAUSED";
    if (view.is_paused) grid.put(std::max(0, width - static_cast<int>(kPaused.size())), 0, kPaused, Style::reverse);
  }
  View clamped = view;
  press(clamped, Key::none, sample == nullptr ? 0 : sample->rows.size(), layout.rows);
  if (layout.footer > 0) grid.put(0, height - 1, footer_text(clamped, sample, layout.rows, width), Style::dim);
  if (sample == nullptr) {
    grid.put(0, layout.heading, "Waiting for the first sample.", Style::dim);
    return grid;
  }
  const std::vector<std::string> facts = fact_lines(*sample);
  for (int i = 0; i < layout.facts; ++i) grid.put(0, 1 + i, facts[static_cast<std::size_t>(i)]);
  int y = 1 + layout.facts;
  for (const std::string& remark : remarks_of(*sample))
    for (const std::string& line : broken(remark, width))
      if (y < layout.heading) grid.put(0, y++, line, Style::dim);
  draw_table(grid, clamped, *sample, layout.heading, layout.rows);
  return grid;
}

std::string table_text(const View& view, const Sample& sample, int width) {
  std::string text;
  const auto add = [&](const std::string& paragraph) {
    for (const std::string& line : broken(paragraph, width)) text += line + "\n";
  };
  add(sample.source == "kfd" ? std::string("Queues that KFD shows")
                             : fmt::format("Queues of {} ({}) under {}", sample.device, sample.model, sample.workload));
  if (sample.window_ns)
    add(fmt::format("Rates over {}{}.", format_duration(static_cast<double>(*sample.window_ns)),
                    sample.is_virtual ? " of simulated time" : ""));
  const std::vector<std::string> facts = fact_lines(sample);
  for (const std::string& line : facts) add(line);
  if (facts.empty()) add("");
  text += "\n";
  // One line more than rows and heading, for the message that there are no rows.
  Grid grid(width, static_cast<int>(std::min<std::size_t>(sample.rows.size(), 9'000)) + 2);
  View whole = view;
  whole.first_row = 0;
  draw_table(grid, whole, sample, 0, static_cast<std::size_t>(grid.height() - 1));
  text += grid.text();
  if (sample.rows.size() > 9'000) add(fmt::format("{} more", sample.rows.size() - 9'000));
  const std::vector<std::string> remarks = remarks_of(sample);
  if (!remarks.empty()) text += "\n";
  for (const std::string& remark : remarks) add(remark);
  return text;
}

std::string interval_text(std::int64_t ns) {
  if (ns % 60'000'000'000 == 0) return fmt::format("{} min", ns / 60'000'000'000);
  if (ns % 1'000'000'000 == 0) return fmt::format("{} s", ns / 1'000'000'000);
  return fmt::format("{} ms", ns / 1'000'000);
}

}  // namespace weir::watch
