// A child process without a shell: limited, in a group of its own that does not outlive it, with what it said kept.
// For compilers, and for executables that talk in lines. Knows no protocol.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace weir::package {

// The beginning and the end of a long text, and how much is missing between; for people, so control characters become
// '?'.
class KeptOutput {
 public:
  explicit KeptOutput(std::size_t first_bytes = 0) : most_first_(first_bytes) {}
  void add(std::string_view text);
  std::string text() const;
  bool is_empty() const { return first_.empty() && last_.empty(); }

  static constexpr std::size_t kLastBytes = 16 * 1024;

 private:
  std::size_t most_first_;
  std::string first_, last_;
  std::uint64_t dropped_ = 0;
};

struct ProcessOptions {
  std::vector<std::string> command;  // the program first; looked for in PATH where it has no slash
  std::filesystem::path folder;      // where it starts; empty: here
  bool is_conversation = false;      // has stdin, and stdout is for ask(); else both outputs are kept as one
  std::size_t first_bytes = 0;       // of the output to keep besides the last 16 KiB
  // Nothing: as it is here. GPU runtimes reserve more addresses than there is memory, so only compilers get a limit.
  std::optional<std::uint64_t> cpu_s, memory_bytes, file_bytes;
  std::function<bool()> is_stopped;  // asked about ten times a second while we wait
};

struct ProcessEnd {
  enum class How : std::uint8_t { exited, signalled, timed_out, stopped } how = How::exited;
  int value = 0;  // exit status or signal
  bool is_success() const { return how == How::exited && value == 0; }
  // "ended with status 3", "was killed by signal 11 (Segmentation fault)", "took longer than 120 s and was stopped"
  std::string words(double limit_s = 0) const;
};

// Used by the thread that made it: the child dies with that thread.
class Process {
 public:
  // Throws StartError.
  explicit Process(ProcessOptions options);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  enum class Answer : std::uint8_t {
    line,       // without its end
    unasked,    // it had said something before it was asked: `line` has it
    ended,      // its output ended before a line did; `line` has what came
    too_long,   // `line` has the beginning
    timed_out,  // also where it does not read what it is sent
    stopped,
  };
  // Sends `text` and waits for one line of at most `longest` bytes.
  Answer ask(std::string_view text, double limit_s, std::size_t longest, std::string& line);

  // Closes its input and waits for its end; kills what is left of its group.
  ProcessEnd finish(double limit_s);
  // What it said: stderr in conversations, else everything.
  const KeptOutput& output() const { return output_; }

 private:
  void start();
  bool read_some(int& descriptor, std::string* into);
  void end_group();
  bool is_dead() const;

  ProcessOptions options_;
  pid_t pid_ = -1;
  int input_ = -1, answers_ = -1, words_ = -1, death_ = -1;
  std::string pending_;  // of answers, not yet taken
  KeptOutput output_;
};

// The program is not there (`is_missing`), or may not be started.
class StartError : public Error {
 public:
  StartError(const std::string& what, bool is_missing) : Error(Fault::run, what), is_missing(is_missing) {}
  bool is_missing;
};

}  // namespace weir::package
