#include "amd/kfd/snapshot.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/clock.h"
#include "base/error.h"

namespace weir::kfd {
namespace {

namespace fs = std::filesystem;

constexpr std::array kParts = {"hqds", "mqds", "rls"};

void add_part(Snapshot& snapshot, std::string_view part, std::string_view text, const std::string& name) {
  if (part == "hqds") snapshot.hqds = parse_hqds(text, name);
  if (part == "mqds") snapshot.mqds = parse_mqds(text, name);
  if (part == "rls") snapshot.runlists = parse_rls(text, name);
}

// If nothing was found in the text, its part is missing; an empty part would claim that there are no queues. Only mqds
// may be empty, when no process has opened KFD.
void add_text(Snapshot& snapshot, const char* part, std::string_view text, const fs::path& path) {
  add_part(snapshot, part, text, path.string());
  const bool is_mqds = std::strcmp(part, "mqds") == 0, is_hqds = std::strcmp(part, "hqds") == 0;
  const bool has_something = is_mqds   ? text.empty() || !snapshot.mqds->processes.empty()
                             : is_hqds ? !snapshot.hqds->nodes.empty()
                                       : !snapshot.runlists->lists.empty();
  if (has_something) return;
  if (is_mqds) snapshot.mqds.reset();
  if (is_hqds) snapshot.hqds.reset();
  if (!is_mqds && !is_hqds) snapshot.runlists.reset();
  snapshot.missing.push_back(
      {part, path.string(),
       text.empty() ? "the file is empty"
                    : fmt::format("not text of {}: no line of it begins as one of KFD's does", part),
       text.empty()
           ? "KFD prints a line for each GPU. Files of debugfs have no size: copy them with cat, not with tools "
             "that trust the size."
           : fmt::format("Copy it as root: cat /sys/kernel/debug/kfd/{0} > {0}", part)});
}

MissingPart missing_debugfs(const char* part, const fs::path& path, int error, const fs::path& root) {
  MissingPart missing{part, path.string(), std::strerror(error), ""};
  std::error_code ignored;
  if (error == EACCES || error == EPERM) {
    missing.reason = "permission denied";
    missing.hint = ::geteuid() == 0
                       ? "Root was refused, so the kernel is probably locked down (cat /sys/kernel/security/lockdown): "
                         "boot without lockdown, which Secure Boot turns on, or read the file on another machine."
                       : "Run it as root: debugfs is open to root only (sudo weir ...).";
  } else if (error == ENOENT && fs::is_directory(root / "kfd", ignored)) {
    missing.reason = "this kernel's KFD has no such file";
    missing.hint = "hqds, mqds and rls are there in kernels with CONFIG_DEBUG_FS and CONFIG_HSA_AMD.";
  } else if (error == ENOENT && (!fs::is_directory(root, ignored) || fs::is_empty(root, ignored))) {
    missing.reason = "debugfs is not mounted there";
    missing.hint = fmt::format("As root: mount -t debugfs none {}", root.string());
  } else if (error == ENOENT) {
    missing.reason = "no KFD in debugfs: the module amdgpu is not loaded, or it was built without KFD";
    missing.hint = "modprobe amdgpu, then ls /dev/kfd. On a machine without an AMD GPU there is nothing to read.";
  }
  return missing;
}

MissingPart missing_sysfs(const fs::path& root) {
  return {"sysfs", (root / "class/kfd/kfd").string(),
          "no KFD in sysfs: the module amdgpu is not loaded, or this is not a machine with an AMD GPU",
          "modprobe amdgpu, then ls /dev/kfd."};
}

}  // namespace

std::string_view name_of(QueueKind kind) {
  constexpr std::string_view kNames[] = {"compute", "sdma", "hiq", "diq", "unknown"};
  return kNames[static_cast<std::size_t>(kind)];
}

Snapshot read_snapshot(const Roots& roots) {
  Snapshot snapshot;
  snapshot.taken_ns = now_ns();
  for (const char* const part : kParts) {
    const fs::path path = roots.debugfs / "kfd" / part;
    const ReadText read = read_text(path);
    if (read.text)
      add_text(snapshot, part, *read.text, path);
    else
      snapshot.missing.push_back(missing_debugfs(part, path, read.error, roots.debugfs));
  }
  snapshot.sysfs = read_sysfs(roots.sysfs);
  if (!snapshot.sysfs) snapshot.missing.push_back(missing_sysfs(roots.sysfs));
  return snapshot;
}

Snapshot load_snapshot(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error))
    reject(fmt::format("{}: not a folder", folder.string()), "Give a folder that holds hqds, mqds or rls.");
  Snapshot snapshot;
  for (const char* const part : kParts) {
    ReadText read;
    fs::path path;
    for (const char* const ending : {"", ".txt"}) {
      path = folder / (std::string(part) + ending);
      read = read_text(path);
      if (read.text || read.error != ENOENT) break;
    }
    if (read.text)
      add_text(snapshot, part, *read.text, path);
    else if (read.error == ENOENT)
      snapshot.missing.push_back({part, (folder / part).string(), kNotInFolder, ""});
    else
      snapshot.missing.push_back({part, path.string(), std::strerror(read.error),
                                  read.error == EACCES ? "Read it as root, or as the user who owns it." : ""});
  }
  snapshot.sysfs = read_sysfs(folder / "sysfs");
  if (!snapshot.sysfs) snapshot.missing.push_back({"sysfs", (folder / "sysfs").string(), kNotInFolder, ""});
  return snapshot;
}

void add_file(Snapshot& snapshot, std::string_view text, const std::string& name) {
  check_is_text(text, name);
  const char* const part = looks_like_hqds(text)   ? "hqds"
                           : looks_like_mqds(text) ? "mqds"
                           : looks_like_rls(text)  ? "rls"
                                                   : nullptr;
  if (!part) {
    if (text.find("CP_HQD_") != std::string_view::npos || text.find("CP_MQD_") != std::string_view::npos)
      reject(
          fmt::format("{}: names of registers, which no kernel prints in hqds or mqds", name),
          "The kernel writes rows of hex words after 'Node N, gpu_id X:' (a line like 'CP_HQD_ACTIVE = 0x1' comes from "
          "documents or other tools). Copy the file itself: cat /sys/kernel/debug/kfd/hqds > hqds.txt");
    reject(fmt::format("{}: neither hqds nor mqds nor rls of KFD", name),
           "Those begin with 'Node N, gpu_id X:' or 'Process N PASID N:'. Copy them as root: cat "
           "/sys/kernel/debug/kfd/hqds > hqds.txt");
  }
  const bool is_second = (snapshot.hqds && std::strcmp(part, "hqds") == 0) ||
                         (snapshot.mqds && std::strcmp(part, "mqds") == 0) ||
                         (snapshot.runlists && std::strcmp(part, "rls") == 0);
  if (is_second)
    reject(fmt::format("{}: a second {}", name, part), "Give one file of each kind: they are of one moment.");
  add_part(snapshot, part, text, name);
}

}  // namespace weir::kfd
