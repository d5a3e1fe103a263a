// What a capture reads while a program runs: KFD's state at one moment, the kernel's log, and the list of processes.
// Knows where things are on this machine; never what they mean.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "amd/capture/capture_folder.h"
#include "amd/capture/capture_plan.h"
#include "base/descriptor.h"

namespace weir::amd {

// Examines this machine; changes nothing. Where tracefs is mounted in its old place, `request` is updated.
CaptureFacts survey(CaptureRequest& request);

// Copies files of debugfs and sysfs into snapshots/WHEN. Records in `parts` what was copied and what could not be.
CaptureSnapshot take_snapshot(const CaptureRequest& request, const CapturePlan& plan, const std::string& when,
                              CaptureFolder& folder, std::vector<CapturePart>& parts);

// The part with that name, added if missing.
CapturePart& part_named(const std::string& name, std::vector<CapturePart>& parts);

// Lines of the kernel's log since this object was created.
class KernelLog {
 public:
  explicit KernelLog(const std::string& path);
  // What the driver logged since then: "[177770.879589] amdgpu 0000:05:00.0: ..." per line.
  std::string driver_lines();
  int error() const { return error_; }
  std::uint64_t lost() const { return lost_; }  // overwritten before they were read

 private:
  Descriptor file_;
  int error_ = 0;
  std::uint64_t lost_ = 0;
};

// A process's ids in all namespaces that are visible from here, ours first; never empty.
std::vector<int> process_numbers(const std::string& proc, pid_t process);
// Its program and arguments; its name in brackets where it shows none, as ps does. Empty: there is no such process.
std::vector<std::string> process_command(const std::string& proc, pid_t process);

// Programs and their descendants, as far as they exist at the time of a check. Processes that start and end between two
// checks are missed.
class ProcessWatch {
 public:
  // `proc`: "/proc".
  explicit ProcessWatch(std::string proc) : proc_(std::move(proc)) {}
  // Adds `found` and the descendants of all that it knows.
  void look(const std::vector<pid_t>& found);
  bool has_alive() const { return !alive_.empty(); }
  std::vector<pid_t> alive() const;
  std::vector<CapturedProcess> processes() const;

 private:
  struct Known {
    unsigned long long started;  // distinguishes it from a later process with the same pid
    CapturedProcess process;
  };
  std::vector<pid_t> children_of(pid_t process) const;
  void add(pid_t process);

  std::string proc_;
  std::map<pid_t, Known> alive_;
  std::vector<Known> gone_;
};

}  // namespace weir::amd
