// A child process without a shell, supervised: where its output goes, its limits, and how it ended. By default it has a
// group of its own that does not outlive it. Knows no protocol.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/error.h"

namespace weir {

using Variables = std::vector<std::pair<std::string, std::string>>;

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
  Variables variables;               // set on top of our own environment
  // What becomes of stdout: kept as stderr is, read by us (unread(), ask()), left as ours, or dropped.
  enum class Output : std::uint8_t { kept, read, ours, dropped } out = Output::kept;
  bool has_input = false;       // stdin is for ask(); else it is empty
  int err_file = -1;            // where stderr goes instead of being kept; where stdout is ours, so is stderr
  std::size_t first_bytes = 0;  // of the output to keep besides the last 16 KiB
  int death_signal = SIGKILL;   // what it gets when the thread that started it ends
  // The user's own program: stays in our group with our stdin, open files, ignored signals and this mask, and is not
  // killed with this object.
  const sigset_t* shares_terminal = nullptr;
  // Nothing: as it is here. GPU runtimes reserve more addresses than there is memory, so only compilers get a limit.
  std::optional<std::uint64_t> core_bytes, cpu_s, memory_bytes, file_bytes;
  std::function<bool()> is_stopped;  // asked about ten times a second while we wait
  double grace_s = 0;  // between asking its group to end (SIGTERM) and killing it, where its time is up or we stop
};

struct ProcessEnd {
  enum class How : std::uint8_t { exited, signalled, timed_out, stopped } how = How::exited;
  int value = 0;  // exit status or signal
  bool is_success() const { return how == How::exited && value == 0; }
  // As shells have it: exit status, or 128 + signal.
  int code() const { return how == How::exited ? value : 128 + value; }
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

  pid_t id() const { return pid_; }
  // To the process alone. Nothing where it has been buried.
  void signal(int number) const;

  // Waits up to `most_ms` for output or its end, and takes what there is. False: it has ended, and all that it said is
  // here. Reading stops while more than `most_unread` bytes of stdout are not taken.
  bool listen(int most_ms, std::size_t most_unread = SIZE_MAX, bool is_writing = false);
  // What it wrote to stdout, where that is read; the caller takes from it.
  std::string& unread() { return unread_; }
  bool has_output() const { return static_cast<bool>(answers_); }  // false once it has closed stdout

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
  // Kills it with its group, where it has not ended by itself, and says how it ended.
  ProcessEnd end();
  // What it said that was to be kept.
  const KeptOutput& output() const { return output_; }

 private:
  void start();
  bool read_some(Descriptor& from, std::string* into);
  bool is_dead() const;

  ProcessOptions options_;
  pid_t pid_ = -1;
  Descriptor input_, answers_, words_, death_;
  std::string unread_;
  KeptOutput output_;
};

// The program is not there (`is_missing`), or may not be started.
class StartError : public Error {
 public:
  StartError(const std::string& what, int code, bool is_missing, std::string hint = {})
      : Error(Fault::run, what, std::move(hint)), code(code), is_missing(is_missing) {}
  int code;  // errno
  bool is_missing;
};

// What a program prints; nothing where it is not here, fails, or takes longer than 10 s.
std::optional<std::string> printed_by(std::vector<std::string> command);

}  // namespace weir
