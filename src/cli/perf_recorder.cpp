#include "cli/perf_recorder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <sstream>

#include "base/clock.h"
#include "base/plain_text.h"
#include "cli/user_program.h"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

constexpr double kAnswerS = 20;  // to start, switch or end
constexpr std::int64_t kScriptNs = 120'000'000'000;
constexpr std::size_t kPart = 65536;  // of its output, at a time
constexpr std::size_t kMostScript = std::size_t{1} << 30;
constexpr int kPollMs = 20;
constexpr const char* kMostData = "256M";

// perf's complaints are paragraphs, in which the first lines say what is wrong.
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
  std::ifstream in("/proc/sys/kernel/perf_event_paranoid");
  int level = 0;
  if (!(in >> level) || level < 3 || ::geteuid() == 0) return {};
  return fmt::format(" (kernel.perf_event_paranoid is {}: `sudo sysctl kernel.perf_event_paranoid=2` allows it)",
                     level);
}

}  // namespace

PerfRecorder::PerfRecorder(pid_t process) {
  if (!find_program("perf")) {
    reason_ = "perf is not installed (Debian: linux-perf, Ubuntu: linux-tools)";
    return;
  }
  const fs::path commands = folder_.path() / "commands", answers = folder_.path() / "answers";
  if (::mkfifo(commands.c_str(), 0600) != 0 || ::mkfifo(answers.c_str(), 0600) != 0) {
    reason_ = "cannot make pipes for perf";
    return;
  }
  // For both ways, so that opening does not wait for perf to open its end.
  to_.reset(::open(commands.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  from_.reset(::open(answers.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  ProcessOptions options;
  const std::string data = (folder_.path() / "perf.data").string();
  options.command = {"perf", "record", "-g", "-F", fmt::to_string(kHz), "-p", fmt::to_string(process), "-o", data};
  options.command.insert(options.command.end(), {"--max-size", kMostData, "-D", "-1", "--control",
                                                 fmt::format("fifo:{},{}", commands.string(), answers.string())});
  options.first_bytes = 4096;
  perf_.emplace(std::move(options));
  // The answer to a harmless command: from here on it is attached.
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
    if (static_cast<double>(now_ns() - begun) > kAnswerS * 1e9) return give_up("perf did not answer within 20 s");
    pollfd wanted{from_.get(), POLLIN, 0};
    if (::poll(&wanted, 1, kPollMs) <= 0) continue;
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
    if (now_ns() - begun > kScriptNs) reason_ = "perf script took longer than 120 s";
    if (bytes > kMostScript) reason_ = "perf script says more than 1 GiB";
  }
  into.end();
  if (!script.end().is_success() && reason_.empty()) {
    const std::string words = first_words(script.output().text());
    reason_ = fmt::format("perf script failed: {}", words.empty() ? "it gave no reason" : words);
  }
  return reason_.empty();
}

}  // namespace weir::cli
