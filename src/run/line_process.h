// Both sides of a child process of Weir that reports its results as lines of JSON, one per event. It may hang or crash,
// which is reported in words. Knows no experiment.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/private_folder.h"
#include "base/process.h"

namespace weir {

// The text under this key; empty where there is none.
std::string text_of(const Json& line, const char* key);

// The child's side. Takes over standard output: output of libraries goes to standard error from then on.
class ToParent {
 public:
  ToParent();
  void send(const Json& line) const;  // throws where nobody reads any more

 private:
  Descriptor pipe_;
};

class LineProcess {
 public:
  enum class How : std::uint8_t { done, crashed, timed_out, interrupted };
  struct End {
    How how = How::done;
    std::string signal;  // SIGSEGV; empty where there was none
    std::string words;   // "crashed: signal 11 (Segmentation fault)"; empty where it is done
  };

  // Starts `command` with the name of a file that holds `request` appended. It may be silent for `limit_ns`.
  // `variables` are set in addition to this process's environment.
  LineProcess(std::vector<std::string> command, const Json& request, std::int64_t limit_ns, Variables variables = {});

  // Passes its lines to `on_line` until it has ended, was silent for too long or wrote too much to stderr (it is
  // then killed, with its descendants), or `stop` is set. Lines that are not JSON objects are skipped. Call once, from
  // a thread that outlives the child.
  End follow(const std::atomic<bool>& stop, const std::function<void(const Json&)>& on_line);
  // Sets the limit between the current line and the next.
  void limit(std::int64_t limit_ns) { limit_ns_ = limit_ns; }
  // It is killed at this time (now_ns()), whatever it prints. May be called again, also while a line is being handled.
  void end_by(std::int64_t at_ns) { end_ns_ = at_ns; }
  // Sends SIGTERM; it may still report what it has. Call while a line is being handled.
  void ask_to_end() const { process_->signal(SIGTERM); }

  // Describes how a process exited: "its process ended with status 3: the file is gone".
  std::string words_of_exit(int status) const;
  // The end of its output on stderr.
  std::string output(std::size_t most = 2000) const;

 private:
  const PrivateFolder folder_;
  const std::filesystem::path error_file_;  // a file, so that the parent does not take a core from the measurement
  std::int64_t limit_ns_;
  std::int64_t end_ns_ = INT64_MAX;
  std::optional<Process> process_;
};

}  // namespace weir
