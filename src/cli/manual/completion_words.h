// What may follow a half-typed command line: candidates from the program's own lists (completion_values.cpp at most
// reads files, and opens no driver).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/manual/reference.h"

namespace weir::cli {

struct Candidate {
  std::string text, help;
};

// Paths that the shell itself completes.
enum class PathKind : std::uint8_t { none, files, yaml_files, folders, programs };

struct Values {
  std::vector<Candidate> candidates;
  PathKind paths = PathKind::none;
  bool is_list = false;   // several, separated by commas
  bool has_more = false;  // a candidate is not the whole value: no blank follows it
};

// The words typed so far, where values depend on them.
struct Typed {
  std::string command;   // "queues map"
  std::string workload;  // empty where none was given
  std::string file;      // --file
  std::string value;     // the typed part of the value
};

Values values_of(const FlagFacts& flag, const Typed& typed);

// GPUs that are visible as driver files below `root`: "cuda:0", "hip:0", "opencl:0".
std::vector<std::string> gpus_seen(const std::string& root = "/");

// `words` are those typed after the program's name; the last one, which may be empty, is to be completed. Candidates
// replace the whole last word and begin with it.
Values complete(const CommandFacts& root, std::span<const std::string> words);

// The format that completion scripts read: "candidate<TAB>description" per line, then ":files", ":yaml", ":folders" or
// ":programs" where the shell should add its own, and ":nospace".
std::string completion_lines(const Values& values);

}  // namespace weir::cli
