// A process of ours that tells what it finds as lines of JSON, one per event: both sides of that. It may hang or crash,
// which is told in words. Knows no experiment.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/children.h"
#include "cli/descriptor.h"
#include "cli/private_folder.h"

namespace weir::cli {

// The child's side. Takes over standard output: what libraries print goes where errors go from then on.
class ToParent {
 public:
  ToParent();
  void tell(const Json& line) const;  // fails where nobody listens any more

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
  // Starts `command` with the name of a file that holds `request` behind it. It may be silent for `limit_ns`.
  // `variables` are set on top of our own environment.
  TalkingProcess(std::vector<std::string> command, const Json& request, std::int64_t limit_ns,
                 Variables variables = {});
  ~TalkingProcess();
  TalkingProcess(const TalkingProcess&) = delete;
  TalkingProcess& operator=(const TalkingProcess&) = delete;

  // Hears it until it has ended, was silent for too long (it is killed then, with all that it started), or we are
  // interrupted. Lines that are no JSON objects are left out. Call once, from the thread that goes on living.
  TalkEnd follow(const std::function<void(const Json&)>& heard);
  // From the line that is being heard to the next.
  void limit(std::int64_t limit_ns) { limit_ns_ = limit_ns; }
  // By SIGTERM: it may still say what it has. While a line is being heard.
  void ask_to_end() const;

  // Of our errors the message, else the last line that it said.
  std::string last_words() const;
  // The end of what it said on stderr.
  std::string output(std::size_t most = 2000) const;

 private:
  bool read_lines(const std::function<void(const Json&)>& heard, bool& is_open);
  TalkEnd judge(int status) const;
  TalkEnd ended(TalkEnd::How how, std::string words);
  void end();

  const PrivateFolder folder_;
  const std::filesystem::path said_;
  std::int64_t limit_ns_;
  Descriptor from_;
  pid_t process_ = -1;
  std::string text_;
};

}  // namespace weir::cli
