#include "run/host_profile.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <optional>
#include <sstream>
#include <string>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/file.h"
#include "base/plain_text.h"
#include "base/private_folder.h"
#include "base/process.h"
#include "base/stop.h"

namespace weir {
namespace {

// Linux perf as a child process: attached to a running process, switched on and off; its samples become folded stacks.
class PerfRecorder {
 public:
  // Starts perf on the process with all its threads, switched off. Where that is not possible, `reason` explains why.
  explicit PerfRecorder(pid_t process);

  bool is_on() const { return perf_.has_value(); }
  // Returns when perf has done it; does nothing where perf has ended.
  void enable() { command("enable\n"); }
  void disable() { command("disable\n"); }
  // Stops recording and reads the samples. Returns false, with `reason`, where that failed.
  bool finish(FoldedStacks& into);
  const std::string& reason() const { return reason_; }

 private:
  void command(const char* word);
  bool has_ended();  // perf ended by itself; reads its reason
  void give_up(const std::string& why);
  bool read_script(FoldedStacks& into);

  PrivateFolder folder_;
  Descriptor to_, from_;  // perf's pipes for commands and their answers
  std::optional<Process> perf_;
  std::string reason_;
};

namespace fs = std::filesystem;

constexpr double kAnswerS = 20;  // to start, switch or end
constexpr std::int64_t kScriptNs = 120'000'000'000;
constexpr std::size_t kPart = 65536;  // of its output, read at a time
constexpr std::size_t kMaxScript = std::size_t{1} << 30;
constexpr int kPerfPollMs = 20;
constexpr const char* kInterrupted = "it was interrupted";
constexpr const char* kMaxDataSize = "256M";

// perf's errors are paragraphs, whose first lines state the problem.
std::string first_words(const std::string& said) {
  std::istringstream in(said);
  std::string words;
  for (std::string line; words.size() < 200 && std::getline(in, line);) {
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string::npos || line.starts_with("Error:")) continue;
    words += (words.empty() ? "" : " ") + line.substr(begin);
  }
  if (words.ends_with('.')) words.pop_back();
  return without_controls(whole_characters(words, 300), '?');
}

std::string denied_hint() {
  std::istringstream in(read_kernel_file("/proc/sys/kernel/perf_event_paranoid"));
  int level = 0;
  if (!(in >> level) || level < 3 || ::geteuid() == 0) return {};
  return fmt::format(" (kernel.perf_event_paranoid is {}: `sudo sysctl kernel.perf_event_paranoid=2` allows it)",
                     level);
}

PerfRecorder::PerfRecorder(pid_t process) {
  const fs::path commands = folder_.path() / "commands", answers = folder_.path() / "answers";
  if (::mkfifo(commands.c_str(), 0600) != 0 || ::mkfifo(answers.c_str(), 0600) != 0) {
    reason_ = "cannot make pipes for perf";
    return;
  }
  // Opened for reading and writing, so that opening does not wait for perf to open its end.
  to_ = open_kernel_file(commands, O_RDWR | O_NONBLOCK);
  from_ = open_kernel_file(answers, O_RDWR | O_NONBLOCK);
  ProcessOptions options;
  const std::string data = (folder_.path() / "perf.data").string();
  options.command = {"perf", "record", "-g", "-F", fmt::to_string(kHostProfileHz), "-p", fmt::to_string(process),
                     "-o",   data};
  options.command.insert(options.command.end(), {"--max-size", kMaxDataSize, "-D", "-1", "--control",
                                                 fmt::format("fifo:{},{}", commands.string(), answers.string())});
  options.first_bytes = 4096;
  try {
    perf_.emplace(std::move(options));
  } catch (const StartError& error) {
    if (!error.is_missing && error.code != EACCES) throw;
    reason_ = "perf is not installed (Debian: linux-perf, Ubuntu: linux-tools)";
    return;
  }
  // A harmless command: once perf answers, it is attached.
  disable();
}

bool PerfRecorder::has_ended() {
  if (perf_->listen(0)) return false;
  const std::string said = first_words(perf_->output().text());
  perf_.reset();
  reason_ =
      fmt::format("perf cannot record this process: {}{}", said.empty() ? "it gave no reason" : said, denied_hint());
  return true;
}

void PerfRecorder::give_up(const std::string& why) {
  reason_ = why;
  perf_.reset();
}

void PerfRecorder::command(const char* word) {
  if (!perf_) return;
  const std::string_view text = word;
  if (::write(to_.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return give_up("perf does not read its commands");
  const std::int64_t begun = now_ns();
  std::string answer;
  while (answer.find("ack") == std::string::npos) {
    if (has_ended()) return;
    if (first_interrupt() != 0) return give_up(kInterrupted);
    if (static_cast<double>(now_ns() - begun) > kAnswerS * 1e9) return give_up("perf did not answer within 20 s");
    pollfd wanted{from_.get(), POLLIN, 0};
    if (::poll(&wanted, 1, kPerfPollMs) <= 0) continue;
    std::array<char, 64> part;
    if (const ssize_t count = ::read(from_.get(), part.data(), part.size()); count > 0)
      answer.append(part.data(), static_cast<std::size_t>(count));
    if (answer.size() > 4096) return give_up("perf answers something else");
  }
}

bool PerfRecorder::finish(FoldedStacks& into) {
  if (!perf_) return false;
  perf_->signal(SIGINT);
  if (perf_->finish(kAnswerS).how == ProcessEnd::How::timed_out) {
    give_up("perf did not end within 20 s");
    return false;
  }
  const std::string said = first_words(perf_->output().text());
  perf_.reset();
  std::error_code missing;
  if (fs::file_size(folder_.path() / "perf.data", missing) == 0 || missing) {
    reason_ = fmt::format("perf wrote nothing: {}", said.empty() ? "it gave no reason" : said);
    return false;
  }
  return read_script(into);
}

bool PerfRecorder::read_script(FoldedStacks& into) {
  ProcessOptions options;
  options.command = {"perf",       "script", "-i", (folder_.path() / "perf.data").string(), "-F", "comm,tid,ip,sym,dso",
                     "--no-inline"};
  options.out = ProcessOptions::Output::read;
  options.first_bytes = 4096;
  Process script(std::move(options));
  const std::int64_t begun = now_ns();
  std::size_t bytes = 0;
  for (bool is_over = false; !is_over && reason_.empty();) {
    is_over = !script.listen(500, kPart);
    into.add(script.unread());
    bytes += script.unread().size();
    script.unread().clear();
    if (first_interrupt() != 0) reason_ = kInterrupted;
    if (now_ns() - begun > kScriptNs) reason_ = "perf script took longer than 120 s";
    if (bytes > kMaxScript) reason_ = "perf script printed more than 1 GiB";
  }
  into.end();
  if (!script.end().is_success() && reason_.empty()) {
    const std::string words = first_words(script.output().text());
    reason_ = fmt::format("perf script failed: {}", words.empty() ? "it gave no reason" : words);
  }
  return reason_.empty();
}

constexpr double kWantedNs = 2e9;  // about 2,000 samples of a thread that is always busy
constexpr std::int64_t kLongestNs = 30'000'000'000;
constexpr int kMaxIterations = 200'000;

// As many iterations as take two seconds, but at least as many as requested. Virtual time does not predict real time:
// then the maximum is used, and the clock stops the run.
int iterations_for(const Result& result, const RunRequest& request, bool is_virtual) {
  const auto& intervals = result.samples.interval_ns;
  if (is_virtual) return std::max(request.iterations, kMaxIterations);
  if (!intervals || intervals->empty()) return request.iterations;
  const double each = std::max(1.0, median(*intervals));
  return std::max(request.iterations, static_cast<int>(std::min<double>(kMaxIterations, kWantedNs / each)));
}

HostProfile finish_profile(PerfRecorder& perf, const std::string& file, std::int64_t measured_ns, const char* advice) {
  FoldedStacks folded;
  if (!perf.finish(folded)) return {{}, nullptr, perf.reason()};
  std::vector<FoldedStack> stacks = folded.stacks();
  if (stacks.empty())
    return {{}, nullptr, fmt::format("perf saw no sample: the host was hardly busy, or the run too short. {}", advice)};
  Json facts = {
      {"file", file},         {"samples", folded.samples()}, {"left_out", folded.left_out()}, {"stacks", stacks.size()},
      {"hz", kHostProfileHz}, {"measured_ns", measured_ns}};
  return {std::move(stacks), std::move(facts), ""};
}

}  // namespace

HostProfile profile_host(const std::function<void()>& work, const std::string& file) {
  PerfRecorder perf(::getpid());
  if (!perf.is_on()) return {{}, nullptr, perf.reason()};
  perf.enable();
  const std::int64_t begun_ns = now_ns();
  work();
  const std::int64_t measured_ns = now_ns() - begun_ns;
  perf.disable();
  return finish_profile(perf, file, measured_ns, "Try more --samples");
}

HostProfile profile_host(Device& device, const RunRequest& request, const RunContext& context,
                         const RunControl& control, const Result& result, const std::string& file) {
  if (result.status != "complete")
    return {
        {}, nullptr, fmt::format("the run before it was {}", result.status == "failed" ? "a failure" : result.status)};
  PerfRecorder perf(::getpid());
  if (!perf.is_on()) return {{}, nullptr, perf.reason()};

  RunRequest again = request;
  again.checks_output = again.traces = false;
  const bool is_virtual = device.info().is_virtual;
  again.iterations = iterations_for(result, request, is_virtual);
  const std::int64_t limit_ns = is_virtual ? static_cast<std::int64_t>(kWantedNs) : kLongestNs;
  again.warmup = std::max(1, request.warmup);
  RunControl watched = control;
  std::atomic<bool> is_over = false;  // used by this thread only: the thread that measures also reports progress
  enum class Phase { before, on, after } phase = Phase::before;
  std::int64_t begun_ns = 0, measured_ns = 0;
  watched.stop = &is_over;
  watched.progress = [&](std::string_view name, int done, int total) {
    if (control.is_stopped()) is_over.store(true, std::memory_order_relaxed);
    if (phase == Phase::before && name == "warm-up" && done == total) {
      perf.enable();
      phase = Phase::on;
      begun_ns = now_ns();
    } else if (phase == Phase::on && name == "measure") {
      const bool is_last = done >= total;
      if (now_ns() - begun_ns > limit_ns) is_over.store(true, std::memory_order_relaxed);
      if (is_last || is_over.load(std::memory_order_relaxed)) {
        measured_ns = now_ns() - begun_ns;
        perf.disable();
        phase = Phase::after;
      }
    }
    if (control.progress) control.progress("host profile", done, total);
  };
  const Result second = run_workload(device, again, context, watched);
  HostProfile profile = finish_profile(perf, file, measured_ns, "Try more --iterations");
  if (second.status == "failed") return {{}, nullptr, fmt::format("the profiled run failed: {}", second.failure)};
  if (profile.facts.is_object())
    profile.facts["latency_ratio"] = second.latency_ns && result.latency_ns && result.latency_ns->p50 > 0
                                         ? Json(second.latency_ns->p50 / result.latency_ns->p50)
                                         : Json();
  return profile;
}

}  // namespace weir
