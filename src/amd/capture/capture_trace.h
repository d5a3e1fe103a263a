// Carries out the plan of a kernel trace, falls back if the kernel refuses, and undoes every change it made. Accesses
// tracefs through an interface, so that tests can simulate refusals.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "amd/capture/capture_plan.h"

namespace weir::amd {

// Files of tracefs. Each call returns 0 or an errno.
class TraceFiles {
 public:
  virtual ~TraceFiles() = default;
  virtual int write(const std::string& path, std::string_view text, bool is_appended) = 0;
  virtual int read(const std::string& path, std::string& text) = 0;
  virtual int make_folder(const std::string& path) = 0;
  virtual int remove_folder(const std::string& path) = 0;
};

class TraceSession {
 public:
  // Both must outlive it.
  TraceSession(const TracePlan& plan, TraceFiles& files) : plan_(plan), files_(files) {}
  ~TraceSession() { close(); }
  TraceSession(const TraceSession&) = delete;
  TraceSession& operator=(const TraceSession&) = delete;

  // Sets everything up and starts. If nothing can be traced, undoes its changes and sets `problem`.
  bool arm();
  // Leaves the buffer for reading. Counts events that did not fit.
  void stop();
  // Undoes every change, last one first. `left_behind` lists changes that could not be undone.
  void close();

  std::string trace_file() const { return plan_.folder + "/trace"; }
  const std::string& clock() const { return clock_; }    // as tracefs reported after it was set
  const std::string& method() const { return method_; }  // "function", "23 probes", "events"
  const std::string& problem() const { return problem_; }
  const std::string& hint() const { return hint_; }
  const std::vector<std::string>& notes() const { return notes_; }  // what is less than requested, and why
  const std::vector<std::string>& left_behind() const { return left_behind_; }
  std::uint64_t lost_events() const { return lost_events_; }

 private:
  struct Change {
    TraceStep::Undo undo;
    TraceStep::Action action;
    std::string path, before;
  };
  int perform(const TraceStep& step, std::string& taken);
  int save(const TraceStep& step);
  void check(const TraceStep& step, const std::string& taken);
  bool give_up(std::string problem, std::string hint);
  void restore(const Change& change);
  int restore_list(const Change& change);

  const TracePlan& plan_;
  TraceFiles& files_;
  std::vector<Change> changes_;
  bool is_armed_ = false, is_tracer_refused_ = false;
  int probes_ = 0, refused_probes_ = 0;
  std::string tracer_, refusal_, probe_refusal_;
  bool has_events_ = false;
  std::string clock_, method_, problem_, hint_;
  std::vector<std::string> notes_, left_behind_;
  std::uint64_t lost_events_ = 0;
};

// "local [mono] boot" -> "mono"; a single word is returned as it is.
std::string chosen_word(std::string_view text);

}  // namespace weir::amd
