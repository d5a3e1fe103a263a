// What the manual contains about each command besides its flags: notes, and examples. One table for `--help`, the man
// page and docs/cli.md. Knows the commands' names; not what they do.
#pragma once

#include <span>
#include <string_view>

namespace weir::cli {

struct ManualEntry {
  std::string_view command;  // "queues map"
  // Paragraphs separated by a blank line, and lists ("- ..."); `code` and [text](page.md) are the only markup.
  std::string_view notes;
  // Shell commands, at most 78 columns, each of which works; "# ..." explains the next ones.
  std::string_view examples;
};

// In the order of src/cli/list.h; a test fails on a command without an entry.
std::span<const ManualEntry> manual();
// Null where there is none.
const ManualEntry* manual_entry(std::string_view command);

}  // namespace weir::cli
