// What a run of a program put out, in a form that can be compared: its exit status, its standard output line by line,
// files, and the checkpoints that it gave. Knows no plan and no race.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/process.h"

namespace weir::race {

struct NumberPattern {
  std::string text;
  std::regex pattern;  // one group
};

// What is looked at.
struct OutputRules {
  bool has_status = true, has_stdout = true;
  std::vector<std::string> files;
  std::vector<std::regex> ignored;     // lines of standard output that one of these is found in
  std::vector<NumberPattern> numbers;  // lines with such a number are judged by it alone
  double tolerance = 0;                // of numbers: the share by which they may differ
};

// Rejects what is not a regular expression, naming `flag`; `groups`: how many it must have, -1: any number.
std::regex pattern_of(const std::string& flag, const std::string& text, int groups);

// "took 3.25 s at 120 it/s, 10:31:02" -> "took # s at # it/s, #": times and rates are never the same twice.
std::string without_times(std::string_view line);

// One line of standard output; the text of the first ones is kept for messages.
struct OutputLine {
  std::uint64_t digest = 0;
  bool says_something = false;  // besides times
  std::string text;
};

struct Outputs {
  std::map<std::string, std::string> values;  // "exit status", "checkpoint loss", "file out.bin": what it was
  std::vector<OutputLine> lines;              // of standard output
  std::map<std::string, double> numbers;      // by pattern: the last one found
};

inline constexpr std::size_t kMostLines = 200'000, kKeptLines = 2'000, kLongestKeptLine = 400;

// Standard output as it arrives, in pieces.
class OutputReader {
 public:
  explicit OutputReader(const OutputRules& rules) : rules_(&rules) {}
  void add(std::string_view piece);
  void finish(Outputs& outputs);

 private:
  void take(std::string line);
  const OutputRules* rules_;
  std::string line_;
  Outputs found_;
};

// Files as they are before a run, and what the run wrote into them.
class OutputFiles {
 public:
  explicit OutputFiles(const std::vector<std::string>& files);
  void finish(Outputs& outputs) const;

 private:
  struct State {
    std::int64_t changed_ns = -1;
    std::uint64_t inode = 0, bytes = 0;
    bool operator==(const State&) const = default;
  };
  static State state_of(const std::string& file);
  std::vector<std::pair<std::string, State>> before_;
};

// The digests of checkpoints, NAME COUNT HEX in lines; what is no such line is left out.
void add_checkpoints(std::string_view digests, Outputs& outputs);
std::string words_for(const ProcessEnd& end);

// What is equal in all plain runs, and is therefore judged.
class Reference {
 public:
  Reference(OutputRules rules, std::vector<Outputs> plain);
  // How these outputs differ from the plain ones, in a sentence; nothing: they do not.
  std::optional<std::string> change(const Outputs& outputs) const;
  // Outputs that differ among the plain runs and are not judged.
  const std::vector<std::string>& varying() const { return varying_; }
  const std::vector<std::string>& judged() const { return judged_; }

 private:
  std::optional<std::string> changed_lines(const Outputs& outputs) const;
  bool is_alike(double one, double other) const;
  OutputRules rules_;
  Outputs right_;
  bool judges_lines_ = false;
  std::vector<bool> is_varying_line_;
  std::vector<std::string> varying_, judged_;
};

}  // namespace weir::race
