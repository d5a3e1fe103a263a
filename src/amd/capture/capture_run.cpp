#include "amd/capture/capture_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "amd/capture/capture_sources.h"
#include "amd/capture/capture_trace.h"
#include "amd/capture/containers.h"
#include "amd/capture/process_log.h"
#include "amd/kfd/smi_events.h"
#include "amd/kfd/snapshot.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/file.h"
#include "base/user_program.h"
#include "weir_build.h"

namespace weir::amd {
namespace {

// The real files of tracefs.
class Tracefs final : public TraceFiles {
 public:
  int write(const std::string& path, std::string_view text, bool is_appended) override;
  int read(const std::string& path, std::string& text) override;
  int make_folder(const std::string& path) override;
  int remove_folder(const std::string& path) override;
};

constexpr std::size_t kMaxBytes = 8U << 20;  // for a setting: a filter may name every function of the kernel
constexpr int kTries = 100;                  // of 10 ms each, for an instance whose files are open elsewhere

int Tracefs::write(const std::string& path, std::string_view text, bool is_appended) {
  // Never creates a file: where it does not exist, the kernel lacks the feature. Truncation clears filters and buffers.
  const Descriptor file = open_kernel_file(path, O_WRONLY | (is_appended ? O_APPEND : O_TRUNC));
  if (file.get() < 0) return errno;
  if (text.empty()) return 0;
  std::string line(text);
  if (line.back() != '\n') line += '\n';
  return write_all(file.get(), line) ? 0 : errno;
}

int Tracefs::read(const std::string& path, std::string& text) {
  text.clear();
  const Descriptor file = open_kernel_file(path, O_RDONLY | O_NONBLOCK);
  if (file.get() < 0) return errno;
  if (!read_all(file.get(), text, kMaxBytes)) return errno;
  return text.size() > kMaxBytes ? EFBIG : 0;
}

int Tracefs::make_folder(const std::string& path) { return ::mkdir(path.c_str(), 0700) == 0 ? 0 : errno; }

int Tracefs::remove_folder(const std::string& path) {
  for (int i = 0; i < kTries; ++i) {
    if (::rmdir(path.c_str()) == 0) return 0;
    if (errno != EBUSY) return errno;
    ::usleep(10'000);
  }
  return EBUSY;
}

constexpr std::int64_t kMsNs = 1'000'000;
constexpr std::int64_t kFirstLookNs = 10 * kMsNs, kLastLookNs = 200 * kMsNs;  // between checks for new processes

void add_reason(CapturePart& part, const std::string& reason, const std::string& hint = "") {
  if (reason.empty()) return;
  part.reason += (part.reason.empty() ? "" : "; ") + reason;
  if (!hint.empty()) part.hint += (part.hint.empty() ? "" : " ") + hint;
}

class Capture {
 public:
  Capture(CaptureRequest request, CaptureFolder& folder)
      : folder_(folder),
        request_(with_folder(std::move(request), folder)),
        facts_(survey(request_)),
        plan_(plan_capture(request_, facts_)),
        trace_plan_(plan_.trace.value_or(TracePlan{})),
        session_(trace_plan_, tracefs_),
        log_(request_.roots.kmsg),
        processes_(request_.roots.proc()) {}

  CaptureEnd run() {
    begin();
    Forwarding forwarding;
    CaptureEnd end;
    save_manifest(end);  // saves the current state, in case this process does not get further
    snapshot("before");
    arm();
    manifest_.started_at = wall_time();
    manifest_.started_ns = manifest_.ended_ns = now_ns();
    if (const int signal = Forwarding::take_signal(); signal != 0) {
      end.code = 128 + signal;
    } else if (request_.target) {
      watch_target(end);
    } else {
      run_program(forwarding, end);
    }
    finish(end);
    return end;
  }

 private:
  static CaptureRequest with_folder(CaptureRequest request, const CaptureFolder& folder) {
    request.folder = folder.path().string();
    request.log_folder = folder.steady_path().string();
    request.pid = ::getpid();
    return request;
  }

  void begin() {
    manifest_.command = request_.command;
    manifest_.target = request_.target;
    manifest_.weir = fmt::format("{} ({})", WEIR_VERSION, WEIR_COMMIT);
    manifest_.started_at = wall_time();
    manifest_.environment = plan_.environment;
    utsname kernel{};
    if (::uname(&kernel) == 0) manifest_.kernel_release = kernel.release;
    manifest_.parts = {{"log", {}, "", ""}, {"ftrace", {}, "", ""}, {"hqds", {}, "", ""},  {"mqds", {}, "", ""},
                       {"rls", {}, "", ""}, {"sysfs", {}, "", ""},  {"dmesg", {}, "", ""}, {"smi", {}, "", ""}};
    for (const CapturePart& missing : plan_.missing) part_named(missing.name, manifest_.parts) = missing;
  }

  CapturePart& part(const char* name) { return part_named(name, manifest_.parts); }

  bool has_snapshots() const { return !plan_.files.empty() || plan_.has_sysfs; }
  void snapshot(const std::string& when) {
    if (has_snapshots()) manifest_.snapshots.push_back(take_snapshot(request_, plan_, when, folder_, manifest_.parts));
  }

  void arm() {
    listen();
    if (!plan_.trace) return;
    if (!session_.arm()) add_reason(part("ftrace"), session_.problem(), session_.hint());
    manifest_.trace_clock = session_.problem().empty() ? session_.clock() : "";
  }

  // Evictions and restores of queues, whoever's they are.
  void listen() {
    CapturePart& smi = part("smi");
    if (!plan_.has_sysfs) {
      smi.reason = part("sysfs").reason;
      smi.hint = part("sysfs").hint;
      return;
    }
    std::vector<std::uint32_t> gpus;
    if (const auto state = kfd::read_sysfs(request_.roots.sysfs))
      for (const kfd::SysfsNode& node : state->nodes)
        if (node.gpu_id != 0) gpus.push_back(node.gpu_id);
    events_ = std::make_unique<kfd::SmiListener>(gpus, request_.roots.smi);
    if (events_->is_open()) manifest_.queue_events.emplace();
    add_reason(smi, events_->reason(), ::geteuid() != 0 ? "Run it as root." : "");
  }

  void hear_events() {
    if (events_ == nullptr || !events_->is_open()) return;
    QueueEventCounts& counts = *manifest_.queue_events;
    for (const kfd::QueueEvent& event : events_->take()) {
      const std::pair queue(event.pid, event.gpu_id);
      if (!event.is_restore) {
        ++counts.evictions;
        evicted_ns_[queue] = event.at_ns;
      } else if (!event.is_rescheduled) {
        ++counts.restores;
        if (const auto began = evicted_ns_.extract(queue); !began.empty())
          counts.longest_eviction_ns = std::max(counts.longest_eviction_ns.value_or(0), event.at_ns - began.mapped());
      }
    }
    events_text_ += events_->take_text();
  }

  void keep_events() {
    hear_events();
    if (events_ == nullptr || !events_->is_open()) return;
    const std::string problem = folder_.write("smi.txt", events_text_);
    if (problem.empty()) part("smi").files = {"smi.txt"};
    add_reason(part("smi"), problem);
  }

  // Looks for processes and takes snapshots as they are due; returns when the next is.
  template <class Found>
  std::int64_t look_around(Found&& found) {
    if (now_ns() >= next_look_ns_) {
      hear_events();
      processes_.look(found());
      next_look_ns_ = now_ns() + look_gap_ns_;
      look_gap_ns_ = std::min(2 * look_gap_ns_, kLastLookNs);
    }
    if (!has_snapshots() || during_ >= request_.max_snapshots) return next_look_ns_;
    const std::int64_t due = manifest_.started_ns + request_.interval_ns;
    if (next_snapshot_ns_ == 0) next_snapshot_ns_ = due;
    if (now_ns() >= next_snapshot_ns_) {
      snapshot(fmt::format("during-{:02}", ++during_));
      // Snapshots missed because one took longer than the interval are skipped.
      next_snapshot_ns_ = std::max(next_snapshot_ns_ + request_.interval_ns, now_ns());
    }
    return std::min(next_look_ns_, next_snapshot_ns_);
  }

  void watch_target(CaptureEnd& end) {
    const CaptureTarget& target = *request_.target;
    const Container container{target.container_id, target.container, target.runtime, request_.cgroup};
    const std::int64_t stop_ns = request_.duration_ns > 0 ? manifest_.started_ns + request_.duration_ns : INT64_MAX;
    bool is_first = true;
    // A number that is free again may be somebody else's, so a process is looked up once.
    const auto found = [&]() -> std::vector<pid_t> {
      if (!target.pid) return processes_in(request_.roots, container);
      return std::exchange(is_first, false) ? std::vector<pid_t>{*target.pid} : std::vector<pid_t>{};
    };
    int signal = 0;
    while (now_ns() < stop_ns && signal == 0) {
      const std::int64_t next_ns = look_around(found);
      if (!processes_.has_alive()) break;
      // Signals end the sleep early, or are seen after it.
      const std::int64_t wait_ns = std::clamp<std::int64_t>(std::min(next_ns, stop_ns) - now_ns(), 0, kLastLookNs);
      const timespec wait{0, wait_ns};
      ::nanosleep(&wait, nullptr);
      signal = Forwarding::take_signal();
    }
    // Ctrl-C is how a capture without --seconds is ended.
    end.code = signal == 0 || signal == SIGINT ? 0 : 128 + signal;
    manifest_.ended_ns = now_ns();
    keep_process_logs(processes_.alive());
  }

  void keep_process_logs(const std::vector<pid_t>& processes) {
    CapturePart& log = part("log");
    const ProcessLogs found = open_process_logs(request_.roots.proc(), processes);
    for (const ProcessLog& one : found.logs) {
      const std::string name = found.logs.size() == 1 ? "log" : fmt::format("log_{}", one.pid);
      const auto copied = folder_.copy(one.file.get(), name, static_cast<std::uint64_t>(request_.log_size_mib) << 20,
                                       [] { return Forwarding::take_signal() != 0; });
      if (copied.is_cut) add_reason(log, fmt::format("{} is longer than what was kept", one.path));
      add_reason(log, copied.problem);
    }
    add_reason(log, processes.empty() ? "the process has ended, and its log could not be found any more" : found.reason,
               processes.empty() ? "Use --seconds to end the capture before it." : found.hint);
  }

  void run_program(Forwarding& forwarding, CaptureEnd& end) {
    const WhileRunning while_running = [&](pid_t program) {
      return look_around([&] { return std::vector<pid_t>{program}; });
    };
    try {
      end.code = forwarding.run(request_.command, plan_.environment, while_running);
      manifest_.exit_code = end.code;
    } catch (const Error&) {
      manifest_.ended_ns = now_ns();
      finish(end);
      throw;
    }
    manifest_.ended_ns = now_ns();
  }

  void finish(CaptureEnd& end) {
    session_.stop();
    snapshot("after");
    for (const SnapshotFile& file : plan_.files)
      if ((manifest_.exit_code || request_.target) && during_ == 0 && request_.max_snapshots > 0)
        add_reason(part(file.part.c_str()), "no snapshot while the program ran: it ended before the first was due",
                   "Use a shorter --interval.");
    keep_trace();
    session_.close();
    for (const std::string& what : session_.left_behind())
      add_reason(part("ftrace"), "could not be put back: " + what, "Look at it before the next capture.");
    keep_kernel_log();
    keep_events();
    keep_log();
    manifest_.processes = processes_.processes();
    save_manifest(end);
    if (end.problem.empty()) end.problem = folder_.failure();
    for (const CapturePart& one : manifest_.parts)
      for (const std::string& file : one.files) end.bytes[one.name] += folder_.bytes(file);
    end.manifest = manifest_;
  }

  void keep_trace() {
    if (!plan_.trace || session_.method().empty()) return;
    CapturePart& ftrace = part("ftrace");
    const Descriptor from = open_kernel_file(session_.trace_file());
    if (from.get() < 0) return add_reason(ftrace, fmt::format("{}: {}", session_.trace_file(), std::strerror(errno)));
    // The program has ended: signals from here on are for Weir, and the buffer can be gigabytes of text.
    Forwarding::take_signal();
    const auto copied = folder_.copy(from.get(), "ftrace.txt", std::numeric_limits<std::uint64_t>::max(),
                                     [] { return Forwarding::take_signal() != 0; });
    if (copied.is_made) ftrace.files = {"ftrace.txt"};
    add_reason(ftrace, copied.problem);
    if (copied.is_cut) add_reason(ftrace, "interrupted while it was read: the text ends early");
    if (session_.lost_events() > 0)
      add_reason(ftrace,
                 fmt::format("{} events did not fit: the buffer has the {} of the run", session_.lost_events(),
                             request_.keeps_first ? "beginning" : "end"),
                 fmt::format("Use a larger --buffer, or --keep {}.", request_.keeps_first ? "last" : "first"));
    for (const std::string& note : session_.notes()) add_reason(ftrace, note);
    if (facts_.is_nested)
      add_reason(ftrace, "we are in a PID namespace of a container: the trace has the host's numbers",
                 "Run weir on the host, so that processes can be distinguished.");
  }

  void keep_kernel_log() {
    if (!plan_.has_dmesg) return;
    CapturePart& dmesg = part("dmesg");
    const std::string lines = log_.driver_lines();
    if (log_.error() != 0)
      return add_reason(dmesg, fmt::format("{}: {}", request_.roots.kmsg, std::strerror(log_.error())));
    const std::string problem = folder_.write("dmesg.txt", lines);
    if (problem.empty()) dmesg.files = {"dmesg.txt"};
    add_reason(dmesg, problem);
    if (log_.lost() > 0) add_reason(dmesg, "lines were overwritten before they were read");
  }

  // ROCm uses the file name as given, or with the process id appended; versions differ.
  void keep_log() {
    CapturePart& log = part("log");
    for (const std::string& name : folder_.files("log"))
      if (folder_.bytes(name) > 0) log.files.push_back(name);
    if (!log.files.empty() || request_.target) return;
    if (!manifest_.exit_code) return add_reason(log, "the program did not run");
    add_reason(log,
               "no ROCm runtime wrote one: the program did not use HIP, or not in a process that it started itself",
               "A program in a container needs the variables there: docker run -e AMD_LOG_LEVEL=... (see --dry-run).");
  }

  void save_manifest(CaptureEnd& end) { end.problem = folder_.replace(kManifestFile, to_text(to_json(manifest_))); }

  CaptureFolder& folder_;
  CaptureRequest request_;
  CaptureFacts facts_;
  CapturePlan plan_;
  TracePlan trace_plan_;
  Tracefs tracefs_;
  TraceSession session_;
  KernelLog log_;
  ProcessWatch processes_;
  CaptureManifest manifest_;
  std::unique_ptr<kfd::SmiListener> events_;
  std::string events_text_;
  std::map<std::pair<int, std::uint32_t>, std::int64_t> evicted_ns_;  // process and GPU -> when its queues were
  int during_ = 0;                                                    // snapshots taken while the program runs
  std::int64_t look_gap_ns_ = kFirstLookNs, next_look_ns_ = 0, next_snapshot_ns_ = 0;
};

}  // namespace

CaptureEnd capture_program(CaptureRequest request, CaptureFolder& folder) {
  return Capture(std::move(request), folder).run();
}

}  // namespace weir::amd
