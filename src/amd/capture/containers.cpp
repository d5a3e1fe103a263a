#include "amd/capture/containers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <glob.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/options.h"

namespace weir::amd {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kIdDigits = 64, kFewestDigits = 6;
constexpr std::size_t kMostStateBytes = 4U << 20;  // of a container's file; docker's have about 4 KB
constexpr std::size_t kMostStateFiles = 10'000;
constexpr int kDeepestCgroup = 16;  // of cgroups below a container's
constexpr std::size_t kMostShown = 8;

bool is_id(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// docker-<id>.scope, libpod-<id>.scope, cri-containerd-<id>.scope, crio-<id>, or the id alone in a folder that says it.
std::string runtime_of(std::string_view before, std::string_view folder) {
  struct Mark {
    std::string_view text, runtime;
  };
  static constexpr std::array<Mark, 5> kMarks = {{{"docker", "docker"},
                                                  {"libpod", "podman"},
                                                  {"containerd", "containerd"},
                                                  {"nerdctl", "containerd"},
                                                  {"crio", "cri-o"}}};
  for (const std::string_view text : {before, folder})
    for (const Mark& mark : kMarks)
      if (text.find(mark.text) != std::string_view::npos) return std::string(mark.runtime);
  return "";
}

// /system.slice/docker-<id>.scope
// /docker/<id>
// /machine.slice/libpod-<id>.scope/container
// /machine.slice/libpod-conmon-<id>.scope         podman's monitor, which is outside
// /kubepods.slice/kubepods-pod1.slice/cri-containerd-<id>.scope
void add_containers(std::string_view path, bool is_unified, std::vector<Container>& found) {
  std::string_view folder;
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    for (std::size_t at = 0; at + kIdDigits <= part.size(); ++at) {
      const std::string_view id = part.substr(at, kIdDigits);
      if (!is_id(id)) continue;
      const std::string_view before = part.substr(0, at);
      if (before.find("conmon") != std::string_view::npos) break;
      const auto is_same = [&](const Container& one) { return one.id == id; };
      auto known = std::find_if(found.begin(), found.end(), is_same);
      if (known == found.end())
        known = found.insert(found.end(), {std::string(id), "", runtime_of(before, folder), ""});
      // "/../<id>" is a cgroup beside our own namespace, which our /sys does not show.
      if (is_unified && path.find("/..") == std::string_view::npos) known->cgroup = path.substr(0, end);
      break;
    }
    folder = part;
    begin = end + 1;
  }
}

std::vector<fs::path> state_files(const std::string& pattern) {
  glob_t found{};
  std::vector<fs::path> paths;
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0)
    for (std::size_t i = 0; i < found.gl_pathc && i < kMostStateFiles; ++i) paths.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  return paths;
}

// A runtime's file as JSON; null where it is not one. Somebody else may have written it, so nothing in it is trusted
// but as a name.
Json state_in(const fs::path& path, std::string& refusal) {
  const Descriptor file = open_regular(path);
  std::string text;
  if (!file || !read_all(file.get(), text, kMostStateBytes)) {
    if (errno == EACCES || errno == EPERM) refusal = fmt::format("{}: {}", path.string(), std::strerror(errno));
    return {};
  }
  try {
    return parse_json(text, path.string());
  } catch (const Error&) {
    return {};
  }
}

std::string text_at(const Json& json, const char* key) {
  if (!json.is_object()) return "";
  const auto found = json.find(key);
  return found == json.end() || !found->is_string() ? "" : found->get<std::string>();
}

void add_known(std::string id, std::string name, const char* runtime, std::vector<Container>& known) {
  if (name.starts_with('/')) name.erase(0, 1);  // docker's have one
  if (id.size() == kIdDigits && is_id(id)) known.push_back({std::move(id), std::move(name), runtime, ""});
}

// What the runtimes' files name, running or not. `refusal`: the first that we may not read.
std::vector<Container> known_containers(const std::string& root, std::string& refusal) {
  std::vector<Container> known;
  std::vector<std::string> docker = {"/var/lib/docker", "/home/*/.local/share/docker", "/root/.local/share/docker"};
  // {"data-root": "/data/docker"}
  if (const std::string moved = text_at(state_in(root + "/etc/docker/daemon.json", refusal), "data-root");
      moved.starts_with('/') && moved.find_first_of("*?[\\") == std::string::npos)
    docker.push_back(moved);
  for (const std::string& folder : docker) {
    // {"ID": "<id>", "Name": "/vllm_server", ...}
    std::error_code error;
    if (fs::directory_iterator(root + folder + "/containers", error); error == std::errc::permission_denied)
      refusal = fmt::format("{}/containers: {}", root + folder, error.message());
    for (const fs::path& path : state_files(root + folder + "/containers/*/config.v2.json")) {
      const Json state = state_in(path, refusal);
      add_known(text_at(state, "ID"), text_at(state, "Name"), "docker", known);
    }
  }
  for (const char* folder :
       {"/var/lib/containers", "/home/*/.local/share/containers", "/root/.local/share/containers"}) {
    // [{"id": "<id>", "names": ["web"], ...}]
    for (const fs::path& path : state_files(fmt::format("{}{}/storage/*-containers/*containers.json", root, folder))) {
      const Json state = state_in(path, refusal);
      if (!state.is_array()) continue;
      for (const Json& one : state) {
        const std::string id = text_at(one, "id");
        if (id.empty() || !one.contains("names") || !one["names"].is_array()) continue;
        for (const Json& name : one["names"])
          if (name.is_string()) add_known(id, name.get<std::string>(), "podman", known);
      }
    }
  }
  return known;
}

// Runs `body(pid, text of its cgroup file)` for every process that we see.
template <class Body>
void for_each_process(const CaptureRoots& roots, Body&& body) {
  std::error_code status;
  fs::directory_iterator entry(roots.root + "/proc", status);
  for (; !status && entry != fs::directory_iterator(); entry.increment(status)) {
    const auto pid = parse_integer(entry->path().filename().string());
    if (!pid || *pid < 1 || *pid >= (std::int64_t{1} << 31)) continue;
    body(static_cast<pid_t>(*pid), read_kernel_file((entry->path() / "cgroup").string(), 64U << 10));
  }
}

std::map<std::string, Container> running_containers(const CaptureRoots& roots) {
  std::map<std::string, Container> running;
  for_each_process(roots, [&](pid_t, const std::string& lines) {
    for (Container& one : containers_in(lines)) running.try_emplace(one.id, one);
  });
  return running;
}

// "vllm_server (docker)", or "0123456789ab" where no file names it.
std::string label_of(const Container& one) {
  const std::string name = one.name.empty() ? one.id.substr(0, 12) : one.name;
  return one.runtime.empty() ? name : fmt::format("{} ({})", name, one.runtime);
}

std::string list_of(const std::map<std::string, Container>& running) {
  if (running.empty()) return "No process that we see is in a container.";
  std::vector<std::string> names;
  for (const auto& [id, one] : running)
    if (names.size() < kMostShown) names.push_back(label_of(one));
  return fmt::format("Running here: {}{}.", fmt::join(names, ", "), running.size() > kMostShown ? ", ..." : "");
}

bool has_wanted(const Container& one, const std::string& wanted) {
  return one.name == wanted || (wanted.size() >= kFewestDigits && is_id(wanted) && one.id.starts_with(wanted));
}

// cgroup.procs of a folder and of those below: "4711\n4712\n"; 0 is a process outside our PID namespace.
bool add_members(const std::string& folder, int depth, std::vector<pid_t>& found) {
  const Descriptor file = open_kernel_file(folder + "/cgroup.procs");
  std::string text;
  if (!file || !read_all(file.get(), text, kMostStateBytes)) return false;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (const auto pid = parse_integer(std::string_view(text).substr(begin, end - begin));
        pid && *pid > 0 && *pid < (std::int64_t{1} << 31))
      found.push_back(static_cast<pid_t>(*pid));
    begin = end + 1;
  }
  std::error_code status;
  fs::directory_iterator below(folder, status);
  for (; depth > 0 && !status && below != fs::directory_iterator(); below.increment(status))
    if (std::error_code ignored; below->is_directory(ignored) && !below->is_symlink(ignored))
      add_members(below->path().string(), depth - 1, found);
  return true;
}

}  // namespace

// 0::/system.slice/docker-<id>.scope             cgroup v2
// 12:memory:/docker/<id>                          v1, a line for each controller
std::vector<Container> containers_in(std::string_view lines) {
  std::vector<Container> found;
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', begin), lines.size());
    const std::string_view line = lines.substr(begin, end - begin);
    if (const std::size_t path = line.find(":/"); path != std::string_view::npos)
      add_containers(line.substr(path + 1), line.starts_with("0::"), found);
    begin = end + 1;
  }
  return found;
}

Container find_container(const CaptureRoots& roots, const std::string& wanted) {
  std::string refusal;
  std::map<std::string, Container> running = running_containers(roots);
  const std::vector<Container> known = known_containers(roots.root, refusal);
  for (const Container& one : known)
    if (const auto found = running.find(one.id); found != running.end()) {
      if (found->second.name.empty() || one.name == wanted) found->second.name = one.name;
      if (found->second.runtime.empty()) found->second.runtime = one.runtime;
    }
  std::vector<Container> fitting;
  for (const auto& [id, one] : running)
    if (has_wanted(one, wanted)) fitting.push_back(one);
  if (fitting.size() == 1) return fitting.front();
  if (fitting.size() > 1) {
    std::vector<std::string> ids;
    for (const Container& one : fitting) ids.push_back(one.id.substr(0, 12));
    reject(fmt::format("--container {}: {} containers have that name", wanted, fitting.size()),
           fmt::format("Use an id: {}.", fmt::join(ids, ", ")));
  }
  if (std::any_of(known.begin(), known.end(), [&](const Container& one) { return has_wanted(one, wanted); }))
    reject(fmt::format("--container {}: no process of it is visible here", wanted),
           "Is it started (docker ps, podman ps)? Inside another container its processes cannot be seen: run weir on "
           "the host.");
  if (!refusal.empty())
    reject(fmt::format("--container {}: names cannot be looked up: {}", wanted, refusal),
           "Run it as root, or give the id that `docker ps` or `podman ps` shows. " + list_of(running));
  reject(fmt::format("--container {}: no such container", wanted), list_of(running));
}

std::vector<pid_t> processes_in(const CaptureRoots& roots, const Container& container) {
  std::vector<pid_t> found;
  if (!container.cgroup.empty() && add_members(roots.sysfs + "/fs/cgroup" + container.cgroup, kDeepestCgroup, found)) {
    return found;
  }
  for_each_process(roots, [&](pid_t pid, const std::string& lines) {
    for (const Container& one : containers_in(lines))
      if (one.id == container.id) found.push_back(pid);
  });
  return found;
}

}  // namespace weir::amd
