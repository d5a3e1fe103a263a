// weir sched stop: ends the daemon; its clients continue unscheduled.
#include <fmt/format.h>

#include "base/console.h"
#include "cli/list.h"
#include "cli/sched_flags.h"
#include "submit/sched/ask.h"

namespace weir::cli {
namespace {

struct SchedStopFlags {
  SocketFlag socket;
  bool is_quiet = false;

  void add_to(CommandSyntax syntax) {
    socket.add_to(syntax);
    syntax.add("--quiet,-q", is_quiet, "print nothing but errors");
  }
};

int execute_sched_stop(const SchedStopFlags& flags) {
  const std::filesystem::path socket = flags.socket.path();
  const Json status = scheduler::ask_status(socket);
  scheduler::ask_stop(socket);
  const std::size_t clients = status.contains("clients") ? status["clients"].size() : 0;
  if (!flags.is_quiet)
    print_out("Stopped.{}\n", clients == 0   ? ""
                              : clients == 1 ? " One client runs on unscheduled."
                                             : fmt::format(" {} clients run on unscheduled.", clients));
  return 0;
}

}  // namespace

CliCommand sched_stop() {
  return command("stop", "end the daemon; its clients run on unscheduled", execute_sched_stop);
}

}  // namespace weir::cli
