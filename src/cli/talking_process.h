// A process of ours that reports what it finds as lines of JSON, one per event: both sides of that. It may hang or
// crash, which is reported in words. Knows no experiment.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/process.h"
#include "cli/private_folder.h"

namespace weir::cli {

// The child's side. Takes over standard output: what libraries print goes where errors go from then on.
class ToParent {
 public:
  ToParent();
  void send(const Json& line) const;  // fails where nobody listens any more

 private:
  Descriptor pipe_;
};

struct TalkEnd {
  enum class How : std::uint8_t { done, crashed, timed_out, interrupted } how = How::done;
  std::string signal;  // SIGSEGV; empty where there was none
  std::string words;   // "crashed: signal 11 (Segmentation fault)"; empty where it is done
};

class TalkingProcess {
 public:
  // Starts `command` with the name of a file that holds `request` after it. It may be silent for `limit_ns`.
  // `variables` are set on top of our own environment.
  TalkingProcess(std::vector<std::string> command, const Json& request, std::int64_t limit_ns,
                 Variables variables = {});

  // Hears it until it has ended, was silent for too long (it is killed then, with all that it started), or we are
  // interrupted. Lines that are no JSON objects are left out. Call once, from the thread that goes on living.
  TalkEnd follow(const std::function<void(const Json&)>& heard);
  // From the line that is being heard to the next.
  void limit(std::int64_t limit_ns) { limit_ns_ = limit_ns; }
  // By SIGTERM: it may still say what it has. While a line is being heard.
  void ask_to_end() const { process_->signal(SIGTERM); }

  // How a process ended that exited: "its process ended with status 3: the file is gone".
  std::string words_of_exit(int status) const;
  // The end of what it said on stderr.
  std::string output(std::size_t most = 2000) const;

 private:
  const PrivateFolder folder_;
  const std::filesystem::path said_;  // a file, because the parent must not take a core from what is measured
  std::int64_t limit_ns_;
  std::optional<Process> process_;
};

}  // namespace weir::cli
