#include "cli/talking_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/clock.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/process.h"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kGraceNs = 5'000'000'000;  // between the last line of a child and its end
constexpr std::int64_t kPollMs = 500;             // rarely: the parent must not take a core from what is measured
constexpr std::size_t kLongestLine = 64 << 20;
constexpr std::size_t kMostHeard = 16 * 1024;  // of stderr: its end, where the reason is

}  // namespace

ToParent::ToParent() : pipe_(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)) {
  if (pipe_.get() < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) fail("cannot take over standard output");
}

void ToParent::tell(const Json& line) const {
  const std::string text = line.dump() + "\n";
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(pipe_.get(), text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("the process that wanted results is gone");
    done += static_cast<std::size_t>(written);
  }
}

TalkingProcess::TalkingProcess(std::vector<std::string> command, const Json& request, std::int64_t limit_ns,
                               Variables variables)
    : said_(folder_.path() / "stderr"), limit_ns_(limit_ns) {
  const fs::path file = folder_.path() / "request.json";
  write_file(file, to_text(request), false);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail("cannot make a pipe", "Look at the limits of this user: ulimit -n.");
  from_.take(ends[0]);
  ::fcntl(from_.get(), F_SETFL, O_NONBLOCK);
  const Descriptor to_us(ends[1]), to_file(::open(said_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  command.push_back(file.string());
  StartOptions options;
  options.variables = std::move(variables);
  options.death_signal = SIGKILL;
  options.out = to_us.get();
  options.err = to_file.get();
  process_ = start_program(command, options);
}

TalkingProcess::~TalkingProcess() {
  if (process_ > 0) end();
}

TalkEnd TalkingProcess::follow(const std::function<void(const Json&)>& heard) {
  const std::atomic<bool>& is_interrupted = catch_interrupts();
  std::int64_t last_ns = now_ns();
  bool is_open = true;
  for (;;) {
    const std::int64_t limit = is_open ? limit_ns_ : kGraceNs;
    const std::int64_t left_ms = (last_ns + limit - now_ns()) / 1'000'000 + 1;
    pollfd wanted{is_open ? from_.get() : -1, POLLIN, 0};
    ::poll(&wanted, 1, is_open ? static_cast<int>(std::clamp<std::int64_t>(left_ms, 1, kPollMs)) : 10);
    if (is_interrupted.load(std::memory_order_relaxed)) return ended(TalkEnd::How::interrupted, "it was interrupted");
    int status = 0;
    const bool has_ended = ::waitpid(process_, &status, WNOHANG) == process_;
    if (has_ended) {
      ::kill(-process_, SIGKILL);  // what it had started and left behind
      process_ = -1;
    }
    if (is_open && read_lines(heard, is_open)) last_ns = now_ns();
    if (has_ended) return judge(status);
    if (now_ns() - last_ns > limit)
      return ended(TalkEnd::How::timed_out,
                   fmt::format("did not end within {}", format_duration(static_cast<double>(limit))));
  }
}

bool TalkingProcess::read_lines(const std::function<void(const Json&)>& heard, bool& is_open) {
  std::array<char, 65536> part;
  bool has_any = false;
  for (;;) {
    const ssize_t count = ::read(from_.get(), part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) break;
    if (count == 0) {
      is_open = false;
      break;
    }
    has_any = true;
    text_.append(part.data(), static_cast<std::size_t>(count));
    if (text_.size() > kLongestLine) fail("a child process says too much");
  }
  std::size_t begin = 0;
  for (std::size_t end; (end = text_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const auto line = Json::parse_if_valid(std::string_view(text_).substr(begin, end - begin));
    if (line && line->is_object()) heard(*line);
  }
  text_.erase(0, begin);
  return has_any;
}

TalkEnd TalkingProcess::judge(int status) const {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    const char* const name = ::sigabbrev_np(signal);
    const char* const meaning = ::sigdescr_np(signal);
    return {TalkEnd::How::crashed, name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name),
            fmt::format("crashed: signal {} ({})", signal, meaning == nullptr ? "unknown" : meaning)};
  }
  const std::string said = last_words();
  return {TalkEnd::How::crashed, "",
          fmt::format("its process ended with status {}{}{}", WEXITSTATUS(status), said.empty() ? "" : ": ", said)};
}

TalkEnd TalkingProcess::ended(TalkEnd::How how, std::string words) {
  end();
  return {how, "", std::move(words)};
}

void TalkingProcess::ask_to_end() const {
  if (process_ > 0) ::kill(process_, SIGTERM);
}

void TalkingProcess::end() {
  ::kill(-process_, SIGKILL);
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
}

std::string TalkingProcess::last_words() const {
  std::istringstream said(output(kMostHeard));
  std::string last;
  for (std::string line; std::getline(said, line);) {
    if (line.starts_with("weir: ")) return line.substr(6);
    if (!line.empty()) last = line;
  }
  return last.substr(0, 300);
}

std::string TalkingProcess::output(std::size_t most) const {
  std::ifstream file(said_, std::ios::binary | std::ios::ate);
  if (!file) return {};
  const auto size = static_cast<std::size_t>(std::max<std::streamoff>(0, file.tellg()));
  const std::size_t count = std::min(size, most);
  std::string text(count, '\0');
  file.seekg(static_cast<std::streamoff>(size - count));
  file.read(text.data(), static_cast<std::streamsize>(count));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
  return text;
}

}  // namespace weir::cli
