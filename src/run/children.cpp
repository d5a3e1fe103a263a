#include "run/children.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "base/clock.h"
#include "base/error.h"
#include "base/private_folder.h"
#include "base/units.h"

namespace weir {
namespace {

namespace fs = std::filesystem;

constexpr double kGraceS = 3;  // between asking a child to end and killing it

void read_document(const fs::path& file, ChildOutcome& outcome) {
  try {
    outcome.document = read_json(file);
  } catch (const Error& error) {
    outcome.end = ChildEnd::failed;
    outcome.message = fmt::format("its document cannot be read: {}", error.what());
  }
}

}  // namespace

fs::path own_binary() {
  std::error_code status;
  const fs::path path = fs::read_symlink("/proc/self/exe", status);
  if (status)
    fail(fmt::format("/proc/self/exe: {}", status.message()), "Starting other processes needs a mounted /proc.");
  return path;
}

std::optional<fs::path> own_library(const char* file) {
  const fs::path folder = own_binary().parent_path();
  std::error_code ignored;
  for (const fs::path& candidate : {folder / file, folder.parent_path() / "lib" / "weir" / file})
    if (fs::exists(candidate, ignored)) return candidate;
  return std::nullopt;
}

std::string preloaded(std::string preload, std::initializer_list<const char*> libraries) {
  for (const char* const name : libraries) {
    const auto library = own_library(name);
    if (!library) continue;
    const std::string path = library->string();
    if (path.find_first_of(": ") == std::string::npos && preload.find(path) == std::string::npos)
      preload = path + (preload.empty() ? "" : ":" + preload);
  }
  return preload;
}

// weir: --streams 0: out of range
//       Use 1 to 128.
// preceded by anything that drivers or sanitizers print. Lines of the hint are joined.
ChildError child_error_in(const std::string& error_output) {
  constexpr std::string_view kMark = "weir: ";
  ChildError child_error;
  std::size_t begin = error_output.rfind("\n" + std::string(kMark));
  begin = begin == std::string::npos ? (error_output.starts_with(kMark) ? 0 : begin) : begin + 1;
  if (begin == std::string::npos) {
    // Not in Weir's format: the last line is the best guess.
    const std::size_t last = error_output.find_last_not_of("\n ");
    if (last == std::string::npos) return child_error;
    const std::size_t line = error_output.rfind('\n', last);
    child_error.message = error_output.substr(line == std::string::npos ? 0 : line + 1, last - (line + 1) + 1);
    return child_error;
  }
  std::size_t end = std::min(error_output.find('\n', begin), error_output.size());
  child_error.message = error_output.substr(begin + kMark.size(), end - begin - kMark.size());
  while (end + 1 < error_output.size() && error_output.compare(end + 1, 6, "      ") == 0) {
    const std::size_t from = end + 7;
    end = std::min(error_output.find('\n', from), error_output.size());
    if (!child_error.hint.empty()) child_error.hint += ' ';
    child_error.hint += error_output.substr(from, end - from);
  }
  return child_error;
}

ChildOutcome run_child(const ChildRequest& request, const std::atomic<bool>& stop) {
  const PrivateFolder folder;
  const bool is_private = request.folder.empty();
  const fs::path file = (is_private ? folder.path() : request.folder) / request.document;
  ProcessOptions options;
  options.command = {request.program.empty() ? own_binary().string() : request.program};
  options.command.insert(options.command.end(), request.arguments.begin(), request.arguments.end());
  options.command.insert(options.command.end(),
                         {"--quiet", request.output_flag, is_private ? file.string() : request.folder.string()});
  options.variables = request.variables;
  options.absent = request.absent;
  options.variables.emplace_back("TMPDIR", folder.path().string());  // so that nothing of a killed child is left
  options.out = ProcessOptions::Output::dropped;
  options.is_stopped = [&] { return stop.load(std::memory_order_relaxed); };
  options.grace_s = kGraceS;
  ChildOutcome outcome;
  const std::int64_t begun = now_ns();
  ChildError child_error;
  ProcessEnd end;
  try {
    Process child(std::move(options));
    end = child.finish(static_cast<double>(request.limit_ns) * 1e-9);
    child_error = child_error_in(child.output().text());
  } catch (const StartError& error) {
    end.value = kNotExecuted;
    child_error = {error.what(), error.hint};
  }
  outcome.wall_ns = now_ns() - begun;
  outcome.code = end.code();
  if (end.how == ProcessEnd::How::timed_out) {
    outcome.end = ChildEnd::timed_out;
    outcome.message =
        fmt::format("it took longer than {} and was ended", format_duration(static_cast<double>(request.limit_ns)));
  } else if (end.how == ProcessEnd::How::stopped || outcome.code == kExitInterrupted ||
             (stop.load(std::memory_order_relaxed) && outcome.code > 128)) {  // the same signal may reach both
    outcome.end = ChildEnd::interrupted;
    outcome.message = "it was interrupted";
  } else if (outcome.code == 0) {
    outcome.end = ChildEnd::done;
    read_document(file, outcome);
  } else if (!child_error.message.empty()) {
    outcome.message = child_error.message;
    outcome.hint = child_error.hint;
    std::error_code ignored;
    if (fs::exists(file, ignored)) {
      const std::string message = outcome.message;
      read_document(file, outcome);
      outcome.message = message;  // the failure, not that of reading its document
    }
  } else {
    outcome.message = outcome.code > 128 ? fmt::format("it was ended by signal {}", outcome.code - 128)
                                         : fmt::format("it ended with status {}", outcome.code);
    if (outcome.code == 128 + SIGKILL) outcome.hint = "Was it killed, or is the machine out of memory (dmesg)?";
  }
  return outcome;
}

std::optional<Json> child_document(const ChildRequest& request, const std::atomic<bool>& stop) {
  ChildOutcome outcome = run_child(request, stop);
  if (outcome.end == ChildEnd::interrupted) return std::nullopt;
  if (outcome.end == ChildEnd::done) return std::move(outcome.document);
  // If the child rejects its input, that is the user's error too. Rare, because this process checks first.
  if (outcome.code == static_cast<int>(Fault::input)) reject(outcome.message, outcome.hint);
  fail(fmt::format("a child process failed: {}", outcome.message), outcome.hint);
}

void QueueSetting::apply(int queues, ChildRequest& request) const {
  if (variable.empty()) {
    request.arguments.insert(request.arguments.end(), {"--hw-queues", std::to_string(queues)});
  } else {
    request.variables.emplace_back(variable, std::to_string(queues));
  }
}

std::string QueueSetting::text(int queues) const {
  return variable.empty() ? fmt::format("--hw-queues {}", queues) : fmt::format("{}={}", variable, queues);
}

std::string child_device(const DeviceInfo& info, const std::string& asked) {
  return info.is_virtual ? asked : info.name;
}

QueueSetting queue_setting(const DeviceInfo& info) {
  if (info.max_hardware_queues > 0) return {info.queue_variable, info.max_hardware_queues};
  reject_setting("device", info.name, "its number of hardware queues cannot be chosen", "Use a GPU, cpu or sim.");
}

}  // namespace weir
