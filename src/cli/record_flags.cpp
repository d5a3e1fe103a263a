#include "cli/record_flags.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

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

// Prints what came of it; false where the program does not obey.
bool switch_one(const RecordFile& file, bool is_off) {
  const LiveRecording recording(file.path);
  const char* const word = is_off ? "off" : "on";
  std::string reason;
  auto state = recording.read(reason);
  if (!state) fail(fmt::format("{}: {}", file.path.string(), reason));
  if (state->state() == record::State::refused) {
    print_err("weir: process {} is not recorded: {}\n", file.pid, recording.text(state->header, state->header.message));
    return false;
  }
  if (!is_alive(state->header) || state->state() == record::State::ended) {
    print_err("weir: process {} has ended; its recording is kept\n", file.pid);
    return false;
  }
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
  for (const RecordFile& file : flags.files())
    if (!file.is_replaced) is_done = switch_one(file, is_off) && is_done;
  return is_done ? 0 : 1;
}

}  // namespace weir::cli
