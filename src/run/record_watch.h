// Looks at the recordings of a program while it runs, twice a second: dumps where something that the user asked for has
// happened, diagnoses hangs, writes figures. Never makes the program fail: what goes wrong is said once.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "run/record_folders.h"
#include "run/record_live.h"
#include "run/record_metrics.h"
#include "run/record_steps.h"

namespace weir {

// 0: not asked for.
struct RecordTriggers {
  std::int64_t hang_ns = 0;   // nothing has moved in any process
  std::int64_t stall_ns = 0;  // no command of a process has ended although some are outstanding
  double slow_step = 0;       // a step took that many times the median
  int dumps = 5;              // most dumps; those of several processes within some seconds count as one
  int signal = 0;             // sent to this process
  bool kills_on_hang = false;
};

class RecordWatch {
 public:
  // Prints lines for the user: without a line end, and the first without a prefix.
  using Say = std::function<void(const std::string&)>;

  RecordWatch(RecordFolder folder, RecordTriggers triggers, std::filesystem::path metrics, std::int64_t interval_ns,
              Say say);

  // Call at the times (on now_ns) that it returns. `program`: the process that was started.
  std::int64_t look(pid_t program) noexcept;
  // Writes a trace of each process that is recorded.
  void dump_all(const std::string& reason) noexcept;
  // Figures of the last moment.
  void end() noexcept;
  // Whether the program was ended because it hung.
  bool has_killed() const noexcept { return killed_ns_ != 0; }
  // After the program's end: waits until its children have ended too, by force once they had their time.
  void finish_kill() noexcept;
  // Whether any process tried to record.
  bool has_found() const noexcept { return !all_.empty(); }
  // Processes of which anything may have been recorded.
  std::size_t recorded() const noexcept;

 private:
  struct Watched {
    explicit Watched(const RecordFile& found) : file(found), recording(found.path) {}
    RecordFile file;
    LiveRecording recording;
    RecordedState state;
    bool is_read = false, is_over = false;
    std::uint64_t ended = 0;          // sum over streams
    std::int64_t moved_ns = 0;        // when anything was last seen to have changed
    std::int64_t waits_since_ns = 0;  // commands are outstanding, and none has ended since; 0: not so
    bool has_stalled = false;         // and was dumped for it
    std::int64_t dumped_ns = 0;
    int dumps = 0;  // what `dumps_` was after its newest dump
    std::optional<StepFinder> steps;
    RecordMetrics metrics;
    std::string program;
    int rank = -1;
  };
  struct Condemned {
    pid_t pid = 0;
    unsigned long long started = 0;
  };

  // Runs `work`; says what it throws.
  template <class Work>
  void try_to(Work&& work) noexcept;
  void say_once(const std::string& text);
  void find();
  void look_at(Watched& watched, std::int64_t now_ns);
  void look_for_stall(Watched& watched, std::int64_t now_ns);
  void look_for_hang(pid_t program, std::int64_t now_ns);
  void dump(Watched& watched, const std::string& reason);
  void condemn(pid_t program, std::int64_t now_ns);
  void execute(std::int64_t now_ns);
  void write_metrics(std::int64_t now_ns);

  RecordFolder folder_;
  RecordTriggers triggers_;
  std::filesystem::path metrics_;
  std::int64_t interval_ns_;
  Say say_;
  std::map<std::filesystem::path, Watched> all_;
  std::set<std::string> said_;
  int dumps_ = 0, hangs_ = 0;
  std::int64_t dumped_ns_ = 0;  // when the newest dump was written
  std::int64_t hang_judged_ns_ = 0, metrics_ns_ = 0, killed_ns_ = 0;
  bool is_hang_known_ = false;
  std::vector<Condemned> condemned_;
};

}  // namespace weir
