#include "run/record_dump.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/units.h"
#include "trace/analyse/slice.h"
#include "trace/import/import.h"
#include "trace/recording.h"

namespace weir {
namespace {

// More than `weir record --memory` allows.
constexpr std::uint64_t kMostRecordingBytes = std::uint64_t{4} << 30;
constexpr std::uint64_t kTimelineGrowth = 16;  // memory that a timeline takes at most, relative to its recording

}  // namespace

std::string RecordDump::words() const {
  return fmt::format("{}: {} in {} of process {}, {}{}", path.string(), counted(commands, "command"),
                     format_duration(covered_ns), pid,
                     lost_bytes == 0 ? "nothing lost" : format_bytes(lost_bytes) + " lost",
                     is_cut ? ", all that --memory had room for" : "");
}

std::optional<RecordDump> dump_recording(const RecordFile& file, std::int64_t last_ns, const ProfileOutput& output,
                                         const std::string& word) {
  // Once, because the program goes on writing: both readings are of the same moment.
  const std::string contents = copy_recording(file.path, kMostRecordingBytes);
  RecordDump dump;
  std::int64_t first_ns = INT64_MAX, newest_ns = 0, overwritten_ns = 0;
  Json command = Json::array();
  std::vector<std::int64_t> submitted;
  {
    const Recording recording = read_recording(contents, file.path.string());
    if (recording.entries.empty()) return std::nullopt;
    dump.pid = file.pid != 0 ? file.pid : recording.header.pid;
    dump.lost_bytes = std::min(recording.header.lost, UINT64_MAX / sizeof(record::Entry)) * sizeof(record::Entry);
    for (const RecordedEntry& entry : recording.entries) {
      first_ns = std::min(first_ns, entry.started_ns);
      newest_ns = std::max(newest_ns, entry.ended_ns);
      if (record::is_command(static_cast<record::Kind>(entry.kind)) && entry.flags == 0)
        submitted.push_back(entry.ended_ns);
    }
    overwritten_ns = recording.header.overwritten_ns;
    for (const std::string& part : recording.command()) command.push_back(part);
  }
  // A quiet thread keeps entries that are older than what others have overwritten.
  const std::int64_t from_ns =
      std::max({std::max<std::int64_t>(first_ns, 0), overwritten_ns, newest_ns - std::min(newest_ns, last_ns)});
  dump.is_cut = overwritten_ns > newest_ns - std::min(newest_ns, last_ns);
  dump.covered_ns = newest_ns - std::min(from_ns, newest_ns);
  dump.commands = static_cast<std::uint64_t>(
      std::count_if(submitted.begin(), submitted.end(), [&](std::int64_t ns) { return ns >= from_ns; }));

  ImportOptions import;
  import.format = "weir_recording";
  import.progress = output.progress;
  import.limits.memory_bytes = std::max(import.limits.memory_bytes, contents.size() * kTimelineGrowth);
  const ImportedTrace trace = import_memory(contents, file.path.string(), import);
  // Commands may end after the last call.
  const Timeline timeline = within(trace.timeline, {from_ns, INT64_MAX});
  Json document = {{"created", wall_time()}, {"files", Json::array()}};
  document["program"] = {{"command", command}, {"process", dump.pid}, {"recording", file.path.string()}};
  dump.path = output.named(word, timeline.spans.size());
  output.write(timeline, 0, static_cast<std::int64_t>(dump.pid), 1, Json::object(), dump.path, document);
  return dump;
}

}  // namespace weir
