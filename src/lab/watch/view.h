// The live view: what keys do to it, and what it looks like at any size. Knows samples and cells; no terminal.
#pragma once

#include <cstdint>
#include <string>

#include "lab/watch/columns.h"
#include "lab/watch/grid.h"
#include "lab/watch/sample.h"

namespace weir::watch {

enum class Key : std::uint8_t {
  none,
  sort_next,
  sort_previous,
  reverse,
  pause,
  slower,
  faster,
  help,
  quit,
  up,
  down,
  page_up,
  page_down,
  first,
  last,
  redraw,
  resize,
};

// What a typed character means; none where it means nothing.
Key key_of(int character);

struct View {
  Column sort = Column::queue;
  bool is_reversed = false;
  bool is_paused = false;  // the picture stands still; sampling goes on
  bool shows_help = false;
  bool has_quit = false;
  std::int64_t interval_ns = 1'000'000'000;
  std::size_t first_row = 0;  // that is shown
};

inline constexpr std::int64_t kLeastIntervalNs = 50'000'000, kMostIntervalNs = 3'600'000'000'000;

// Does what a key asks for. `rows`: how many there are; `room`: how many of them can be seen (rows_shown).
void press(View& view, Key key, std::size_t rows, std::size_t room);

// How many rows a picture of that size has room for.
std::size_t rows_shown(const View& view, const Sample* sample, int width, int height);

// `sample` null: none has come yet.
Grid picture(const View& view, const Sample* sample, int width, int height);

// The whole table and every note, for a file or a pipe.
std::string table_text(const View& view, const Sample& sample, int width = 80);

// "1 s", "500 ms", "2 min".
std::string interval_text(std::int64_t ns);

}  // namespace weir::watch
