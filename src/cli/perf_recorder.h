// Linux' perf as a child process: attached to a running process, switched on and off, and what it saw as folded stacks.
// Knows perf's flags and its pipes; never what is measured.
#pragma once

#include <sys/types.h>

#include <string>

#include "cli/descriptor.h"
#include "cli/private_folder.h"
#include "measure/folded_stacks.h"

namespace weir::cli {

class PerfRecorder {
 public:
  static constexpr int kHz = 997;  // not 1000: what happens every millisecond would always or never be seen

  // Starts perf on the process, all its threads, switched off. Where that is not possible, `reason` says why.
  explicit PerfRecorder(pid_t process);
  ~PerfRecorder();
  PerfRecorder(const PerfRecorder&) = delete;
  PerfRecorder& operator=(const PerfRecorder&) = delete;

  bool is_on() const { return perf_ > 0; }
  // Returns when perf has done it; nothing where it is not there any more.
  void enable() { command("enable\n"); }
  void disable() { command("disable\n"); }
  // Ends recording and reads what was seen. False, with `reason`, where that failed.
  bool finish(FoldedStacks& into);
  const std::string& reason() const { return reason_; }

 private:
  void command(const char* word);
  bool has_ended();  // perf, by itself: takes its reason
  void give_up(const std::string& why);
  bool read_script(FoldedStacks& into);

  PrivateFolder folder_;
  Descriptor to_, from_;  // perf's pipes for commands and their answers
  pid_t perf_ = -1;
  std::string reason_;
};

}  // namespace weir::cli
