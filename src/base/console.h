// The one place for standard output and standard error. A stream that cannot be written never throws: what goes to
// standard error is dropped then, and a failure of standard output is kept until main() reports it.
#pragma once

#include <fmt/format.h>

#include <string_view>

namespace weir {

// The first call of main(). Descriptors 0 to 2 that the caller closed are opened, so that no file gets their numbers,
// but in the wrong direction: using them fails as it did. SIGPIPE and SIGXFSZ are ignored: a reader who has gone, or a
// limit on the size of files, is an error of one write and must not lose what was measured.
void open_console() noexcept;
// Undoes the latter before a program of the user takes this process over. Async-signal-safe.
void restore_signals() noexcept;

// Everything that is printed passes the last gate for text (base/text_gate.h), whatever it was made of: terminals get
// nothing that they would obey. Where the runner of a CI system reads it, which executes some lines, no line is a
// command: main() says once whether it does.
void expect_runner(bool is_there) noexcept;

// Standard output: kept until there is enough of it, flush_out(), or something for standard error; shown at once on a
// terminal.
void write_out(std::string_view text) noexcept;
// A JSON document, which keeps its meaning.
void write_json(std::string_view text) noexcept;
// As it is, for the terminal or the runner itself: progress and annotations.
void write_raw_out(std::string_view text) noexcept;
void write_raw_err(std::string_view text) noexcept;
// False once a write has failed: nobody gets what follows.
bool flush_out() noexcept;
// The errno of the first write that failed, or 0.
int out_error() noexcept;

// Standard error, in one write, after everything that was printed before it.
void write_err(std::string_view text) noexcept;

// main() ends with this: `code`, or 1 with a message if `code` is 0 and standard output could not be written. If its
// reader has gone (`weir list | head`) there is no message, and the code is what a shell shows for SIGPIPE.
int finish_console(int code) noexcept;

// The same with formatting. Out of memory, print_err() prints the format itself.
void vprint_err(std::string_view format, fmt::format_args values) noexcept;

template <class... Values>
void print_out(fmt::format_string<Values...> format, Values&&... values) {
  fmt::memory_buffer text;
  fmt::vformat_to(fmt::appender(text), format, fmt::make_format_args(values...));
  write_out({text.data(), text.size()});
}

template <class... Values>
void print_err(fmt::format_string<Values...> format, Values&&... values) noexcept {
  const fmt::string_view words = format;
  vprint_err({words.data(), words.size()}, fmt::make_format_args(values...));
}

}  // namespace weir
