// Says why recorded programs (trace/recording.h) do not go on: which streams have unfinished commands, which command is
// running, who waits for whom, and who is to blame. Knows recordings and facts about processes; asks nobody and prints
// nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trace/recording.h"

namespace weir {

// A process that a recorded process has started, such as a worker of a data loader.
struct RecordedChild {
  std::uint64_t pid = 0;
  char state = '?';     // as in /proc/PID/stat: S, D, T, Z ...
  std::string command;  // its name
};

struct HangedProcess {
  std::string name;  // for the reader: "rank 3 (process 4711)"
  Recording recording;
  std::string stacks;  // what the library in it wrote about its threads (submit/inject/program_stacks.h); may be empty
  bool is_alive = true;
  char state = '?';  // of a live process, as of RecordedChild
  std::vector<RecordedChild> children;
  int rank = -1;  // in its job; -1: unknown
};

enum class HangCause : std::uint8_t {
  none,     // nothing is stuck: everything goes on
  command,  // a command runs and does not end
  value,    // a stream waits for a value in memory that nobody writes, or for an event that this process never records
  cycle,    // streams wait for each other
  collective,  // a rank has not joined
  host,        // everything has ended, and the host does not launch
  child,       // the host waits for another process, which does not go on
  driver,      // a call of the driver does not return, and no stream explains it
  ended,       // the program is not alive
};

struct RecordedHang {
  HangCause cause = HangCause::none;
  std::string culprit;  // one sentence
  std::string text;     // for users, 80 columns: the sentence, then each process with its streams, threads and stacks
};

// `now_ns`: on the recordings' clock. `timeout_ns`: what lasted longer than that counts as stuck.
RecordedHang diagnose_recordings(std::span<const HangedProcess> processes, std::int64_t now_ns,
                                 std::int64_t timeout_ns);

}  // namespace weir
