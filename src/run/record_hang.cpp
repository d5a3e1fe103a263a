#include "run/record_hang.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/options.h"
#include "base/process.h"
#include "base/text_gate.h"
#include "run/record_live.h"

namespace weir {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kStacksPatienceNs = 3'000'000'000;
constexpr useconds_t kStacksRestUs = 20'000;
// A recording from elsewhere whose library wrote this much earlier than the newest of them is of a dead program.
constexpr std::int64_t kDeadAfterNs = 10'000'000'000;
constexpr std::size_t kMostProcesses = 100'000;

std::string proc_file(std::uint64_t pid, const char* name) {
  return read_kernel_file(fmt::format("/proc/{}/{}", pid, name), std::size_t{1} << 20);
}

// What launchers set, in the environment that the process was started with.
std::optional<std::string> variable_of(const std::string& environment, std::string_view name) {
  for (std::size_t begin = 0; begin < environment.size();) {
    const std::size_t end = std::min(environment.find('\0', begin), environment.size());
    const std::string_view line = std::string_view(environment).substr(begin, end - begin);
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == '=')
      return std::string(line.substr(name.size() + 1));
    begin = end + 1;
  }
  return std::nullopt;
}

int rank_in(const std::string& environment) {
  for (const char* const name : {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (const auto value = variable_of(environment, name))
      if (const auto rank = parse_integer(*value); rank && *rank >= 0 && *rank <= INT32_MAX)
        return static_cast<int>(*rank);
  return -1;
}

// How many filters of system calls (seccomp) a process has; 0 where that is not known.
std::int64_t filters_of(const std::string& pid) {
  constexpr std::string_view kName = "\nSeccomp_filters:\t";
  const std::string status = read_kernel_file("/proc/" + pid + "/status", std::size_t{1} << 20);
  const std::size_t at = status.find(kName);
  if (at == std::string::npos) return 0;
  const std::size_t begin = at + kName.size();
  return parse_integer(status.substr(begin, status.find('\n', begin) - begin)).value_or(0);
}

struct Asked {
  LiveRecording recording;
  RecordedState state;
  std::string environment;
  bool is_alive = false;
  std::uint32_t request = 0;  // 0: no stacks can be asked for
};

std::optional<Asked> ask(const RecordFile& file, std::vector<std::string>& notes) {
  LiveRecording recording(file.path);
  std::string reason;
  auto state = recording.read(reason);
  if (!state) {
    notes.push_back(fmt::format("{}: {}", file.path.string(), reason));
    return std::nullopt;
  }
  Asked asked{std::move(recording), std::move(*state), {}, false, 0};
  asked.is_alive = file.is_ours && is_alive(asked.state.header) && !file.is_replaced;
  if (!asked.is_alive) return asked;
  asked.environment = proc_file(asked.state.header.pid, "environ");
  // Others have no handler for the signal that asks threads.
  if (!variable_of(asked.environment, record::kHangVariable)) {
    notes.push_back(
        fmt::format("process {}: no stacks, because it was started without --hang-timeout", asked.state.header.pid));
    return asked;
  }
  // A program in a sandbox of its own may be killed for opening the files that stacks are made of. One that is in the
  // container's alone has as many as this process.
  if (filters_of(std::to_string(asked.state.header.pid)) > filters_of("self")) {
    notes.push_back(fmt::format("process {} forbids itself system calls (seccomp): its stacks are not asked for",
                                asked.state.header.pid));
    return asked;
  }
  const std::uint32_t request = std::max(asked.state.header.stacks_wanted, asked.state.header.stacks_given) + 1;
  if (asked.recording.want_stacks(request)) asked.request = request;
  return asked;
}

// Others may have asked meanwhile.
bool has_reached(std::uint32_t given, std::uint32_t request) noexcept {
  return static_cast<std::int32_t>(given - request) >= 0;
}

void await_stacks(std::vector<Asked>& all) {
  const std::int64_t limit_ns = now_ns() + kStacksPatienceNs;
  std::string ignored;
  const auto has_given = [&](Asked& each) {
    if (each.request == 0 || has_reached(each.state.header.stacks_given, each.request)) return true;
    if (auto state = each.recording.read(ignored)) each.state = std::move(*state);
    return has_reached(each.state.header.stacks_given, each.request);
  };
  while (now_ns() < limit_ns && !std::all_of(all.begin(), all.end(), has_given)) ::usleep(kStacksRestUs);
}

void shift(std::int64_t& time_ns, std::int64_t by_ns) {
  // Numbers come from the file; 0 means that there is no time.
  if (time_ns > 0)
    time_ns = static_cast<std::int64_t>(static_cast<std::uint64_t>(time_ns) + static_cast<std::uint64_t>(by_ns));
}

// Each machine's clock began at another moment, so that only the time since 1970 joins them.
void move_times(Recording& recording, std::int64_t by_ns) {
  if (by_ns == 0) return;
  for (std::int64_t* const time : {&recording.header.started_ns, &recording.header.beat_ns, &recording.header.ended_ns})
    shift(*time, by_ns);
  for (record::Thread& thread : recording.threads) shift(thread.started_ns, by_ns);
  for (record::Stream& stream : recording.streams) {
    shift(stream.submitted_ns, by_ns);
    shift(stream.ended_ns, by_ns);
  }
  for (RecordedEntry& entry : recording.entries) {
    shift(entry.started_ns, by_ns);
    shift(entry.ended_ns, by_ns);
  }
}

std::vector<RecordedChild> children_of(std::uint64_t pid, std::span<const RecordFile> files) {
  std::vector<RecordedChild> children;
  for (const std::uint64_t child : descendants_of(pid)) {
    const bool is_recorded =
        std::any_of(files.begin(), files.end(), [&](const RecordFile& file) { return file.pid == child; });
    const auto facts = facts_of(static_cast<pid_t>(child));
    if (is_recorded || !facts) continue;
    std::string name = proc_file(child, "comm");
    while (name.ends_with('\n')) name.pop_back();
    children.push_back({child, facts->state, for_line(name)});
  }
  return children;
}

std::string name_of(std::uint64_t pid, int rank) {
  return rank < 0 ? fmt::format("process {}", pid) : fmt::format("rank {} (process {})", rank, pid);
}

// Time since 1970 at the zero of a recording's clock.
std::int64_t epoch_of(const record::Header& header) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(header.unix_ns) -
                                   static_cast<std::uint64_t>(header.started_ns));
}

}  // namespace

std::vector<std::uint64_t> descendants_of(std::uint64_t pid, const std::string& proc) {
  std::map<std::uint64_t, std::vector<std::uint64_t>> by_parent;
  std::error_code status;
  std::size_t count = 0;
  for (fs::directory_iterator entry(proc, status);
       !status && entry != fs::directory_iterator() && ++count < kMostProcesses; entry.increment(status)) {
    const auto number = parse_integer(entry->path().filename().string());
    if (!number || *number <= 0 || *number > INT32_MAX) continue;
    const auto facts = facts_of(static_cast<pid_t>(*number), proc);
    if (facts && facts->parent > 0)
      by_parent[static_cast<std::uint64_t>(facts->parent)].push_back(static_cast<std::uint64_t>(*number));
  }
  std::vector<std::uint64_t> all = by_parent[pid];
  // A process has one parent, so this ends, also where processes came and went while we looked.
  for (std::size_t i = 0; i < all.size() && all.size() < kMostProcesses; ++i)
    for (const std::uint64_t child : by_parent[all[i]])
      if (std::find(all.begin(), all.end(), child) == all.end()) all.push_back(child);
  return all;
}

int rank_of_process(std::uint64_t pid) { return rank_in(proc_file(pid, "environ")); }

GatheredHang gather_hang(std::span<const RecordFile> files) {
  GatheredHang gathered;
  std::vector<Asked> asked;
  std::vector<const RecordFile*> sources;
  for (const RecordFile& file : files) {
    if (file.is_replaced) continue;
    if (auto one = ask(file, gathered.notes)) {
      asked.push_back(std::move(*one));
      sources.push_back(&file);
    }
  }
  await_stacks(asked);
  // Of this machine where any of them is from here, so that its times stay as they are.
  std::optional<std::int64_t> epoch_ns;
  for (std::size_t i = 0; i < asked.size(); ++i)
    if (!epoch_ns && (asked[i].is_alive || sources[i]->is_ours)) epoch_ns = epoch_of(asked[i].state.header);
  std::int64_t newest_beat_ns = 0;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    HangedProcess process;
    try {
      process.recording = read_recording(sources[i]->path);
    } catch (const Error& error) {
      gathered.notes.emplace_back(error.what());
      continue;
    }
    const record::Header& header = process.recording.header;
    if (!epoch_ns) epoch_ns = epoch_of(header);
    const bool is_elsewhere = !asked[i].is_alive && !sources[i]->is_ours;
    if (is_elsewhere)
      move_times(process.recording, static_cast<std::int64_t>(static_cast<std::uint64_t>(epoch_of(header)) -
                                                              static_cast<std::uint64_t>(*epoch_ns)));
    if (asked[i].request != 0 && has_reached(header.stacks_given, asked[i].request))
      process.stacks = process.recording.text(header.stacks);
    // From elsewhere: whatever was asked for before the file was copied.
    if (is_elsewhere && header.stacks_given != 0) process.stacks = process.recording.text(header.stacks);
    process.stacks.resize(process.stacks.find_last_not_of(' ') + 1);  // its place is larger
    process.is_alive = asked[i].is_alive || is_elsewhere;
    process.rank = asked[i].is_alive ? rank_in(asked[i].environment) : sources[i]->rank;
    process.name = name_of(header.pid, process.rank);
    if (asked[i].is_alive) {
      process.children = children_of(header.pid, files);
      if (const auto facts = facts_of(static_cast<pid_t>(header.pid))) process.state = facts->state;
    }
    newest_beat_ns = std::max(newest_beat_ns, header.beat_ns);
    gathered.processes.push_back(std::move(process));
  }
  const bool has_living = std::any_of(asked.begin(), asked.end(), [](const Asked& each) { return each.is_alive; });
  gathered.now_ns = has_living ? now_ns() : newest_beat_ns;
  for (HangedProcess& process : gathered.processes)
    if (!has_living && process.recording.header.beat_ns < newest_beat_ns - std::min(newest_beat_ns, kDeadAfterNs))
      process.is_alive = false;
  return gathered;
}

}  // namespace weir
