// What may follow a half-typed command line: candidates from the program's own lists (completion_values.cpp reads files
// at most, and opens no driver).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/manual/reference.h"

namespace weir::cli {

struct Candidate {
  std::string text, help;
};

// What the shell itself completes.
enum class PathKind : std::uint8_t { none, files, yaml_files, folders, programs };

struct Values {
  std::vector<Candidate> candidates;
  PathKind paths = PathKind::none;
  bool is_list = false;   // several with commas
  bool has_more = false;  // a candidate is not the whole value: no blank behind it
};

// The words typed so far, as far as values depend on them.
struct Typed {
  std::string command;   // "queues map"
  std::string workload;  // named before; empty where it is not
  std::string file;      // --file
  std::string value;     // what there is of the value
};

Values values_of(const FlagFacts& flag, const Typed& typed);

// GPUs by the files that drivers show below `root`: "cuda:0", "hip:0", "opencl:0".
std::vector<std::string> gpus_seen(const std::string& root = "/");

// `words` as typed behind the program's name; the last one, which may be empty, is to be completed. Candidates stand
// for the whole last word and begin as it does.
Values complete(const CommandFacts& root, std::span<const std::string> words);

// What completion scripts read: "candidate<TAB>description" a line, then ":files", ":yaml", ":folders" or ":programs"
// where the shell is to add its own, and ":nospace".
std::string completion_lines(const Values& values);

}  // namespace weir::cli
