// What a page of documentation promises: its command lines, in order. Knows Markdown; runs nothing.
//
// ```sh blocks hold command lines, ```console blocks hold them after "$ " with output between them, ```synopsis blocks
// hold usage lines. Other languages hold no commands. Nothing is hidden: a page with a comment is refused, and what a
// line needs or how it ends is what a reader sees:
//   weir run moe --device cuda         a device that it names: cuda, hip, opencl
//   sudo weir amd hqd --live           root
//   weir profile -- ./x  # needs an NVIDIA GPU        or an AMD GPU
//   weir run nosuch      # exit 2                     how it ends, where that is not 0
//   weir compare a b     # exit 3 if slower           0 or 3
// A line above output that begins with "weir: " is refused by the program: it ends with 1 or 2.
// Lines that begin with make or cmake build: targets and presets must exist, nothing is run.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace weir::testing {

enum class Trial { run, build, synopsis };

struct CommandLine {
  int line = 0;      // in the page, from 1
  std::string text;  // continued lines joined
  Trial trial = Trial::run;
  std::string need;  // cuda, hip, opencl, root, or empty
  std::set<int> exit_codes = {0};
  std::vector<std::string> output;  // shown below it
};

struct Page {
  std::vector<CommandLine> commands;
  std::vector<std::string> problems;  // "LINE: what is wrong": an untagged block, a command where none is tested, ...
};

Page read_page(const std::string& markdown);

}  // namespace weir::testing
