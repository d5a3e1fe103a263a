// What a page of documentation promises: its command lines, in order, and how each may be tried. Knows Markdown and the
// hidden comments described below; runs nothing.
//
// ```sh blocks hold command lines, ```console blocks hold them behind "$ " with output between them, ```synopsis blocks
// hold usage lines. Other languages hold no commands. Comments above a block, which readers do not see:
//   <!-- setup: COMMANDS -->          run before the block: files that the reader has and this folder does not
//   <!-- file: NAME -->               above a block of another language: it becomes that file
//   <!-- test: needs cuda -->         or hip, opencl, root: without it, the refusal that names it is the only other end
//   <!-- test: exit 3 -->             how lines end (0 by default); "exit 0 or 3" where noise decides
//   <!-- test: build -->              building and installing: targets and presets must exist, nothing is run; lines
//   that
//                                     begin with make or cmake are so anyway
//   <!-- test: syntax, because WHY --> changes the machine: the shell parses it, no more
// With  in "TEXT"  at its end a mark is for the lines of the block that have TEXT in them.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace weir::testing {

enum class Trial { run, build, syntax, synopsis };

struct CommandLine {
  int line = 0;      // in the page, from 1
  std::string text;  // continued lines joined
  bool is_setup = false;
  Trial trial = Trial::run;
  std::string need;     // cuda, hip, opencl, root, or empty
  std::string because;  // of Trial::syntax
  std::set<int> exit_codes = {0};
  std::vector<std::string> output;  // shown below it
};

struct Page {
  std::vector<CommandLine> commands;
  std::vector<std::string> problems;  // "LINE: what is wrong": an untagged block, a command where none is tested, ...
};

Page read_page(const std::string& markdown);

}  // namespace weir::testing
