#include "amd/capture/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/file.h"
#include "base/named_values.h"
#include "base/redact.h"
#include "base/schemas.h"
#include "base/yaml.h"

namespace weir::amd {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxManifestBytes = 16U << 20;  // per manifest; Weir's are a few KiB
constexpr std::size_t kMaxNamespaces = 33;            // the kernel nests PID namespaces 32 deep
constexpr const char* kHint = "A capture folder is written by `weir amd capture -o FOLDER -- ./program`.";

// A place in the manifest, for messages that name the file and the key.
class Place {
 public:
  Place(const Json& value, std::string path, const std::string& file)
      : value_(value), path_(std::move(path)), file_(file) {}

  [[noreturn]] void refuse(const std::string& what, std::string hint = kHint) const {
    reject(fmt::format("{}: {}: {}", file_, path_, what), std::move(hint));
  }
  Place at(const char* key) const {
    const std::string below = path_.empty() ? key : fmt::format("{}.{}", path_, key);
    if (!value_.is_object()) refuse("an object is wanted here");
    const auto found = value_.find(key);
    if (found == value_.end()) reject(fmt::format("{}: {}: is missing", file_, below), kHint);
    return {*found, below, file_};
  }
  template <class Each>
  void each(Each&& body) const {
    if (!value_.is_array()) refuse("a list is wanted here");
    for (std::size_t i = 0; i < value_.size(); ++i) body(Place(value_[i], fmt::format("{}[{}]", path_, i), file_));
  }
  bool is_null() const { return value_.is_null(); }
  std::size_t size() const { return value_.size(); }

  std::string text() const {
    if (!value_.is_string()) refuse("text is wanted here");
    std::string text = value_.get<std::string>();
    if (text.find('\0') != std::string::npos) refuse("a zero byte is in it");
    return text;
  }
  std::string text_or_empty() const { return is_null() ? std::string() : text(); }
  std::int64_t integer(std::int64_t lowest, std::int64_t highest) const {
    if (!value_.is_number_integer()) refuse("a whole number is wanted here");
    // A literal beyond 2^63 is unsigned; one beyond 2^64 became a fraction and was rejected above.
    const bool is_huge =
        value_.is_number_unsigned() &&
        value_.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    const std::int64_t value = is_huge ? 0 : value_.get<std::int64_t>();
    if (is_huge || value < lowest || value > highest)
      refuse(fmt::format("{} is not between {} and {}", value_.dump(), lowest, highest));
    return value;
  }
  // A path below the folder: relative, with plain names only.
  std::string path_below() const {
    const std::string path = text();
    const auto refuse_it = [&](const char* why) { refuse(fmt::format("'{}' {}", shown(path), why)); };
    if (path.empty()) refuse("a path is wanted here");
    if (path.size() > 4096) refuse_it("is too long for a path");
    if (path[0] == '/') refuse_it("leaves the folder: paths are relative to it");
    for (const char c : path)
      if (static_cast<unsigned char>(c) < ' ' || c == 127) refuse_it("has control characters");
    for (std::size_t begin = 0; begin <= path.size();) {
      const std::size_t end = std::min(path.find('/', begin), path.size());
      const std::string_view name = std::string_view(path).substr(begin, end - begin);
      if (name == "..") refuse_it("leaves the folder");
      if (name.empty() || name == ".") refuse_it("is not a plain path");
      begin = end + 1;
    }
    return path;
  }

 private:
  const Json& value_;
  std::string path_;
  const std::string& file_;
};

constexpr std::int64_t kMaxNs = std::numeric_limits<std::int64_t>::max();

std::string short_text(const Place& place) {
  const std::string text = place.text();
  if (text.empty()) place.refuse("is empty");
  if (text.size() > 64) place.refuse(fmt::format("'{}' is too long", shown(text)));
  return text;
}

CapturedProcess read_process(const Place& place) {
  CapturedProcess process;
  const Place pids = place.at("pids");
  pids.each([&](const Place& pid) {
    process.pids.push_back(static_cast<int>(pid.integer(0, std::numeric_limits<int>::max())));
  });
  if (process.pids.empty() || process.pids.size() > kMaxNamespaces)
    pids.refuse(fmt::format("a process has 1 to {} numbers", kMaxNamespaces));
  process.name = place.at("name").text();
  return process;
}

CaptureTarget read_target(const Place& place) {
  CaptureTarget target;
  if (const Place pid = place.at("pid"); !pid.is_null())
    target.pid = static_cast<int>(pid.integer(1, std::numeric_limits<int>::max()));
  target.container = place.at("container").text_or_empty();
  target.container_id = place.at("container_id").text_or_empty();
  target.runtime = place.at("runtime").text_or_empty();
  if (!target.pid && target.container.empty()) place.refuse("names neither a process nor a container");
  return target;
}

CapturePart read_part(const Place& place) {
  CapturePart part;
  part.name = short_text(place.at("name"));
  place.at("files").each([&](const Place& file) { part.files.push_back(file.path_below()); });
  part.reason = place.at("reason").text_or_empty();
  part.hint = place.at("hint").text_or_empty();
  return part;
}

// Links may lead anywhere, and `join` may run as root on a folder that another user prepared.
void check_inside_folder(const fs::path& folder, const std::string& path, const std::string& file) {
  std::error_code status;
  const fs::path root = fs::canonical(folder, status);
  const fs::path resolved = status ? fs::path() : fs::weakly_canonical(root / path, status);
  if (status) reject(fmt::format("{}: '{}': {}", file, shown(path), status.message()), kHint);
  if (std::mismatch(root.begin(), root.end(), resolved.begin(), resolved.end()).first != root.end())
    reject(fmt::format("{}: '{}' is a link that leaves the folder", file, shown(path)),
           "Copy what it leads to into the folder.");
  // Opening a pipe could wait for ever.
  if (fs::exists(resolved, status) && !fs::is_regular_file(resolved, status) && !fs::is_directory(resolved, status))
    reject(fmt::format("{}: '{}' is neither a file nor a folder", file, shown(path)), kHint);
}

// read_json is not used: it would accept a pipe.
std::string read_bounded(const fs::path& path) {
  const Descriptor file = open_regular(path);
  std::string text;
  const char* wrong = nullptr;
  if (!file)
    wrong = errno == EINVAL || errno == EISDIR ? "is not a plain file" : std::strerror(errno);
  else if (!read_all(file.get(), text, kMaxManifestBytes))
    wrong = "cannot be read";
  else if (text.size() > kMaxManifestBytes)
    wrong = "is larger than any manifest (16 MiB)";
  if (wrong != nullptr) reject(fmt::format("{}: {}", path.string(), wrong), kHint);
  return text;
}

}  // namespace

Json to_json(const CaptureManifest& manifest) {
  Json json = WEIR_NAMED(named("schema", schemas::amd_capture), manifest.weir, manifest.command, manifest.started_at,
                         manifest.started_ns, manifest.ended_ns, manifest.exit_code, manifest.kernel_release,
                         text_or_null(manifest.trace_clock));
  json["target"] = Json();
  if (manifest.target) {
    const CaptureTarget& target = *manifest.target;
    json["target"] = WEIR_NAMED(target.pid, text_or_null(target.container), text_or_null(target.container_id),
                                text_or_null(target.runtime));
  }
  json["environment"] = Json::array();
  for (const auto& [name, value] : manifest.environment) json["environment"].push_back(WEIR_NAMED(name, value));
  json["processes"] = Json::array();
  for (const CapturedProcess& process : manifest.processes)
    json["processes"].push_back(WEIR_NAMED(process.pids, process.name));
  json["parts"] = Json::array();
  for (const CapturePart& part : manifest.parts)
    json["parts"].push_back(WEIR_NAMED(part.name, part.files, text_or_null(part.reason), text_or_null(part.hint)));
  json["snapshots"] = Json::array();
  for (const CaptureSnapshot& snapshot : manifest.snapshots)
    json["snapshots"].push_back(WEIR_NAMED(snapshot.when, snapshot.folder, snapshot.taken_ns));
  json["queue_events"] = Json();
  if (manifest.queue_events) {
    const QueueEventCounts& events = *manifest.queue_events;
    json["queue_events"] = WEIR_NAMED(events.evictions, events.restores, events.longest_eviction_ns);
  }
  return json;
}

CaptureManifest parse_manifest(std::string_view text, const std::string& name) {
  Json json = parse_json(text, name);
  redact(json);  // as read_json() does
  const Place root(json, "", name);
  if (!json.is_object() || !json.contains("schema"))
    reject(fmt::format("{}: is not the manifest of a capture: `schema` is missing", name), kHint);
  if (const std::string schema = root.at("schema").text(); schema != schemas::amd_capture)
    root.at("schema").refuse(fmt::format("'{}' is not {}", shown(schema), schemas::amd_capture));
  CaptureManifest manifest;
  manifest.weir = root.at("weir").text();
  root.at("command").each([&](const Place& word) { manifest.command.push_back(word.text()); });
  if (manifest.command.empty()) root.at("command").refuse("a program is wanted here");
  // Manifests of before captures of running processes have none.
  if (json.contains("target") && !json["target"].is_null()) manifest.target = read_target(root.at("target"));
  manifest.started_at = root.at("started_at").text();
  manifest.started_ns = root.at("started_ns").integer(0, kMaxNs);
  manifest.ended_ns = root.at("ended_ns").integer(0, kMaxNs);
  if (manifest.ended_ns < manifest.started_ns) root.at("ended_ns").refuse("is before started_ns");
  if (const Place code = root.at("exit_code"); !code.is_null())
    manifest.exit_code = static_cast<int>(code.integer(0, 255));
  manifest.kernel_release = root.at("kernel_release").text();
  manifest.trace_clock = root.at("trace_clock").text_or_empty();
  root.at("environment").each([&](const Place& variable) {
    manifest.environment.emplace_back(short_text(variable.at("name")), variable.at("value").text());
  });
  root.at("processes").each([&](const Place& process) { manifest.processes.push_back(read_process(process)); });
  root.at("parts").each([&](const Place& place) {
    CapturePart part = read_part(place);
    for (const CapturePart& other : manifest.parts)
      if (other.name == part.name) place.at("name").refuse(fmt::format("'{}' is there twice", shown(part.name)));
    // Only a handful of names exist; the bound keeps the search above from growing quadratically with a hostile list.
    if (manifest.parts.size() >= 64) place.refuse("more than 64 parts");
    manifest.parts.push_back(std::move(part));
  });
  if (json.contains("queue_events") && !json["queue_events"].is_null()) {
    const Place events = root.at("queue_events");
    QueueEventCounts& counts = manifest.queue_events.emplace();
    counts.evictions = static_cast<std::uint64_t>(events.at("evictions").integer(0, kMaxNs));
    counts.restores = static_cast<std::uint64_t>(events.at("restores").integer(0, kMaxNs));
    if (const Place longest = events.at("longest_eviction_ns"); !longest.is_null())
      counts.longest_eviction_ns = longest.integer(0, kMaxNs);
  }
  root.at("snapshots").each([&](const Place& place) {
    manifest.snapshots.push_back(
        {short_text(place.at("when")), place.at("folder").path_below(), place.at("taken_ns").integer(0, kMaxNs)});
  });
  return manifest;
}

CaptureManifest load_manifest(const fs::path& folder) {
  std::error_code ignored;
  const fs::path path = folder / kManifestFile;
  if (!fs::is_directory(folder, ignored))
    reject(fmt::format("{}: {}", folder.string(), fs::exists(folder, ignored) ? "is not a folder" : "does not exist"),
           kHint);
  if (!fs::exists(path, ignored)) reject(fmt::format("{}: has no {}", folder.string(), kManifestFile), kHint);
  CaptureManifest manifest = parse_manifest(read_bounded(path), path.string());
  for (const CapturePart& part : manifest.parts)
    for (const std::string& file : part.files) check_inside_folder(folder, file, path.string());
  for (const CaptureSnapshot& snapshot : manifest.snapshots)
    check_inside_folder(folder, snapshot.folder, path.string());
  return manifest;
}

}  // namespace weir::amd
