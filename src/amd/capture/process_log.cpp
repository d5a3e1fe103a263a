#include "amd/capture/process_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "amd/capture/capture_sources.h"
#include "base/file.h"

namespace weir::amd {
namespace {

constexpr std::size_t kMostEnvironment = 2U << 20;  // the kernel's own limit for arguments and variables

// AMD_LOG_LEVEL=4\0AMD_LOG_LEVEL_FILE=/tmp/log\0
std::string variable_in(std::string_view environment, std::string_view name) {
  for (std::size_t begin = 0; begin < environment.size();) {
    const std::size_t end = std::min(environment.find('\0', begin), environment.size());
    const std::string_view entry = environment.substr(begin, end - begin);
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return std::string(entry.substr(name.size() + 1));
    begin = end + 1;
  }
  return "";
}

// Links in the path, also absolute ones, stay below the root, which is the container's and not ours.
Descriptor open_in_root(const std::string& root, const std::string& path) {
  const Descriptor folder = open_kernel_file(root, O_PATH | O_DIRECTORY);
  if (!folder) return Descriptor();
  open_how how{};
  how.flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  Descriptor file(static_cast<int>(::syscall(SYS_openat2, folder.get(), path.c_str(), &how, sizeof how)));
  struct stat facts{};
  if (file && ::fstat(file.get(), &facts) == 0 && S_ISREG(facts.st_mode)) return file;
  if (file) errno = EINVAL;
  return Descriptor();
}

}  // namespace

ProcessLogs open_process_logs(const std::string& proc, const std::vector<pid_t>& processes) {
  ProcessLogs found;
  std::set<std::pair<dev_t, ino_t>> known;
  std::optional<std::string> refusal;
  bool has_variable = false;
  for (const pid_t pid : processes) {
    const std::string folder = fmt::format("{}/{}", proc, pid);
    errno = 0;
    const std::string environment = read_kernel_file(folder + "/environ", kMostEnvironment);
    if (environment.empty() && (errno == EACCES || errno == EPERM))
      refusal = fmt::format("{}/environ: {}", folder, std::strerror(errno));
    const std::string named = variable_in(environment, "AMD_LOG_LEVEL_FILE");
    if (named.empty()) continue;
    has_variable = true;
    // A relative name is relative to the folder in which the process started, which nobody records.
    if (!named.starts_with('/')) {
      refusal = fmt::format("process {}: AMD_LOG_LEVEL_FILE={} is relative to a folder that is not known", pid, named);
      continue;
    }
    // ROCm uses the name as given, or with the process id appended; the process knows its innermost id.
    for (const std::string& path : {named, fmt::format("{}_{}", named, process_numbers(proc, pid).back())}) {
      Descriptor file = open_in_root(folder + "/root", path);
      struct stat facts{};
      if (!file && errno != ENOENT) refusal = fmt::format("{}/root{}: {}", folder, path, std::strerror(errno));
      if (file && ::fstat(file.get(), &facts) == 0 && known.emplace(facts.st_dev, facts.st_ino).second)
        found.logs.push_back({pid, path, std::move(file)});
    }
  }
  if (refusal) {
    found.reason = *refusal;
    found.hint = "Run it as root on the host: another user's process, and what is in a container, is closed to us.";
  } else if (found.logs.empty() && has_variable) {
    found.reason = "AMD_LOG_LEVEL_FILE is set in the process, and no such file exists";
  } else if (found.logs.empty()) {
    found.reason = "ROCm was not asked for a log when the process started, and cannot be asked later";
    found.hint =
        "Start it with AMD_LOG_LEVEL=5 AMD_LOG_LEVEL_FILE=/tmp/rocm.log (docker run -e AMD_LOG_LEVEL=5 -e ...), or "
        "let weir start it: weir amd capture -- ./program.";
  }
  return found;
}

}  // namespace weir::amd
