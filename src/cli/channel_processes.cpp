#include "cli/channel_processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <set>

#include "base/clock.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/children.h"
#include "cli/descriptor.h"
#include "cli/private_folder.h"
#include "cli/process.h"
#include "measure/bootstrap.h"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;
using channel_bench::Measurement;

constexpr std::int64_t kGraceNs = 5'000'000'000;  // between the last line of a child and its end
constexpr int kPollMs = 500;                      // rarely: the parent must not take a core from what is measured
constexpr std::size_t kLongestLine = 64 << 20;

// What one child did.
struct Outcome {
  enum class End { done, timed_out, crashed, interrupted } end = End::done;
  std::string running;  // the benchmark that it did not end
  std::string why;      // it did not
};
constexpr std::array kEndNames{"done", "timed_out", "crashed", "interrupted"};

class Child {
 public:
  Child(const ChannelPlan& plan, const std::vector<std::string>& ids)
      : limit_ns_(plan.limit_ns), said_(folder_.path() / "stderr") {
    const fs::path file = folder_.path() / "request.json";
    Json request = Json::object();
    request["conditions"] = to_json(plan.conditions);
    request["benchmarks"] = ids;
    write_file(file, to_text(request), false);
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) fail("cannot make a pipe", "Look at the limits of this user: ulimit -n.");
    from_ = ends[0];
    ::fcntl(from_, F_SETFL, O_NONBLOCK);
    Descriptor to_us(ends[1]), to_file(::open(said_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    std::vector<std::string> command = plan.command;
    command.push_back(file.string());
    StartOptions options;
    options.death_signal = SIGKILL;
    options.out = to_us.get();
    options.err = to_file.get();
    process_ = start_program(command, options);
  }
  ~Child() {
    if (process_ > 0) end();
    ::close(from_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Hears it until it has ended, was silent for too long, or we are interrupted.
  Outcome follow(const std::function<void(const Json&)>& heard) {
    const std::atomic<bool>& is_interrupted = catch_interrupts();
    std::int64_t last_ns = now_ns();
    bool is_open = true;
    for (;;) {
      pollfd wanted{is_open ? from_ : -1, POLLIN, 0};
      ::poll(&wanted, 1, is_open ? kPollMs : 10);
      if (is_interrupted.load(std::memory_order_relaxed)) return ended(Outcome::End::interrupted, "it was interrupted");
      int status = 0;
      const bool has_ended = ::waitpid(process_, &status, WNOHANG) == process_;
      if (has_ended) process_ = -1;
      if (is_open && read_lines(heard, is_open)) last_ns = now_ns();
      if (has_ended) return judge(status);
      const std::int64_t limit = is_open ? limit_ns_ : kGraceNs;
      if (now_ns() - last_ns > limit)
        return ended(Outcome::End::timed_out,
                     fmt::format("did not end within {}", format_duration(static_cast<double>(limit))));
    }
  }
  void begins(const std::string& id) { running_ = id; }
  void ends() { running_.clear(); }

 private:
  // Lines of JSON; anything else is a library that talks. True where something came.
  bool read_lines(const std::function<void(const Json&)>& heard, bool& is_open) {
    std::array<char, 65536> part;
    bool has_any = false;
    for (;;) {
      const ssize_t count = ::read(from_, part.data(), part.size());
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

  Outcome judge(int status) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && running_.empty()) return {};
    if (WIFSIGNALED(status)) {
      const char* const name = ::sigdescr_np(WTERMSIG(status));
      return {Outcome::End::crashed, running_,
              fmt::format("crashed: signal {} ({})", WTERMSIG(status), name == nullptr ? "unknown" : name)};
    }
    const std::string said = last_words();
    return {Outcome::End::crashed, running_,
            fmt::format("its process ended with status {}{}{}", WEXITSTATUS(status), said.empty() ? "" : ": ", said)};
  }
  Outcome ended(Outcome::End how, const std::string& why) {
    end();
    return {how, running_, why};
  }
  void end() {
    ::kill(-process_, SIGKILL);
    int status = 0;
    while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    process_ = -1;
  }
  // The last line on stderr that is not empty: where our own errors have a hint below, the line of the error.
  std::string last_words() const {
    std::ifstream file(said_);
    std::string last;
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("weir: ")) return line.substr(6);
      if (!line.empty()) last = line;
    }
    return last.substr(0, 300);
  }

  const PrivateFolder folder_;
  const std::int64_t limit_ns_;
  const fs::path said_;
  int from_ = -1;
  pid_t process_ = -1;
  std::string text_, running_;
};

std::string text_of(const Json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_string() ? found->get<std::string>() : "";
}

Measurement read_measurement(const Json& line, const std::string& id) {
  const auto found = line.find("measurement");
  try {
    return measurement_from(found == line.end() ? Json() : *found, id);
  } catch (const Error& error) {
    Measurement measurement;
    measurement.failure = error.what();
    return measurement;
  }
}

}  // namespace

std::uint64_t seed_of_process(std::uint64_t seed, int process) {
  return SplitMix(seed + 0x632be59bd9b4e019U * static_cast<std::uint64_t>(process + 1)).next();
}

void shuffle(std::vector<std::string>& ids, std::uint64_t seed) {
  SplitMix random(seed);
  for (std::size_t left = ids.size(); left > 1; --left)
    std::swap(ids[left - 1], ids[random.below(static_cast<std::uint32_t>(left))]);
}

bool run_processes(const ChannelPlan& plan, const ChannelEvents& events) {
  std::set<std::string> given_up;  // hung or crashed: once is enough
  std::size_t done = 0;
  const std::size_t total = plan.ids.size() * static_cast<std::size_t>(plan.processes);
  for (int process = 0; process < plan.processes; ++process) {
    ChannelPlan mine = plan;
    const std::uint64_t seed = seed_of_process(plan.conditions.seed, process);
    shuffle(mine.ids, seed);
    mine.conditions.seed = seed;
    std::vector<std::string> pending;
    for (const std::string& id : mine.ids)
      if (!given_up.contains(id)) pending.push_back(id);
    done += mine.ids.size() - pending.size();
    while (!pending.empty()) {
      const std::size_t before = pending.size();
      const std::int64_t begun_ns = now_ns();
      Child child(mine, pending);
      const Outcome outcome = child.follow([&](const Json& line) {
        if (const std::string id = text_of(line, "begins"); !id.empty()) {
          child.begins(id);
          if (events.began) events.began(process, id, done, total);
        }
        const std::string id = text_of(line, "ends");
        const auto found = std::find(pending.begin(), pending.end(), id);
        if (found == pending.end()) return;
        child.ends();
        pending.erase(found);
        ++done;
        events.measured(process, id, read_measurement(line, id));
      });
      const std::size_t measured = before - pending.size();
      if (events.ended)
        events.ended({process, seed, measured, static_cast<double>(now_ns() - begun_ns) * 1e-9,
                      kEndNames[static_cast<std::size_t>(outcome.end)]});
      if (outcome.end == Outcome::End::interrupted) return false;
      const auto running = std::find(pending.begin(), pending.end(), outcome.running);
      if (running != pending.end()) {
        Measurement failed;
        failed.failure = outcome.why;
        given_up.insert(outcome.running);
        pending.erase(running);
        ++done;
        events.measured(process, outcome.running, std::move(failed));
      } else if (!pending.empty() && measured == 0) {
        // Nothing ran and nothing was running: the next child would do the same.
        fail(fmt::format("a child process failed: {}", outcome.why.empty() ? "it ended early" : outcome.why));
      }
    }
  }
  return true;
}

}  // namespace weir::cli
