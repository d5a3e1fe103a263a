// weir sched top: a live view of the daemon's clients: full-screen on a terminal, elsewhere one table after another.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/clock.h"
#include "base/console.h"
#include "base/error.h"
#include "cli/flag_values.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/sched_flags.h"
#include "lab/watch/screen.h"
#include "report/text/documents.h"
#include "submit/sched/ask.h"
#include "weir_build.h"

namespace weir::cli {
namespace {

constexpr std::int64_t kMinIntervalNs = 50'000'000, kMaxIntervalNs = 3600'000'000'000;
constexpr std::int64_t kFirstTableNs = 200'000'000;  // so that the first rates do not take a long interval
constexpr std::int64_t kStepNs = 20'000'000;         // longest delay in noticing Ctrl-C

struct SchedTopFlags {
  SocketFlag socket;
  std::string interval = "1s", iterations;
  bool is_once = false, is_plain = false;

  void add_to(CommandSyntax syntax) {
    socket.add_to(syntax);
    syntax.add("--interval DURATION", interval, "from table to table: 500ms, 1s");
    syntax.add("--iterations N", iterations, "stop after N tables (default: until stopped)");
    syntax.add("--once", is_once, "one table, of what happened in a moment, and end");
    syntax.add("--plain", is_plain, "one table after another, also on a terminal");
  }
};

std::uint64_t table_count_of(const SchedTopFlags& flags) {
  if (flags.is_once && !flags.iterations.empty())
    reject(fmt::format("--iterations {}: --once is one table", flags.iterations), "Leave one of them out.");
  if (flags.iterations.empty()) return flags.is_once ? 1 : UINT64_MAX;
  return static_cast<std::uint64_t>(
      whole_number("--iterations", flags.iterations, 1, INT64_MAX, "not a count", "Use 1 or more."));
}

// Returns false where the user asked to end meanwhile.
bool pause_until(std::int64_t end_ns, const std::atomic<bool>& stop) {
  while (!stop.load(std::memory_order_relaxed)) {
    const std::int64_t left = end_ns - now_ns();
    if (left <= 0) return true;
    std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(left, kStepNs)));
  }
  return false;
}

int print_tables(const SchedTopFlags& flags, std::int64_t interval_ns, std::uint64_t count) {
  const std::atomic<bool>& stop = catch_interrupts();
  const std::filesystem::path socket = flags.socket.path();
  Json before = scheduler::ask_status(socket);
  std::int64_t next = now_ns() + std::min(interval_ns, kFirstTableNs);
  for (std::uint64_t i = 0; i < count; ++i, next += interval_ns) {
    if (!pause_until(next, stop)) return kExitInterrupted;
    Json status = scheduler::ask_status(socket);
    print_out("{}{}", i == 0 ? "" : "\n", report_text(sched_status_report(status, before)));
    if (!flush_out()) break;
    before = std::move(status);
  }
  return 0;
}

watch::Grid picture(const std::string& text, int width, int height) {
  watch::Grid grid(width, height);
  std::size_t begin = 0;
  for (int y = 0; y < height - 1 && begin < text.size(); ++y) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    grid.put(0, y, std::string_view(text).substr(begin, end - begin),
             y == 0 ? watch::Style::bold : watch::Style::plain);
    begin = end + 1;
  }
  if (height > 0) grid.put(0, height - 1, "q quits", watch::Style::dim);
  return grid;
}

int show_live(const SchedTopFlags& flags, std::int64_t interval_ns, std::uint64_t count) {
  const std::filesystem::path socket = flags.socket.path();
  Json before = scheduler::ask_status(socket);
  watch::keep_screen_signals();
  watch::Screen screen(environment_variable("TERM"));
  std::string text = report_text(sched_status_report(before));
  std::int64_t next = now_ns() + std::min(interval_ns, kFirstTableNs);
  for (std::uint64_t shown = 0;;) {
    if (now_ns() >= next) {
      Json status = scheduler::ask_status(socket);
      text = report_text(sched_status_report(status, before));
      before = std::move(status);
      next = now_ns() + interval_ns;
      ++shown;
    }
    screen.draw(picture(text, screen.width(), screen.height()));
    if (shown >= count) break;
    for (const watch::Key key : screen.await(-1)) {
      if (key == watch::Key::quit) return 0;
      if (key == watch::Key::redraw) screen.redraw();
    }
    if (screen.is_ended()) break;
  }
  return screen.signal() != 0 ? kExitInterrupted : 0;
}

int execute_sched_top(const SchedTopFlags& flags) {
  const std::int64_t interval_ns = duration_of("--interval", flags.interval, kMinIntervalNs, kMaxIntervalNs);
  const std::uint64_t count = table_count_of(flags);
  const bool is_terminal = ::isatty(STDOUT_FILENO) == 1 && ::isatty(STDIN_FILENO) == 1;
  if (is_terminal && WEIR_HAVE_NCURSES != 0 && !flags.is_once && !flags.is_plain)
    return show_live(flags, interval_ns, count);
  return print_tables(flags, interval_ns, count);
}

}  // namespace

CliCommand sched_top() {
  return command("top", "live view of clients: share of the device, launches, waiting", execute_sched_top);
}

}  // namespace weir::cli
