// What a capture reads while a program runs: what KFD shows at one moment, the kernel's log, and which processes there
// are. Knows where things are on this machine; never what they mean.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "amd/capture/capture_plan.h"
#include "cli/amd_capture_folder.h"
#include "cli/descriptor.h"

namespace weir::cli {

// Looks at this machine; changes nothing. Where tracefs is at its old place, `request` is told.
amd::CaptureFacts survey(amd::CaptureRequest& request);

// Copies files of debugfs and sysfs into snapshots/WHEN. Adds what was copied, and what could not be, to `parts`.
amd::CaptureSnapshot take_snapshot(const amd::CaptureRequest& request, const amd::CapturePlan& plan,
                                   const std::string& when, CaptureFolder& folder,
                                   std::vector<amd::CapturePart>& parts);

// The part of that name, added where there is none.
amd::CapturePart& part_named(const std::string& name, std::vector<amd::CapturePart>& parts);

// Lines of the kernel's log from its making on.
class KernelLog {
 public:
  explicit KernelLog(const std::string& path);
  // What the driver said since: "[177770.879589] amdgpu 0000:05:00.0: ..." per line.
  std::string driver_lines();
  int error() const { return error_; }
  std::uint64_t lost() const { return lost_; }  // overwritten before they were read

 private:
  Descriptor file_;
  int error_ = 0;
  std::uint64_t lost_ = 0;
};

// A program and what it starts, as far as it is there when we look. Processes that live for less time between two
// looks are not seen.
class ProcessWatch {
 public:
  void look(pid_t program);
  std::vector<amd::CapturedProcess> processes() const;

 private:
  struct Known {
    std::string started;  // field 22 of stat: tells it from a later process of the same number
    amd::CapturedProcess process;
  };
  std::vector<pid_t> children_of(pid_t process) const;
  void add(pid_t process);

  std::map<pid_t, Known> alive_;
  std::vector<Known> gone_;
};

}  // namespace weir::cli
