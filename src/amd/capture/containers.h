// Containers of docker, podman and others on this machine, by their cgroups and the files that their runtimes keep. No
// daemon is asked, so nothing has to listen and no socket has to be open to us. Changes nothing.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "amd/capture/capture_plan.h"

namespace weir::amd {

struct Container {
  std::string id;       // 64 hexadecimal digits
  std::string name;     // empty where no runtime's file has one
  std::string runtime;  // docker, podman, containerd, cri-o; empty where neither files nor cgroup say so
  std::string cgroup;   // its folder below /sys/fs/cgroup; empty: not of cgroup v2, or outside what we can see
};

// The containers that a process is in, outermost first, from the text of /proc/PID/cgroup.
std::vector<Container> containers_in(std::string_view cgroup_lines);

// The running container with that name, id, or beginning of an id (6 digits at least). Rejects one that does not exist,
// that has no process here, or that several have, and lists those that there are.
Container find_container(const CaptureRoots& roots, const std::string& wanted);

// The processes in it now, by our numbers.
std::vector<pid_t> processes_in(const CaptureRoots& roots, const Container& container);

}  // namespace weir::amd
