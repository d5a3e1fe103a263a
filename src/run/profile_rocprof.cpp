#include "run/profile_rocprof.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/private_folder.h"
#include "run/children.h"
#include "trace/import/import.h"

namespace weir {
namespace {

namespace fs = std::filesystem;

// The records of the process whose notes these are. Empty with a reason.
std::optional<Timeline> records_of(const OutsidePass& outside, const fs::path& folder, const std::atomic<bool>& stop,
                                   std::string* reason) {
  ImportOptions import;
  import.format = "rocprof_json";
  import.progress = [&] {
    if (stop.load(std::memory_order_relaxed)) throw Interrupted{};
  };
  const std::vector<fs::path> files = files_below(folder, ".json");
  if (files.empty()) return *reason = "rocprofv3 wrote no trace", std::nullopt;
  for (const fs::path& file : files)
    for (ImportedTrace& trace : import_traces({file}, import))
      if (has_calls_of(trace.timeline, outside)) return std::move(trace.timeline);
  *reason = "rocprofv3 recorded no calls of the process";
  return std::nullopt;
}

}  // namespace

std::vector<fs::path> files_below(const fs::path& folder, const std::string& extension) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_regular_file(ignored) && entry->path().extension() == extension) files.push_back(entry->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> rocprof_command(const std::string& rocprof, const std::string& folder) {
  return {
      rocprof, "--kernel-trace", "--hip-runtime-trace", "--memory-copy-trace", "--output-format", "json", "-d", folder,
      "--"};
}

RocprofPass trace_under_rocprof(const std::string& rocprof, const std::vector<std::string>& words,
                                const BuiltRun& built, const std::atomic<bool>& stop) {
  RocprofPass found;
  const PrivateFolder folder;
  ChildRequest child;
  child.arguments = rocprof_command(rocprof, folder.path().string());
  child.program = child.arguments.front();
  child.arguments.erase(child.arguments.begin());
  child.arguments.push_back(own_binary().string());
  child.arguments.insert(child.arguments.end(), words.begin(), words.end());
  child.output_flag = kOutsideFlag;
  // Where rocprofv3 keeps records before it writes them; the current folder if it is not set.
  child.variables = {{"ROCPROF_TMPDIR", folder.path().string()}};
  const ChildOutcome outcome = run_child(child, stop);
  if (outcome.end == ChildEnd::interrupted && stop.load(std::memory_order_relaxed)) {
    found.is_interrupted = true;
    return found;
  }
  if (outcome.end != ChildEnd::done) {
    found.reason = outcome.end == ChildEnd::interrupted
                       ? "the process under rocprofv3 was interrupted"
                       : fmt::format("the process under rocprofv3 failed: {}", outcome.message);
    found.hint = outcome.hint;
    return found;
  }
  try {
    OutsidePass outside = outside_pass(outcome.document, built.step, built.placement);
    const auto records = records_of(outside, folder.path(), stop, &found.reason);
    if (!records) return found;
    join_records(outside, *records, built.step, kRocprof);
    if (!has_device_times(outside.pass.timeline, built.step)) {
      found.reason = outside.pass.timeline.source;
      return found;
    }
    for (const std::string& note : records->notes) outside.pass.timeline.notes.push_back(note);
    for (const Dropped& dropped : records->dropped)
      outside.pass.timeline.notes.push_back(
          fmt::format("rocprofv3's trace: {} left out: {}", dropped.count, dropped.reason));
    found.pass = std::move(outside.pass);
  } catch (const Interrupted&) {
    found.is_interrupted = true;
  } catch (const Error& error) {
    found.reason = fmt::format("what rocprofv3 wrote cannot be read: {}", error.what());
    found.hint = error.hint;
  }
  return found;
}

}  // namespace weir
