// A whole small capture of any bytes: log, kernel trace, hqds and mqds, parted by lines "=== NAME". Whatever they hold,
// they either give a join whose document and timeline are JSON, or our own error.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "amd/join/join_load.h"
#include "amd/join/merged_timeline.h"
#include "base/error.h"
#include "base/json.h"

namespace {

namespace fs = std::filesystem;

// In memory where the system has such a folder: an input's files then cost a tenth of what reading them does.
class Folder {
 public:
  Folder() {
    std::string name = fs::is_directory("/dev/shm") ? "/dev/shm/weir_fuzz_XXXXXX" : "/tmp/weir_fuzz_XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path = name;
    fs::create_directories(path / "first");
    fs::create_directories(path / "second");
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  fs::path path;
};

void put(const fs::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

// "=== log\n...\n=== ftrace\n...": the text behind such a line, up to the next one.
std::string_view part_of(std::string_view text, std::string_view name) {
  const std::string line = "=== " + std::string(name) + "\n";
  const std::size_t from = text.find(line);
  if (from == text.npos) return {};
  text.remove_prefix(from + line.size());
  return text.substr(0, text.find("=== "));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Folder folder;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (size > 16384) return 0;
  put(folder.path / "log", part_of(text, "log"));
  put(folder.path / "ftrace", part_of(text, "ftrace"));
  put(folder.path / "first/hqds", part_of(text, "hqds"));
  put(folder.path / "first/mqds", part_of(text, "mqds"));
  put(folder.path / "second/mqds", part_of(text, "mqds later"));
  weir::amd::CaptureFiles files;
  files.logs = {folder.path / "log"};
  files.traces = {folder.path / "ftrace"};
  files.snapshots = {{"first", folder.path / "first", 1'000'050'000'000},
                     {"second", folder.path / "second", INT64_MIN}};
  // One byte decides what a manifest would say.
  const std::uint8_t choice = size == 0 ? std::uint8_t{0} : data[size - 1];
  if ((choice & 1) != 0) files.trace_clock = "mono";
  if ((choice & 2) != 0) files.processes = {{{4000, 17}, "python3"}};
  if ((choice & 4) != 0) files.given = {{17, 4000}};
  try {
    const weir::amd::LoadedCapture capture = weir::amd::load_capture(files, nullptr);
    const weir::amd::Join join = weir::amd::join_queues(capture.input);
    for (const weir::amd::JoinedQueue& queue : join.queues) {
      // A match without anything that it rests on is a guess.
      for (const weir::amd::Evidence& evidence : queue.evidence)
        if (evidence.keys.empty()) __builtin_trap();
      if (queue.runtime != nullptr && queue.create != nullptr && queue.evidence.empty()) __builtin_trap();
    }
    // Documents and a second reading for the timeline cost more than the join: every fourth input has them.
    if ((choice & 24) != 0) return 0;
    weir::to_text(weir::amd::join_document(capture.input, join, capture.about));
    const fs::path timeline = folder.path / "timeline.json";
    weir::amd::write_merged_timeline(capture, join, timeline, true, nullptr);
    weir::read_json(timeline);
  } catch (const weir::Error& error) {
    if (error.fault != weir::Fault::input) __builtin_trap();
  }
  return 0;
}
