// A supervised child process without a shell: its output, its limits, and how it ended. By default it has a process
// group of its own, which does not outlive it. Knows no protocol.
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

// The beginning and the end of a long text, and the number of bytes missing in between; for people, so control
// characters become '?'.
class KeptOutput {
 public:
  explicit KeptOutput(std::size_t first_bytes = 0) : max_first_(first_bytes) {}
  void add(std::string_view text);
  std::string text() const;
  bool is_empty() const { return first_.empty() && last_.empty(); }

  static constexpr std::size_t kLastBytes = 16 * 1024;

 private:
  std::size_t max_first_;
  std::string first_, last_;
  std::uint64_t dropped_ = 0;
};

struct ProcessOptions {
  std::vector<std::string> command;  // the program first; searched in PATH if it has no slash
  std::filesystem::path folder;      // working folder; empty: the current one
  Variables variables;               // added to this process's environment
  std::vector<std::string> absent;   // variables of this process's environment that it does not get
  // Stdout is kept like stderr, read by the caller (unread(), ask()), inherited, or dropped.
  enum class Output : std::uint8_t { kept, read, ours, dropped } out = Output::kept;
  bool has_input = false;       // stdin is for ask(); otherwise it is empty
  int err_file = -1;            // receives stderr instead of keeping it; if stdout is inherited, so is stderr
  std::size_t first_bytes = 0;  // of the output to keep, in addition to the last 16 KiB
  int death_signal = SIGKILL;   // sent to it when the thread that started it ends
  // For the user's own program: it stays in this process group and inherits stdin, open files, ignored signals and this
  // mask, and is not killed with this object.
  const sigset_t* shares_terminal = nullptr;
  // Nothing: unchanged. GPU runtimes reserve more address space than there is memory, so only compilers get a limit.
  std::optional<std::uint64_t> core_bytes, cpu_s, memory_bytes, file_bytes;
  std::function<bool()> is_stopped;  // called about ten times a second while waiting
  double grace_s = 0;  // after a timeout or a stop, from SIGTERM to its group to a second one; then SIGKILL
};

struct ProcessEnd {
  enum class How : std::uint8_t { exited, signalled, timed_out, stopped } how = How::exited;
  int value = 0;  // exit status or signal
  bool is_success() const { return how == How::exited && value == 0; }
  // Like a shell: exit status, or 128 + signal.
  int code() const { return how == How::exited ? value : 128 + value; }
  // "ended with status 3", "was killed by signal 11 (Segmentation fault)", "took longer than 120 s and was stopped"
  std::string words(double limit_s = 0) const;
};

// Used only by the thread that created it: the child dies with that thread.
class Process {
 public:
  // Throws StartError.
  explicit Process(ProcessOptions options);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t id() const { return pid_; }
  // To the process alone. Does nothing after the process was reaped.
  void signal(int number) const;

  // Waits up to `max_ms` for output or the end of the process, and reads available output. False: it has ended, and
  // all its output has been read. Reading pauses while more than `max_unread` bytes of stdout are unread.
  bool listen(int max_ms, std::size_t max_unread = SIZE_MAX, bool is_writing = false);
  // Its stdout, if that is read; the caller removes what it consumed.
  std::string& unread() { return unread_; }
  bool has_output() const { return static_cast<bool>(answers_); }  // false once it has closed stdout

  enum class Answer : std::uint8_t {
    line,        // without its line end
    unexpected,  // output arrived before the question: `line` has it
    ended,       // its output ended before a whole line; `line` has the rest
    too_long,    // `line` has the beginning
    timed_out,   // also if it does not read its input
    stopped,
  };
  // Sends `text` and waits for one line of at most `longest` bytes.
  Answer ask(std::string_view text, double limit_s, std::size_t longest, std::string& line);

  // Closes its input and waits for its end; kills the rest of its group.
  ProcessEnd finish(double limit_s);
  // Kills it and its group if it has not ended, and returns how it ended.
  ProcessEnd end();
  // The kept output.
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

// The program does not exist (`is_missing`), or cannot be started.
class StartError : public Error {
 public:
  StartError(const std::string& what, int code, bool is_missing, std::string hint = {})
      : Error(Fault::run, what, std::move(hint)), code(code), is_missing(is_missing) {}
  int code;  // errno
  bool is_missing;
};

// What the kernel says of a process.
struct ProcessFacts {
  char state = '?';
  pid_t parent = 0;
  unsigned long long cpu_ticks = 0;  // that it has used; they stand still while it is stopped
  unsigned long long started = 0;    // clock ticks since boot: differs for a later process with the same id

  bool is_ended() const { return state == 'Z' || state == 'X'; }  // nobody has asked for its exit code yet
};
// Empty where there is none. `proc`: for tests.
std::optional<ProcessFacts> facts_of(pid_t process, const std::string& proc = "/proc");

// The output of a program; nothing if it is not installed, fails, or takes longer than 10 s.
std::optional<std::string> printed_by(std::vector<std::string> command);

}  // namespace weir
