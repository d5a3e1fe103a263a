#include "lab/try/trial.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/file.h"

namespace weir::trials {
namespace {

namespace fs = std::filesystem;

constexpr double kGraceS = 2;                   // between asking a program to end and killing it
constexpr std::size_t kLongestSearched = 4096;  // std::regex recurses once per character

// FNV-1a: distinguishes results, does not resist attacks.
class Hash {
 public:
  void add(std::string_view text) {
    for (const char c : text) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  std::string text() const { return fmt::format("{:016x}", hash_); }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325U;
};

struct FileState {
  std::int64_t changed_ns = -1;
  std::uint64_t inode = 0, bytes = 0;
  bool operator==(const FileState&) const = default;
};

FileState state_of(const std::string& file) {
  struct stat found{};
  if (::stat(file.c_str(), &found) != 0) return {};
  return {found.st_mtim.tv_sec * 1'000'000'000LL + found.st_mtim.tv_nsec, found.st_ino,
          static_cast<std::uint64_t>(found.st_size)};
}

// A file system's clock moves in steps of milliseconds, so a rewrite at once could keep the time: the file becomes a
// second older. Where that is not allowed, the time stays.
FileState aged_state_of(const std::string& file) {
  struct stat found{};
  if (::stat(file.c_str(), &found) != 0) return {};
  const struct timespec times[] = {{0, UTIME_OMIT}, {found.st_mtim.tv_sec - 1, found.st_mtim.tv_nsec}};
  ::utimensat(AT_FDCWD, file.c_str(), times, 0);
  return state_of(file);
}

std::optional<std::string> hash_of_file(const std::string& file, const FileState& before) {
  const FileState now = state_of(file);
  if (now == FileState{} || now == before) return std::nullopt;
  const Descriptor in = open_regular(file);
  if (!in) return std::nullopt;
  Hash hash;
  std::vector<char> piece(1 << 20);
  while (const std::size_t count = read_some(in.get(), piece.data(), piece.size(), file))
    hash.add({piece.data(), count});
  return hash.text();
}

// A file of a trial. The program runs in between, so it must not choose with a link what is written to.
class OutputFile {
 public:
  explicit OutputFile(const fs::path& path) : path_(path), file_(create_file(path, 0666)) {}
  void write(std::string_view text) const {
    if (!write_all(file_.get(), text)) throw_file_error(path_, "write", errno);
  }

 private:
  fs::path path_;
  Descriptor file_;
};

// Standard output as it arrives: into the file, the hash and the search for the metric.
class OutputSink {
 public:
  OutputSink(const fs::path& file, const std::regex* metric) : file_(file), metric_(metric) {}
  void take(std::string& text) {
    if (text.empty()) return;
    hash_.add(text);
    metric_.add(text);
    const std::size_t kept = static_cast<std::size_t>(std::min<std::uint64_t>(text.size(), kMaxOutputBytes - written_));
    file_.write(std::string_view(text).substr(0, kept));
    written_ += kept;
    dropped_ += text.size() - kept;
    text.clear();
  }
  std::optional<double> finish() {
    if (dropped_ > 0) file_.write(fmt::format("\n[{} bytes left out]\n", dropped_));
    return metric_.finish();
  }
  std::string hash() const { return hash_.text(); }

 private:
  OutputFile file_;
  MetricFinder metric_;
  Hash hash_;
  std::uint64_t written_ = 0, dropped_ = 0;
};

// Ends what a trial has started where this process is killed: the kernel ends only the program itself then. A process
// of its own, because nothing else outlives a SIGKILL. Programs that left the trial's process group escape.
class GroupGuard {
 public:
  explicit GroupGuard(pid_t group) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    to_guard_.reset(ends[1]);
    const Descriptor from_us(ends[0]);
    guard_ = ::fork();
    if (guard_ != 0) return;
    // Only async-signal-safe calls from here on.
    ::setpgid(0, 0);
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_BLOCK, &all, nullptr);
    ::dup2(ends[0], STDIN_FILENO);
    ::syscall(SYS_close_range, 1U, ~0U, 0U);
    ::close(ends[1]);  // before Linux 5.9
    char nothing = 0;
    if (::read(STDIN_FILENO, &nothing, 1) == 0) ::kill(-group, SIGKILL);
    ::_exit(0);
  }
  ~GroupGuard() {
    if (guard_ <= 0) return;
    ::kill(guard_, SIGKILL);
    while (::waitpid(guard_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  GroupGuard(const GroupGuard&) = delete;
  GroupGuard& operator=(const GroupGuard&) = delete;

 private:
  Descriptor to_guard_;
  pid_t guard_ = -1;
};

}  // namespace

std::regex metric_pattern(const std::string& text) {
  try {
    std::regex pattern(text);
    if (pattern.mark_count() == 1) return pattern;
  } catch (const std::regex_error& error) {
    reject(fmt::format("--metric '{}': not a regular expression: {}", text, error.what()));
  }
  reject(fmt::format("--metric '{}': needs exactly one group", text),
         R"(Put the number in parentheses: --metric 'steps_per_s": ([0-9.]+)'; use (?:...) for other groups.)");
}

void MetricFinder::add(std::string_view piece) {
  if (pattern_ == nullptr) return;
  while (!piece.empty()) {
    const std::size_t end = piece.find_first_of("\n\r");
    line_ += piece.substr(0, end);
    piece.remove_prefix(end == std::string_view::npos ? piece.size() : end + 1);
    if (end != std::string_view::npos) {
      search(line_);
      line_.clear();
    } else if (line_.size() >= 2 * kLongestSearched) {
      // A long line is searched in windows that overlap, so that nothing is lost where two meet.
      search(line_);
      line_.erase(0, line_.size() - kLongestSearched / 4);
    }
  }
}

std::optional<double> MetricFinder::finish() {
  if (pattern_ != nullptr && !line_.empty()) search(line_);
  line_.clear();
  return found_;
}

void MetricFinder::search(std::string_view line) {
  for (std::size_t begin = 0; begin < line.size(); begin += kLongestSearched - kLongestSearched / 4) {
    const std::string_view part = line.substr(begin, kLongestSearched);
    for (std::cregex_iterator match(part.data(), part.data() + part.size(), *pattern_), end; match != end; ++match) {
      double value = 0;
      const char *const first = (*match)[1].first, *const last = (*match)[1].second;
      const auto [rest, error] = std::from_chars(first, last, value);
      // "1,234" and "3.5GB" are not 1 and 3.5; "took 3.5." ends a sentence.
      const bool is_whole = rest == last || (rest + 1 == last && *rest == '.');
      if (error == std::errc() && is_whole && std::isfinite(value)) found_ = value;
    }
    if (begin + kLongestSearched >= line.size()) break;
  }
}

TrialOutcome run_trial(const TrialRequest& request, const std::atomic<bool>& stop) {
  TrialOutcome outcome;
  std::vector<FileState> before;
  for (const std::string& file : request.hashed) before.push_back(file == "-" ? FileState{} : aged_state_of(file));

  ProcessOptions options;
  options.command = request.command;
  options.variables = request.variables;
  options.absent = request.absent;
  options.out = ProcessOptions::Output::read;
  options.first_bytes = 64 * 1024;
  options.grace_s = kGraceS;
  OutputSink sink(request.out_file, request.metric);
  const std::int64_t begun_ns = now_ns();
  Process process(std::move(options));
  const GroupGuard guard(process.id());
  std::optional<ProcessEnd::How> cut;
  while (process.listen(50)) {
    sink.take(process.unread());
    if (stop.load())
      cut = ProcessEnd::How::stopped;
    else if (request.timeout_s > 0 && static_cast<double>(now_ns() - begun_ns) > request.timeout_s * 1e9)
      cut = ProcessEnd::How::timed_out;
    if (cut) break;
  }
  sink.take(process.unread());
  outcome.duration_ns = now_ns() - begun_ns;
  // Asks the whole group to end, and kills it where it does not.
  outcome.end = process.finish(0);
  if (cut) outcome.end.how = *cut;

  const std::string errors = process.output().text();
  OutputFile(request.err_file).write(errors.empty() ? errors : errors + "\n");
  outcome.metric = sink.finish();
  if (!outcome.metric) {
    MetricFinder finder(request.metric);
    finder.add(errors);
    outcome.metric = finder.finish();
  }
  for (std::size_t i = 0; i < request.hashed.size(); ++i)
    outcome.hashes.emplace_back(request.hashed[i],
                                request.hashed[i] == "-" ? sink.hash() : hash_of_file(request.hashed[i], before[i]));
  return outcome;
}

}  // namespace weir::trials
