// What may stand where a flag or an argument wants a value: names from the program's own lists. Reads files at most;
// opens no driver.
#pragma once

#include <cstdint>
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

}  // namespace weir::cli
