#include "amd/capture/capture_sources.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>

#include "base/clock.h"
#include "base/file.h"
#include "base/options.h"
#include "base/process.h"

namespace weir::amd {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxDebugfs = 64U << 20;  // for hqds, mqds or rls; 8 GPUs have 770 KB
constexpr std::size_t kMaxSysfsFile = 64U << 10;  // sysfs itself returns a page
constexpr std::size_t kMaxSysfsFiles = 20'000;
constexpr std::size_t kMaxLogBytes = 4U << 20, kMaxLogRecords = 1'000'000;
constexpr std::size_t kMaxProcesses = 10'000;

// A small file as a whole; empty where it cannot be read.
std::string small_file(const std::string& path, int& error) {
  error = 0;
  const Descriptor file = open_kernel_file(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!file) {
    error = errno;
    return "";
  }
  std::string text;
  if (!read_all(file.get(), text, kMaxSysfsFile - 1)) error = errno;
  return text;
}

int error_of_opening(const std::string& path, int flags) {
  return open_kernel_file(path, flags | O_NONBLOCK) ? 0 : errno;
}

// Paths below a root that match a pattern, relative to it.
std::vector<std::string> paths_like(const std::string& root, const std::string& pattern) {
  std::string whole;
  for (const char c : root) {
    if (std::strchr("*?[\\", c) != nullptr) whole += '\\';
    whole += c;
  }
  glob_t found{};
  std::vector<std::string> paths;
  if (::glob((whole + "/" + pattern).c_str(), 0, nullptr, &found) == 0)
    for (std::size_t i = 0; i < found.gl_pathc; ++i) paths.emplace_back(found.gl_pathv[i] + root.size() + 1);
  ::globfree(&found);
  return paths;
}

void note(CapturePart& part, const std::string& reason, const std::string& hint = "") {
  if (!part.reason.empty()) return;
  part.reason = reason;
  part.hint = hint;
}

void copy_sysfs(const std::string& root, const std::string& target, CaptureFolder& folder, CapturePart& part) {
  std::size_t count = 0;
  std::string problem;
  for (const std::string& pattern : sysfs_patterns())
    for (const std::string& path : paths_like(root, pattern)) {
      struct stat facts{};
      const std::string from = root + "/" + path;
      if (::lstat(from.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode) || (facts.st_mode & 0444) == 0) continue;
      if (++count > kMaxSysfsFiles)
        return note(part, fmt::format("more than {} files: the rest is left out", kMaxSysfsFiles));
      int error = 0;
      const std::string text = small_file(from, error);
      // Processes and their files may disappear at any time.
      if (error == ENOENT || error == ENODEV || error == ESRCH) continue;
      if (error != 0) {
        if (problem.empty()) problem = fmt::format("{}: {}", from, std::strerror(error));
        continue;
      }
      if (const std::string wrong = folder.write(target + "/" + path, text); !wrong.empty()) return note(part, wrong);
    }
  if (!problem.empty()) note(part, problem, "Some files are for root only.");
  if (count > 0) part.files.push_back(target);
}

// NSpid:	3934101	157868
}  // namespace

std::vector<int> process_numbers(const std::string& proc, pid_t process) {
  int error = 0;
  const std::string text = small_file(fmt::format("{}/{}/status", proc, process), error);
  std::vector<int> numbers;
  std::size_t begin = text.find("\nNSpid:");
  if (begin == std::string::npos) return {process};
  begin += 7;
  const std::size_t stop = std::min(text.find('\n', begin), text.size());
  while (begin < stop) {
    begin = text.find_first_not_of(" \t", begin);
    if (begin >= stop) break;
    const std::size_t end = std::min(text.find_first_of(" \t\n", begin), stop);
    if (const auto number = parse_integer(std::string_view(text).substr(begin, end - begin));
        number && *number >= 0 && *number < (std::int64_t{1} << 31) && numbers.size() < 33)
      numbers.push_back(static_cast<int>(*number));
    begin = end;
  }
  return numbers.empty() ? std::vector<int>{process} : numbers;
}

namespace {

std::string name_of(const std::string& proc, pid_t process) {
  int error = 0;
  std::string name = small_file(fmt::format("{}/{}/comm", proc, process), error);
  if (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

}  // namespace

// python3\0train.py\0
std::vector<std::string> process_command(const std::string& proc, pid_t process) {
  int error = 0;
  const std::string text = small_file(fmt::format("{}/{}/cmdline", proc, process), error);
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\0', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (const std::string name = name_of(proc, process); words.empty() && !name.empty())
    words.push_back(fmt::format("[{}]", name));
  return words;
}

CapturePart& part_named(const std::string& name, std::vector<CapturePart>& parts) {
  for (CapturePart& part : parts)
    if (part.name == name) return part;
  return parts.emplace_back(CapturePart{name, {}, "", ""});
}

CaptureFacts survey(CaptureRequest& request) {
  CaptureFacts facts;
  CaptureRoots& roots = request.roots;
  std::error_code status;
  facts.is_root = ::geteuid() == 0;
  facts.has_driver = fs::is_directory(roots.sysfs + "/module/amdgpu", status);
  // pid:[4026531836] is the initial namespace, in all kernels since 3.8.
  const fs::path space = fs::read_symlink("/proc/self/ns/pid", status);
  facts.is_nested = !status && space != "pid:[4026531836]";
  facts.tracefs = error_of_opening(roots.tracefs + "/trace_clock", O_WRONLY);
  if (facts.tracefs == ENOENT) {
    const std::string old = roots.debugfs + "/tracing";
    if (error_of_opening(old + "/trace_clock", O_WRONLY) == 0) {
      roots.tracefs = old;
      facts.tracefs = 0;
    }
  }
  facts.has_instances = fs::is_directory(roots.tracefs + "/instances", status);
  facts.has_probes = error_of_opening(roots.tracefs + "/kprobe_events", O_WRONLY | O_APPEND) == 0;
  facts.has_events = fs::exists(roots.tracefs + "/events/amdkfd/enable", status);
  facts.hqds = error_of_opening(roots.debugfs + "/kfd/hqds", O_RDONLY);
  facts.mqds = error_of_opening(roots.debugfs + "/kfd/mqds", O_RDONLY);
  facts.rls = error_of_opening(roots.debugfs + "/kfd/rls", O_RDONLY);
  facts.sysfs = error_of_opening(roots.sysfs + "/class/kfd/kfd", O_RDONLY | O_DIRECTORY);
  facts.kmsg = error_of_opening(roots.kmsg, O_RDONLY);
  return facts;
}

CaptureSnapshot take_snapshot(const CaptureRequest& request, const CapturePlan& plan, const std::string& when,
                              CaptureFolder& folder, std::vector<CapturePart>& parts) {
  CaptureSnapshot snapshot{when, "snapshots/" + when, now_ns()};
  for (const SnapshotFile& file : plan.files) {
    CapturePart& part = part_named(file.part, parts);
    const Descriptor from = open_kernel_file(file.path, O_RDONLY | O_NONBLOCK);
    if (!from) {
      note(part, fmt::format("{}, {}: {}", when, file.path, std::strerror(errno)));
      continue;
    }
    const std::string name = fmt::format("{}/{}", snapshot.folder, file.part);
    const CaptureFolder::Copied copied = folder.copy(from.get(), name, kMaxDebugfs);
    if (!copied.problem.empty()) note(part, fmt::format("{}, {}: {}", when, file.path, copied.problem));
    if (copied.is_cut) note(part, fmt::format("{}: cut after {} MiB", when, kMaxDebugfs >> 20));
    if (copied.is_made) part.files.push_back(name);
  }
  if (plan.has_sysfs) copy_sysfs(request.roots.sysfs, snapshot.folder + "/sysfs", folder, part_named("sysfs", parts));
  return snapshot;
}

KernelLog::KernelLog(const std::string& path) : file_(open_kernel_file(path, O_RDONLY | O_NONBLOCK)) {
  if (file_.get() < 0 || ::lseek(file_.get(), 0, SEEK_END) < 0) error_ = errno;
}

// 6,1302,177770879589,-;amdgpu 0000:05:00.0: amdgpu: ring comp_1.0.0 timeout
//  SUBSYSTEM=pci                                    facts about the line above it, which begin with a blank
std::string KernelLog::driver_lines() {
  std::string text, rest;
  char part[8192];
  for (std::size_t records = 0; error_ == 0 && records < kMaxLogRecords && text.size() < kMaxLogBytes; ++records) {
    const ssize_t count = ::read(file_.get(), part, sizeof part);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EPIPE) {
      ++lost_;
      continue;
    }
    if (count <= 0) break;
    rest.append(part, static_cast<std::size_t>(count));
    std::size_t begin = 0;
    for (std::size_t end; (end = rest.find('\n', begin)) != std::string::npos; begin = end + 1) {
      const std::string_view line = std::string_view(rest).substr(begin, end - begin);
      const std::size_t mark = line.find(';');
      if (line.starts_with(' ') || mark == std::string_view::npos) continue;
      const std::string_view message = line.substr(mark + 1);
      if (message.find("amdgpu") == std::string_view::npos && message.find("kfd") == std::string_view::npos) continue;
      std::int64_t us = 0;
      std::size_t from = 0;
      for (int field = 0; field < 2 && from != std::string_view::npos; ++field) {
        from = line.find(',', from);
        if (from != std::string_view::npos) ++from;
      }
      if (from != std::string_view::npos)
        us = parse_integer(line.substr(from, line.find_first_of(",;", from) - from)).value_or(0);
      text += fmt::format("[{:5}.{:06}] {}\n", us / 1'000'000, us % 1'000'000, message);
    }
    rest.erase(0, begin);
    if (rest.size() > kMaxSysfsFile) rest.clear();
  }
  return text;
}

std::vector<pid_t> ProcessWatch::children_of(pid_t process) const {
  std::vector<pid_t> children;
  std::error_code status;
  // Children are listed under the thread that created them.
  fs::directory_iterator task(fmt::format("{}/{}/task", proc_, process), status);
  for (; !status && task != fs::directory_iterator(); task.increment(status)) {  // the process may end meanwhile
    int error = 0;
    const std::string text = small_file((task->path() / "children").string(), error);
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find_first_of(" \n", begin), text.size());
      if (const auto number = parse_integer(std::string_view(text).substr(begin, end - begin));
          number && *number > 0 && *number < (std::int64_t{1} << 31))
        children.push_back(static_cast<pid_t>(*number));
      begin = end + 1;
    }
  }
  return children;
}

void ProcessWatch::add(pid_t process) {
  if (alive_.size() + gone_.size() >= kMaxProcesses) return;
  const auto facts = facts_of(process, proc_);
  if (facts && !facts->is_ended())
    alive_[process] = {facts->started, {process_numbers(proc_, process), name_of(proc_, process)}};
}

void ProcessWatch::look(const std::vector<pid_t>& found) {
  std::deque<pid_t> open;
  for (auto entry = alive_.begin(); entry != alive_.end();) {
    if (const auto facts = facts_of(entry->first, proc_);
        !facts || facts->is_ended() || facts->started != entry->second.started) {
      gone_.push_back(std::move(entry->second));
      entry = alive_.erase(entry);
      continue;
    }
    // exec() changes the name of a process.
    if (std::string name = name_of(proc_, entry->first); !name.empty()) entry->second.process.name = std::move(name);
    open.push_back(entry->first);
    ++entry;
  }
  for (const pid_t process : found) {
    if (alive_.contains(process)) continue;
    add(process);
    if (alive_.contains(process)) open.push_back(process);
  }
  while (!open.empty()) {
    const pid_t process = open.front();
    open.pop_front();
    for (const pid_t child : children_of(process)) {
      if (alive_.contains(child)) continue;
      add(child);
      if (alive_.contains(child)) open.push_back(child);
    }
  }
}

std::vector<pid_t> ProcessWatch::alive() const {
  std::vector<pid_t> all;
  for (const auto& [process, known] : alive_) all.push_back(process);
  return all;
}

std::vector<CapturedProcess> ProcessWatch::processes() const {
  std::vector<CapturedProcess> all;
  for (const Known& known : gone_) all.push_back(known.process);
  for (const auto& [number, known] : alive_) all.push_back(known.process);
  return all;
}

}  // namespace weir::amd
