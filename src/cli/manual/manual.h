// What the manual says of each command beyond its flags: notes, and lines to type. One table for `--help`, the man page
// and docs/cli.md. Knows the commands' names; not what they do.
#pragma once

#include <span>
#include <string_view>

namespace weir::cli {

struct ManualEntry {
  std::string_view command;  // "queues map"
  // Paragraphs with a blank line between, and lists ("- ..."); `code` and [text](page.md) are the only marks.
  std::string_view notes;
  // Lines of a shell, at most 78 columns, each of which works; "# ..." says what the next ones are for.
  std::string_view examples;
  // Comments for tests/docs, which runs the lines (tests/docs/page.h): what a line needs, or how it ends.
  std::string_view marks = {};
};

// In the order of src/cli/list.cpp; a test fails on a command without an entry.
std::span<const ManualEntry> manual();
// Null where there is none.
const ManualEntry* manual_entry(std::string_view command);

}  // namespace weir::cli
