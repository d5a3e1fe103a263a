// Carries out the plan of a kernel trace, falls back where the kernel refuses, and undoes every change it made. Sees
// tracefs through an interface, so that refusals can be rehearsed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "amd/capture/capture_plan.h"

namespace weir::amd {

// Files of tracefs. Each call returns 0, or an errno.
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

  // Sets all up and starts. Where nothing can be traced it undoes what it did, and `problem` says why.
  bool arm();
  // The buffer stays as it is, to be read. Counts what it had no room for.
  void stop();
  // Undoes every change, the last one first. What could not be undone is in `left_behind`.
  void close();

  std::string trace_file() const { return plan_.folder + "/trace"; }
  const std::string& clock() const { return clock_; }    // as tracefs said after it was set
  const std::string& method() const { return method_; }  // "function", "23 probes", "events"
  const std::string& problem() const { return problem_; }
  const std::string& hint() const { return hint_; }
  const std::vector<std::string>& notes() const { return notes_; }  // less than asked for, and why
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

// "local [mono] boot" -> "mono"; a lone word is itself.
std::string chosen_word(std::string_view text);

}  // namespace weir::amd
