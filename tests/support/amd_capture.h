// A whole capture folder of a described scene: log, kernel trace, snapshots over time and their manifest, which agree
// with each other. Knows formats; no decoder and no join.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "amd/capture/manifest.h"
#include "support/amd_scene.h"
#include "support/ftrace_text.h"

namespace weir::testing {

// An empty folder that goes away with the object.
class CaptureFolder {
 public:
  CaptureFolder();
  ~CaptureFolder();
  CaptureFolder(const CaptureFolder&) = delete;
  CaptureFolder& operator=(const CaptureFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

struct CaptureShape {
  bool has_log = true, has_trace = true, has_debugfs = true, has_sysfs = true;
  bool has_processes = true;  // of the manifest
  bool has_pids = true;       // of the log; without: level 3, which has no packets either
  TraceForm form = TraceForm::trace_printk;
  TraceStyle style;
  std::string trace_clock = "mono";  // as the manifest says
  std::int64_t trace_offset_ns = 0;  // log = trace + this
  int during = 3;                    // snapshots while queues live, beside "before" and "after"
};

// When each snapshot is taken: before everything, then evenly over the time in which queues live, and after.
std::vector<amd::CaptureSnapshot> snapshots_of(const Scene& scene, int during);
// Queues that KFD has at this time.
Scene scene_at(const Scene& scene, std::int64_t ns);

// Writes into `folder`, which exists, and returns the manifest that it wrote.
amd::CaptureManifest write_capture(const Scene& scene, const std::filesystem::path& folder,
                                   const CaptureShape& shape = {});

}  // namespace weir::testing
