// The live view: its keys, and its layout at any size. Knows samples and cells; no terminal.
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

// The meaning of a typed character, or none.
Key key_of(int character);

struct View {
  Column sort = Column::queue;
  bool is_reversed = false;
  bool is_paused = false;  // the view is frozen; sampling continues
  bool shows_help = false;
  bool has_quit = false;
  std::int64_t interval_ns = 1'000'000'000;
  std::size_t first_row = 0;  // the first visible row
};

inline constexpr std::int64_t kMinIntervalNs = 50'000'000, kMaxIntervalNs = 3'600'000'000'000;

// Handles a key. `rows` is the number of rows, `room` how many of them are visible (rows_shown).
void press(View& view, Key key, std::size_t rows, std::size_t room);

// How many rows fit into a view of this size.
std::size_t rows_shown(const View& view, const Sample* sample, int width, int height);

// `sample` is null before the first one.
Grid picture(const View& view, const Sample* sample, int width, int height);

// The whole table with all notes, for a file or a pipe.
std::string table_text(const View& view, const Sample& sample, int width = 80);

// "1 s", "500 ms", "2 min".
std::string interval_text(std::int64_t ns);

}  // namespace weir::watch
