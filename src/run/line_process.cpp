#include "run/line_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "run/children.h"

namespace weir {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kGraceNs = 5'000'000'000;  // between the last line of a child and its end
constexpr std::int64_t kEndNs = 500'000'000;      // for a child that is asked to end
constexpr std::int64_t kPollMs = 500;  // rarely, so that the parent does not take a core from the measurement
constexpr std::size_t kLongestLine = 64 << 20;
constexpr std::uintmax_t kMostErrors = 256 << 20;  // written to stderr: more would fill the disk
constexpr std::size_t kMaxErrors = 16 * 1024;      // of stderr, from its end, which has the reason

}  // namespace

std::string text_of(const Json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_string() ? found->get<std::string>() : "";
}

ToParent::ToParent() : pipe_(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)) {
  if (pipe_.get() < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) fail("cannot take over standard output");
}

void ToParent::send(const Json& line) const {
  if (!write_all(pipe_.get(), line.dump() + "\n")) fail("the process that wanted results is gone");
}

LineProcess::LineProcess(std::vector<std::string> command, const Json& request, std::int64_t limit_ns,
                         Variables variables)
    : error_file_(folder_.path() / "stderr"), limit_ns_(limit_ns) {
  const fs::path file = folder_.path() / "request.json";
  write_file(file, to_text(request), false);
  const Descriptor to_file = create_file(error_file_);
  ProcessOptions options;
  options.command = std::move(command);
  options.command.push_back(file.string());
  options.variables = std::move(variables);
  options.variables.emplace_back("TMPDIR", folder_.path().string());  // so that nothing of a killed child is left
  options.out = ProcessOptions::Output::read;
  options.err_file = to_file.get();
  process_.emplace(std::move(options));
}

LineProcess::End LineProcess::follow(const std::atomic<bool>& stop, const std::function<void(const Json&)>& on_line) {
  std::int64_t last_ns = now_ns();
  std::string& text = process_->unread();
  for (;;) {
    const std::int64_t limit = process_->has_output() ? limit_ns_ : kGraceNs;
    const std::int64_t left_ms = (std::min(last_ns + limit, end_ns_) - now_ns()) / 1'000'000 + 1;
    const std::size_t before = text.size();
    const bool is_over =
        !process_->listen(static_cast<int>(std::clamp<std::int64_t>(left_ms, 1, kPollMs)), kLongestLine);
    if (stop.load(std::memory_order_relaxed)) {
      // Asked first, so that it can remove what it has not finished.
      process_->signal(SIGTERM);
      for (const std::int64_t end_ns = now_ns() + kEndNs; now_ns() < end_ns && process_->listen(100, kLongestLine);)
        text.clear();
      process_->end();
      return {How::interrupted, "", "it was interrupted"};
    }
    if (text.size() > before) last_ns = now_ns();
    std::size_t begin = 0;
    for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
      const auto line = Json::parse_if_valid(std::string_view(text).substr(begin, end - begin));
      if (line && line->is_object()) on_line(*line);
    }
    text.erase(0, begin);
    if (text.size() > kLongestLine) fail("a child process printed too long a line");
    if (is_over) break;
    std::error_code ignored;
    if (const std::uintmax_t bytes = fs::file_size(error_file_, ignored); !ignored && bytes > kMostErrors) {
      process_->end();
      return {How::crashed, "", fmt::format("it wrote more than {} to stderr", format_bytes(kMostErrors))};
    }
    if (now_ns() > std::min(last_ns + limit, end_ns_)) {
      process_->end();
      return {How::timed_out, "", fmt::format("did not end within {}", format_duration(static_cast<double>(limit)))};
    }
  }
  const ProcessEnd end = process_->end();
  if (end.is_success()) return {};
  if (end.how == ProcessEnd::How::exited) return {How::crashed, "", words_of_exit(end.value)};
  const char* const name = ::sigabbrev_np(end.value);
  const char* const meaning = ::sigdescr_np(end.value);
  return {How::crashed, name == nullptr ? fmt::format("signal {}", end.value) : fmt::format("SIG{}", name),
          fmt::format("crashed: signal {} ({})", end.value, meaning == nullptr ? "unknown" : meaning)};
}

std::string LineProcess::words_of_exit(int status) const {
  const std::string error_output = child_error_in(output(kMaxErrors)).message.substr(0, 300);
  return fmt::format("its process ended with status {}{}{}", status, error_output.empty() ? "" : ": ", error_output);
}

std::string LineProcess::output(std::size_t most) const {
  const Descriptor file = open_regular(error_file_);
  const off_t size = file ? ::lseek(file.get(), 0, SEEK_END) : 0;
  std::string text;
  if (size <= 0) return text;
  const off_t begin = std::max<off_t>(0, size - static_cast<off_t>(most));
  if (::lseek(file.get(), begin, SEEK_SET) == begin) read_all(file.get(), text, most);
  text.resize(std::min(text.size(), most));
  return text;
}

}  // namespace weir
