// What a history knows of a fleet: the newest probe of each node, and devices that became worse over time. Judges no
// device by others: lab/fleet does.
#pragma once

#include <string>
#include <vector>

#include "lab/fleet/node.h"
#include "measure/change_points.h"
#include "report/history/store.h"

namespace weir::history {

// By name. `since` is a time (2026-01-31T12:00:00Z) or its beginning; older probes are left out. Empty: all. Without
// the samples of their figures.
std::vector<fleet::NodeReport> newest_nodes(Store& store, const std::string& since = {});

// A figure of a device that became worse and has not become better since.
struct DeviceChange {
  std::string machine;        // id
  std::string serial, model;  // serial empty where the device has none
  std::string node, device;   // where it was when it was probed last
  std::string figure, to;     // of lab/fleet/figures.h
  std::string at, before_at;  // the first probe of the new level, and the last of the one before
  double ratio = 1;           // new level / level before
  double p = 1;
  std::string sentence;  // "GPU 1652 (node7 cuda:3): GEMM bf16 slower by 4.1 % since 2026-03-14"
};

// The largest first. Looks at probes since `since`, and says nothing of devices with fewer than six of them.
std::vector<DeviceChange> device_changes(Store& store, const std::string& since = {},
                                         const ChangeOptions& options = {});

}  // namespace weir::history
