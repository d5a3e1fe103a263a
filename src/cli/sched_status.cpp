// weir sched status: who has a seat at the daemon, who waits for whom, and what each has used.
#include "cli/list.h"
#include "cli/sched_flags.h"
#include "cli/telling.h"
#include "report/text/documents.h"
#include "submit/sched/ask.h"

namespace weir::cli {
namespace {

struct Flags {
  SocketFlag socket;
  Telling telling;
};

int execute(const Flags& flags) {
  flags.telling.check_output();
  const Json status = scheduler::ask_status(flags.socket.path());
  flags.telling.tell(status, sched_status_report(status));
  return 0;
}

}  // namespace

CliCommand sched_status() {
  return {"status", "who has a seat, who waits for whom, what each has used",
          [](CommandSyntax syntax) -> std::function<int()> {
            const auto flags = std::make_shared<Flags>();
            flags->socket.add_to(syntax);
            flags->telling.add_to(syntax);
            return [flags] { return execute(*flags); };
          }};
}

}  // namespace weir::cli
