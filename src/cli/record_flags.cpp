#include "cli/record_flags.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "base/clock.h"
#include "base/console.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/process.h"
#include "run/record_live.h"

namespace weir::cli {
namespace {

constexpr std::int64_t kPatienceNs = 1'000'000'000;
constexpr useconds_t kRestUs = 1'000;

// Empty, with the reason, where nobody would obey.
std::optional<RecordedState> running(const RecordFile& file, const LiveRecording& recording, std::string& reason) {
  auto state = recording.read(reason);
  if (!state) {
    reason = fmt::format("{}: {}", file.path.string(), reason);
  } else if (state->state() == record::State::refused) {
    reason =
        fmt::format("process {} is not recorded: {}", file.pid, recording.text(state->header, state->header.message));
  } else if (!is_alive(state->header) || state->state() == record::State::ended) {
    reason = fmt::format("process {} has ended; its recording is kept", file.pid);
  }
  return reason.empty() ? state : std::nullopt;
}

// Prints what came of it; false where the program does not obey.
bool switch_one(const RecordFile& file, const LiveRecording& recording, std::optional<RecordedState> state,
                bool is_off) {
  const char* const word = is_off ? "off" : "on";
  std::string reason;
  const std::int64_t begun_ns = now_ns();
  if (!recording.want_off(is_off)) fail(fmt::format("{}: {}", file.path.string(), std::strerror(errno)));
  while ((state->header.is_off != 0) != is_off && now_ns() - begun_ns < kPatienceNs) {
    ::usleep(kRestUs);
    if (auto now = recording.read(reason)) state = std::move(now);
  }
  if ((state->header.is_off != 0) == is_off) {
    print_out("process {}: {} after {}\n", file.pid, word, format_duration(now_ns() - begun_ns));
    return true;
  }
  const std::string message = recording.text(state->header, state->header.message);
  print_err("weir: process {} has not switched {} within {}{}{}\n", file.pid, word, format_duration(kPatienceNs),
            message.empty() ? "" : ": ", message);
  return false;
}

}  // namespace

std::vector<std::filesystem::path> own_record_roots() {
  return record_roots(environment_variable("XDG_RUNTIME_DIR").value_or(""),
                      environment_variable("TMPDIR").value_or(""));
}

void RecordingFlags::add_to(CommandSyntax syntax) {
  syntax
      .add("recordings PID|FILE|FOLDER", words,
           "a process that is recorded, or its `weir record`; or recordings (*.weirrec), or folders of them")
      .required();
}

int switch_recordings(const RecordingFlags& flags, bool is_off) {
  bool is_done = true;
  std::vector<std::string> reasons;
  std::size_t running_ones = 0;
  for (const RecordFile& file : flags.files()) {
    if (file.is_replaced) continue;
    const LiveRecording recording(file.path);
    std::string reason;
    if (auto state = running(file, recording, reason)) {
      ++running_ones;
      is_done = switch_one(file, recording, std::move(state), is_off) && is_done;
    } else {
      reasons.push_back(reason);
    }
  }
  // Of a job some processes may have ended, which is no fault while others run.
  if (running_ones > 0) return is_done ? 0 : 1;
  for (const std::string& reason : reasons) print_err("weir: {}\n", reason);
  return 1;
}

}  // namespace weir::cli
