#include "run/record_watch.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <exception>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "base/units.h"
#include "run/record_dump.h"
#include "run/record_hang.h"

namespace weir {
namespace {

constexpr std::int64_t kLookNs = 500'000'000;
constexpr std::int64_t kKillGraceNs = 5'000'000'000, kSameTimeNs = 5'000'000'000;

std::uint64_t ended_in(const RecordedState& state) {
  std::uint64_t sum = 0;
  for (const record::Stream& stream : state.streams) sum += stream.ended;
  return sum;
}

// What the program is called, without its folder: "python3".
std::string program_of(const std::vector<std::string>& command) {
  return command.empty() ? std::string() : std::filesystem::path(command[0]).filename().string();
}

}  // namespace

RecordWatch::RecordWatch(RecordFolder folder, RecordTriggers triggers, std::filesystem::path metrics,
                         std::int64_t interval_ns, Say say)
    : folder_(std::move(folder)),
      triggers_(triggers),
      metrics_(std::move(metrics)),
      interval_ns_(interval_ns),
      say_(std::move(say)) {}

template <class Work>
void RecordWatch::try_to(Work&& work) noexcept {
  try {
    try {
      work();
    } catch (const Error& error) {
      say_once(fmt::format("{}{}{}", error.what(), error.hint.empty() ? "" : ". ", error.hint));
    } catch (const std::exception& error) {
      say_once(error.what());
    }
  } catch (...) {
    // Not even a message: out of memory.
  }
}

void RecordWatch::say_once(const std::string& text) {
  if (said_.size() < 100 && said_.insert(text).second) say_(text);
}

std::int64_t RecordWatch::look(pid_t program) noexcept {
  const std::int64_t now = now_ns();
  try_to([&] { find(); });
  for (auto& [path, watched] : all_)
    if (!watched.is_over) try_to([&, &one = watched] { look_at(one, now); });
  try_to([&] { look_for_hang(program, now); });
  try_to([&] { execute(now); });
  try_to([&] { write_metrics(now); });
  return now_ns() + kLookNs;
}

void RecordWatch::find() {
  std::map<std::uint64_t, int> ranks;
  bool is_new = false;
  for (const RecordFile& file : recordings_in(folder_.path)) {
    auto found = all_.find(file.path);
    if (found == all_.end() && !file.is_replaced) {
      found = all_.emplace(file.path, Watched(file)).first;
      found->second.rank = rank_of_process(file.pid);
      found->second.moved_ns = now_ns();
      if (triggers_.slow_step > 0) found->second.steps.emplace(triggers_.slow_step);
      is_new = is_new || found->second.rank >= 0;
    }
    if (found == all_.end()) continue;
    if (file.is_replaced) found->second.is_over = found->second.file.is_replaced = true;
    if (found->second.rank >= 0) ranks[file.pid] = found->second.rank;
  }
  if (is_new) note_ranks(folder_, ranks);
}

void RecordWatch::look_at(Watched& watched, std::int64_t now_ns) {
  std::string reason;
  auto state = watched.recording.read(reason);
  if (!state) return;  // it is being made
  const std::uint64_t ended = ended_in(*state);
  const bool has_ended_more = !watched.is_read || ended != watched.ended;
  if (has_ended_more || state->calls() != watched.state.calls() || state->commands() != watched.state.commands())
    watched.moved_ns = now_ns;
  watched.ended = ended;
  watched.state = std::move(*state);
  if (!watched.is_read) watched.program = program_of(watched.recording.command(watched.state.header));
  watched.is_read = true;
  if (watched.state.outstanding() == 0) {
    watched.waits_since_ns = 0;
  } else if (has_ended_more || watched.waits_since_ns == 0) {
    watched.waits_since_ns = now_ns;
  }
  const bool has_metrics = !metrics_.empty();
  if (has_metrics) watched.metrics.look(watched.state, now_ns);
  if (watched.steps || (has_metrics && watched.state.header.is_exact != 0)) {
    const std::vector<RecordedEntry> entries = watched.recording.news(watched.state.header);
    if (has_metrics) watched.metrics.add(entries, watched.recording);
    const auto slow = watched.steps ? watched.steps->add(entries) : std::nullopt;
    // The earlier trace has what led to it.
    if (slow && (watched.dumped_ns == 0 || slow->ended_ns > watched.dumped_ns + kDumpedNs)) {
      const std::string name = watched.recording.text(watched.state.header, slow->name);
      dump(watched, fmt::format("a step took {}, and the median is {} (by {})", format_duration(slow->took_ns),
                                format_duration(slow->median_ns), name.empty() ? "the launches of a graph" : name));
    }
  }
  look_for_stall(watched, now_ns);
  if (const std::string message = watched.recording.text(watched.state.header, watched.state.header.message);
      !message.empty())
    say_once(fmt::format("process {}: {}", watched.file.pid, message));
  if (watched.state.state() == record::State::ended || watched.state.state() == record::State::refused ||
      !is_alive(watched.state.header))
    watched.is_over = true;
}

void RecordWatch::look_for_stall(Watched& watched, std::int64_t now_ns) {
  const bool is_stalled = triggers_.stall_ns > 0 && watched.waits_since_ns != 0 && watched.state.header.is_off == 0 &&
                          now_ns - watched.waits_since_ns >= triggers_.stall_ns;
  if (is_stalled && !watched.has_stalled)
    dump(
        watched,
        fmt::format("no command has ended for {}, and {} outstanding", format_duration(now_ns - watched.waits_since_ns),
                    watched.state.outstanding() == 1 ? "one is" : fmt::format("{} are", watched.state.outstanding())));
  watched.has_stalled = is_stalled;
}

void RecordWatch::look_for_hang(pid_t program, std::int64_t now_ns) {
  if (triggers_.hang_ns == 0 || killed_ns_ != 0) return;
  std::int64_t moved_ns = 0;
  for (const auto& [path, watched] : all_)
    if (watched.is_read && !watched.is_over && watched.state.header.is_off == 0)
      moved_ns = std::max(moved_ns, watched.moved_ns);
  if (moved_ns == 0 || now_ns - moved_ns < triggers_.hang_ns) {
    is_hang_known_ = false;
    hang_judged_ns_ = 0;
    return;
  }
  // Where nothing was stuck, it is asked again later.
  if (is_hang_known_ || now_ns - hang_judged_ns_ < triggers_.hang_ns) return;
  std::vector<RecordFile> files;
  for (const auto& [path, watched] : all_)
    if (watched.is_read && (!watched.is_over || watched.state.state() == record::State::running)) {
      files.push_back(watched.file);
      files.back().rank = watched.rank;
    }
  const GatheredHang gathered = gather_hang(files);
  const RecordedHang hang = diagnose_recordings(gathered.processes, gathered.now_ns, triggers_.hang_ns);
  hang_judged_ns_ = weir::now_ns();
  for (const std::string& note : gathered.notes) say_once(note);
  if (hang.cause == HangCause::none) return;
  is_hang_known_ = true;
  ++hangs_;
  say_(fmt::format("the program has not moved for {}\n{}", format_duration(now_ns - moved_ns), hang.text));
  if (triggers_.kills_on_hang) condemn(program, weir::now_ns());
  const std::filesystem::path file = folder_.path / (hangs_ == 1 ? "hang.txt" : fmt::format("hang-{}.txt", hangs_));
  write_file(file, hang.text + (hang.text.ends_with('\n') ? "" : "\n"), true);
  say_(fmt::format("this is kept in {}", file.string()));
}

void RecordWatch::dump_all(const std::string& reason) noexcept {
  if (recorded() == 0) try_to([&] { say_(reason + ": no process is recorded yet"); });
  for (auto& [path, watched] : all_)
    if (watched.is_read && !watched.file.is_replaced) try_to([&, &one = watched] { dump(one, reason); });
}

void RecordWatch::dump(Watched& watched, const std::string& reason) {
  // What happens to one process of a job happens to the others, too.
  watched.dumped_ns = now_ns();
  if (watched.dumped_ns - dumped_ns_ > kSameTimeNs || watched.dumps == dumps_) {
    if (dumps_ >= triggers_.dumps)
      return say_once(fmt::format("dumps were written {}, and no more will be (--dumps {})", counted(dumps_, "time"),
                                  triggers_.dumps));
    ++dumps_;  // also one that fails, which the next would do as well
  }
  watched.dumps = dumps_;
  ProfileOutput output;
  output.is_default = true;  // packed where it is large
  std::error_code ignored;
  const auto is_taken = [&] {
    return std::filesystem::exists(output.path, ignored) ||
           std::filesystem::exists(output.path.string() + ".gz", ignored);
  };
  for (int i = 1; i == 1 || is_taken(); ++i)
    output.path = folder_.path / fmt::format("{}-{}.trace.json", watched.file.pid, i);
  if (const auto made = dump_recording(watched.file, kDumpedNs, output, "")) {
    say_(fmt::format("{}: {}", reason, made->words()));
  } else {
    say_(
        fmt::format("{}: there is no trace, because nothing was recorded yet of process {}", reason, watched.file.pid));
  }
  dumped_ns_ = now_ns();
}

void RecordWatch::condemn(pid_t program, std::int64_t now_ns) {
  killed_ns_ = now_ns;
  // The program shares our process group, which must not be killed. Its children come first, while they have a parent.
  std::vector<std::uint64_t> pids = descendants_of(static_cast<std::uint64_t>(program));
  pids.push_back(static_cast<std::uint64_t>(program));
  for (const std::uint64_t pid : pids)
    if (const auto facts = facts_of(static_cast<pid_t>(pid)); facts && !facts->is_ended())
      condemned_.push_back({static_cast<pid_t>(pid), facts->started});
  say_(fmt::format("it is ended (--on-hang kill): {} {}", condemned_.size(),
                   condemned_.size() == 1 ? "process" : "processes"));
  for (const Condemned& each : condemned_) ::kill(each.pid, SIGTERM);
}

void RecordWatch::execute(std::int64_t now_ns) {
  if (killed_ns_ == 0 || now_ns - killed_ns_ < kKillGraceNs) return;
  for (const Condemned& each : condemned_)
    if (const auto facts = facts_of(each.pid); facts && facts->started == each.started) ::kill(each.pid, SIGKILL);
}

void RecordWatch::finish_kill() noexcept {
  const auto is_there = [](const Condemned& each) {
    const auto facts = facts_of(each.pid);
    return facts && facts->started == each.started && !facts->is_ended();
  };
  try_to([&] {
    const auto wait_until = [&](std::int64_t ns) {
      while (now_ns() < ns && std::any_of(condemned_.begin(), condemned_.end(), is_there)) ::usleep(20'000);
    };
    wait_until(killed_ns_ + kKillGraceNs);
    execute(killed_ns_ + kKillGraceNs);
    wait_until(now_ns() + kKillGraceNs);
  });
}

void RecordWatch::write_metrics(std::int64_t now_ns) {
  if (metrics_.empty() || (metrics_ns_ != 0 && now_ns - metrics_ns_ < interval_ns_)) return;
  metrics_ns_ = now_ns;
  std::vector<RecordFigures> figures;
  for (auto& [path, watched] : all_) {
    if (!watched.is_read || watched.is_over) continue;
    figures.push_back(watched.metrics.take());
    figures.back().program = watched.program;
    figures.back().rank = watched.rank;
  }
  write_record_metrics(metrics_, record_metrics_text(figures));
}

std::size_t RecordWatch::recorded() const noexcept {
  return static_cast<std::size_t>(std::count_if(all_.begin(), all_.end(), [](const auto& each) {
    return each.second.is_read && each.second.state.state() != record::State::refused;
  }));
}

void RecordWatch::end() noexcept {
  try_to([&] {
    find();
    for (auto& [path, watched] : all_)
      if (!watched.is_over) look_at(watched, now_ns());
    metrics_ns_ = 0;
    write_metrics(now_ns());
  });
}

}  // namespace weir
