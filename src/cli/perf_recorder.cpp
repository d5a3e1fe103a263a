#include "cli/perf_recorder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <fstream>

#include "base/clock.h"
#include "base/plain_text.h"
#include "cli/children.h"
#include "cli/user_program.h"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kAnswerNs = 20'000'000'000;  // to start, switch or end
constexpr std::int64_t kScriptNs = 120'000'000'000;
constexpr std::size_t kMostScript = std::size_t{1} << 30;
constexpr int kPollMs = 20;
constexpr const char* kMostData = "256M";

// perf's complaints are paragraphs, in which the first lines say what is wrong.
std::string first_words(const fs::path& file) {
  std::ifstream in(file);
  std::string words;
  for (std::string line; words.size() < 200 && std::getline(in, line);) {
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string::npos || line.starts_with("Error:")) continue;
    words += (words.empty() ? "" : " ") + line.substr(begin);
  }
  if (words.ends_with('.')) words.pop_back();
  return without_controls(whole_characters(words, 300), '?');
}

int open_new(const fs::path& path) { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600); }

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
  to_.take(::open(commands.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  from_.take(::open(answers.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  const Descriptor said(open_new(folder_.path() / "record.txt"));
  StartOptions options;
  options.death_signal = SIGKILL;
  options.out = options.err = said.get();
  perf_ = start_program({"perf", "record", "-g", "-F", fmt::to_string(kHz), "-p", fmt::to_string(process), "-o",
                         (folder_.path() / "perf.data").string(), "--max-size", kMostData, "-D", "-1", "--control",
                         fmt::format("fifo:{},{}", commands.string(), answers.string())},
                        options);
  // The answer to a harmless command: from here on it is attached.
  if (perf_ > 0) disable();
}

PerfRecorder::~PerfRecorder() {
  if (perf_ <= 0) return;
  ::kill(-perf_, SIGKILL);
  int status = 0;
  while (::waitpid(perf_, &status, 0) < 0 && errno == EINTR) {
  }
}

bool PerfRecorder::has_ended() {
  int status = 0;
  if (::waitpid(perf_, &status, WNOHANG) != perf_) return false;
  ::kill(-perf_, SIGKILL);  // what it had started and left behind
  perf_ = -1;
  const std::string said = first_words(folder_.path() / "record.txt");
  reason_ =
      fmt::format("perf cannot record this process: {}{}", said.empty() ? "it gave no reason" : said, denied_hint());
  return true;
}

void PerfRecorder::give_up(const std::string& why) {
  reason_ = why;
  ::kill(-perf_, SIGKILL);
  int status = 0;
  while (::waitpid(perf_, &status, 0) < 0 && errno == EINTR) {
  }
  perf_ = -1;
}

void PerfRecorder::command(const char* word) {
  if (perf_ <= 0) return;
  const std::string_view text = word;
  if (::write(to_.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return give_up("perf does not read its commands");
  const std::int64_t begun = now_ns();
  std::string answer;
  while (answer.find("ack") == std::string::npos) {
    if (has_ended()) return;
    if (now_ns() - begun > kAnswerNs) return give_up("perf did not answer within 20 s");
    pollfd wanted{from_.get(), POLLIN, 0};
    if (::poll(&wanted, 1, kPollMs) <= 0) continue;
    std::array<char, 64> part;
    if (const ssize_t count = ::read(from_.get(), part.data(), part.size()); count > 0)
      answer.append(part.data(), static_cast<std::size_t>(count));
    if (answer.size() > 4096) return give_up("perf answers something else");
  }
}

bool PerfRecorder::finish(FoldedStacks& into) {
  if (perf_ <= 0) return false;
  ::kill(perf_, SIGINT);
  const std::int64_t begun = now_ns();
  int status = 0;
  for (;;) {
    const pid_t ended = ::waitpid(perf_, &status, WNOHANG);
    if (ended == perf_) break;
    if (now_ns() - begun > kAnswerNs) {
      give_up("perf did not end within 20 s");
      return false;
    }
    ::poll(nullptr, 0, kPollMs);
  }
  ::kill(-perf_, SIGKILL);
  perf_ = -1;
  return read_script(into);
}

bool PerfRecorder::read_script(FoldedStacks& into) {
  const fs::path data = folder_.path() / "perf.data";
  std::error_code missing;
  if (fs::file_size(data, missing) == 0 || missing) {
    const std::string said = first_words(folder_.path() / "record.txt");
    reason_ = fmt::format("perf wrote nothing: {}", said.empty() ? "it gave no reason" : said);
    return false;
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    reason_ = "cannot make a pipe";
    return false;
  }
  const Descriptor from(ends[0]);
  Descriptor to(ends[1]);
  const Descriptor said(open_new(folder_.path() / "script.txt"));
  StartOptions options;
  options.death_signal = SIGKILL;
  options.out = to.get();
  options.err = said.get();
  const pid_t script =
      start_program({"perf", "script", "-i", data.string(), "-F", "comm,tid,ip,sym,dso", "--no-inline"}, options);
  to.close();
  const std::int64_t begun = now_ns();
  std::size_t bytes = 0;
  std::array<char, 65536> part;
  for (bool is_open = script > 0; is_open;) {
    pollfd wanted{from.get(), POLLIN, 0};
    ::poll(&wanted, 1, 500);
    if (now_ns() - begun > kScriptNs) reason_ = "perf script took longer than 120 s";
    if (bytes > kMostScript) reason_ = "perf script says more than 1 GiB";
    if (!reason_.empty()) break;
    if (wanted.revents == 0) continue;
    const ssize_t count = ::read(from.get(), part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    is_open = count > 0;
    if (is_open) into.add({part.data(), static_cast<std::size_t>(count)});
    bytes += is_open ? static_cast<std::size_t>(count) : 0;
  }
  if (!reason_.empty()) ::kill(-script, SIGKILL);
  int status = 0;
  while (script > 0 && ::waitpid(script, &status, 0) < 0 && errno == EINTR) {
  }
  if (script > 0) ::kill(-script, SIGKILL);
  into.end();
  if (reason_.empty() && (script <= 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)) {
    const std::string words = first_words(folder_.path() / "script.txt");
    reason_ = fmt::format("perf script failed: {}", words.empty() ? "it gave no reason" : words);
  }
  return reason_.empty();
}

}  // namespace weir::cli
