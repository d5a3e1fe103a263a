#include "amd/join/join_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <unordered_set>

#include "amd/ftrace/read.h"
#include "amd/log/log_reader.h"
#include "base/error.h"
#include "base/named_values.h"
#include "trace/import/byte_source.h"

namespace weir::amd {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxCalls = 65'536;  // creations, updates and destructions that the join keeps
constexpr std::size_t kMaxSnapshots = 10'000;
constexpr const char* kHowToCapture = "Capture all of it at once: sudo weir amd capture -- ./program";

// Keeps only the parts of a trace that the join needs.
class CallCollector : public ftrace::KfdSink {
 public:
  explicit CallCollector(JoinInput& input) : input_(input) {
    for (const CapturedProcess& each : input.processes)
      if (!each.pids.empty()) pids_.insert(each.pids.front());
  }

  void on(const ftrace::KfdSpan& span) override {
    if (span.verb != ftrace::KfdVerb::create && span.verb != ftrace::KfdVerb::update &&
        span.verb != ftrace::KfdVerb::destroy)
      return;
    if (input_.calls.size() >= kMaxCalls) {
      ++input_.uncounted_calls;
      return;
    }
    input_.calls.push_back(span);
    ftrace::KfdSpan& kept = input_.calls.back();
    // A thread with its process's number is the first one; for other threads only TGID gives the process.
    if (!kept.process && pids_.contains(kept.pid)) kept.process = kept.pid;
    if (!is_time(kept.started_ns)) kept.started_ns = kept.ended_ns = INT64_MIN;
    if (!is_time(kept.ended_ns)) kept.ended_ns = INT64_MIN;
  }

 private:
  JoinInput& input_;
  std::unordered_set<int> pids_;
};

struct LoadStopped {};

// Reads one part with `read(part)`, which may throw, and notes the outcome. False if it was stopped.
template <class Read>
bool read_part(const char* name, const fs::path& path, LoadedCapture& loaded, Read&& read) {
  JoinPart part{name, {path.string()}, false, "", "", nullptr};
  try {
    read(part);
  } catch (const Error& error) {
    part.is_read = false;
    part.reason = error.what();
    part.hint = error.hint;
  } catch (const LoadStopped&) {
    return false;
  }
  loaded.about.parts.push_back(std::move(part));
  return true;
}

void read_log_part(const fs::path& path, const std::atomic<bool>* stop, LoadedCapture& loaded, JoinPart& part) {
  LogSummary summary;
  LogOptions options;
  options.stop = stop;
  const LogReading reading = read_log(path, summary, options);
  part.is_read = true;
  part.reason = reading.problem;
  part.facts = WEIR_NAMED(reading.bytes, reading.lines, reading.records, reading.without_pid, reading.highest_level,
                          named("restarts", summary.restart_count()));
  loaded.summaries.push_back(std::move(summary));
  const LogSummary& kept = loaded.summaries.back();
  loaded.first_logged.push_back(loaded.input.logged.size());
  loaded.logs.push_back(path);
  for (const ProcessSummary& process : kept.processes())
    loaded.input.logged.push_back({&process, reading.problem.empty() && kept.restart_count() == 0 &&
                                                 process.uncounted_queues == 0 && kept.uncounted_processes() == 0});
  loaded.input.has_log = true;
}

void read_trace_part(const fs::path& path, const std::atomic<bool>* stop, LoadedCapture& loaded, JoinPart& part) {
  JoinInput& input = loaded.input;
  const auto source = open_bytes(path);
  CallCollector collector(input);
  ftrace::FtraceOptions options;
  options.name = path.string();
  options.progress = [stop] {
    if (is_stopped(stop)) throw LoadStopped{};
  };
  const ftrace::FtraceCounters counters = ftrace::read_ftrace(*source, collector, options);
  part.is_read = true;
  part.reason = counters.problem;
  part.facts = WEIR_NAMED(counters.lines, text_or_null(counters.tracer), counters.lost_events,
                          named("has_lost_events", counters.has_losses()), counters.has_returns);
  // A trace without KFD is not a broken file, but useless here.
  ftrace::require_kfd(counters, path.string());
  input.has_trace = true;
  input.has_lost_events = input.has_lost_events || counters.has_losses();
  loaded.traces.push_back(path);
}

void read_snapshot_part(const SnapshotFolder& each, LoadedCapture& loaded, JoinPart& part) {
  const kfd::Snapshot snapshot = kfd::load_snapshot(each.folder);
  for (const kfd::MissingPart& missing : snapshot.missing) {
    part.reason += (part.reason.empty() ? "" : "; ") + fmt::format("{}: {}", missing.part, missing.reason);
    if (part.hint.empty()) part.hint = missing.hint;
  }
  part.is_read = snapshot.hqds || snapshot.mqds || snapshot.sysfs;
  if (!part.is_read) return;
  loaded.input.snapshots.push_back(
      {each.when, each.taken_ns, kfd::queues_of(snapshot), snapshot.hqds || snapshot.mqds});
  part.facts = {{"when", each.when}, {"queues", loaded.input.snapshots.back().queues.size()}};
}

// Stops on request; parts that were already read stay.
void read_parts(const CaptureFiles& files, const std::atomic<bool>* stop, LoadedCapture& loaded) {
  for (const fs::path& path : files.logs) {
    if (is_stopped(stop)) return;
    read_part("log", path, loaded, [&](JoinPart& part) { read_log_part(path, stop, loaded, part); });
  }
  for (const fs::path& path : files.traces) {
    if (is_stopped(stop)) return;
    if (!read_part("ftrace", path, loaded, [&](JoinPart& part) { read_trace_part(path, stop, loaded, part); })) return;
  }
  std::stable_sort(loaded.input.calls.begin(), loaded.input.calls.end(),
                   [](const ftrace::KfdSpan& a, const ftrace::KfdSpan& b) { return a.started_ns < b.started_ns; });
  for (std::size_t i = 0; i < files.snapshots.size() && i <= kMaxSnapshots; ++i) {
    if (is_stopped(stop)) return;
    const SnapshotFolder& each = files.snapshots[i];
    read_part("snapshot", each.folder, loaded, [&](JoinPart& part) {
      if (i == kMaxSnapshots)
        part.reason = fmt::format("only the first {} snapshots are read", kMaxSnapshots);
      else
        read_snapshot_part(each, loaded, part);
    });
  }
  // Files without a time keep the order in which they were named, before the others.
  std::stable_sort(loaded.input.snapshots.begin(), loaded.input.snapshots.end(),
                   [](const JoinSnapshot& a, const JoinSnapshot& b) { return a.taken_ns < b.taken_ns; });
}

std::string all_missing(const CaptureFiles& files, const std::vector<JoinPart>& parts) {
  std::string text = files.folder.empty()
                         ? std::string("nothing could be read")
                         : fmt::format("{}: nothing of this capture can be read", files.folder.string());
  std::size_t listed = 0;
  for (const JoinPart& part : parts) {
    if (++listed > 12) {
      text += fmt::format("\n  and {} more", parts.size() - 12);
      break;
    }
    text += fmt::format("\n  {}: {}", part.name, part.reason.empty() ? "missing" : part.reason);
  }
  if (parts.empty()) text += ": its manifest names no log, no kernel trace and no snapshot";
  return text;
}

}  // namespace

CaptureFiles files_of_capture(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error))
    reject(fmt::format("{}: not a folder of a capture", folder.string()),
           fmt::format(
               "Name the folder that weir amd capture wrote, or files: --log FILE --ftrace FILE --snapshot DIR. {}",
               kHowToCapture));
  if (!fs::exists(folder / kManifestFile, error))
    reject(
        fmt::format("{}: has no {}", folder.string(), kManifestFile),
        fmt::format("It was not written by weir amd capture. Name files: --log FILE --ftrace FILE --snapshot DIR. {}",
                    kHowToCapture));
  const CaptureManifest manifest = load_manifest(folder);
  CaptureFiles files;
  files.folder = folder;
  files.command = manifest.command;
  files.trace_clock = manifest.trace_clock;
  files.processes = manifest.processes;
  for (const CapturePart& part : manifest.parts) {
    if (part.name == "dmesg") continue;
    for (const std::string& file : part.files) {
      if (part.name == "log") files.logs.push_back(folder / file);
      if (part.name == "ftrace") files.traces.push_back(folder / file);
    }
    if (part.files.empty())
      files.missing.push_back(
          {part.name, {}, false, part.reason.empty() ? "not captured" : part.reason, part.hint, nullptr});
  }
  for (const CaptureSnapshot& snapshot : manifest.snapshots)
    files.snapshots.push_back({snapshot.when, folder / snapshot.folder, snapshot.taken_ns});
  return files;
}

LoadedCapture load_capture(const CaptureFiles& files, const std::atomic<bool>* stop) {
  LoadedCapture loaded;
  loaded.about.folder = files.folder.string();
  loaded.about.command = files.command;
  loaded.input.trace_clock = files.trace_clock;
  loaded.input.processes = files.processes;
  loaded.input.given = files.given;
  read_parts(files, stop, loaded);
  loaded.about.parts.insert(loaded.about.parts.end(), files.missing.begin(), files.missing.end());
  if (is_stopped(stop)) return loaded;
  if (!loaded.input.has_log && !loaded.input.has_trace && loaded.input.snapshots.empty()) {
    std::string hint;
    for (const JoinPart& part : loaded.about.parts)
      if (hint.empty()) hint = part.hint;
    reject(all_missing(files, loaded.about.parts), hint.empty() ? kHowToCapture : hint + " " + kHowToCapture);
  }
  return loaded;
}

}  // namespace weir::amd
