// weir amd compare: two programs and their hardware queues, from logs, captures or timelines.
#include <fmt/format.h>

#include "amd/compare/case_document.h"
#include "amd/compare/case_load.h"
#include "base/json.h"
#include "cli/document_output.h"
#include "cli/list.h"
#include "cli/process.h"
#include "report/text/documents.h"

namespace weir::cli {
namespace {

struct AmdCompareFlags : DocumentOutput {
  std::string a, b;

  void add_to(CommandSyntax syntax) {
    constexpr const char* kHelp =
        "a runtime log, a folder of `weir amd capture`, a report of `weir amd log --json`, or a timeline "
        "(`weir profile WORKLOAD -o FILE`, or any trace that `weir analyze` reads)";
    syntax.add("A FILE", a, fmt::format("the urgent case: {}", kHelp)).required();
    syntax.add("B FILE", b, "the case that may wait, likewise").required();
    DocumentOutput::add_to(syntax);
    syntax.footer("Exit code: 0, whatever differs; 2 bad input.");
  }
};

int execute_amd_compare(const AmdCompareFlags& flags) {
  flags.check_output();
  const std::atomic<bool>& stop = catch_interrupts();
  ProgressLine line(flags.is_quiet);
  amd::CaseLoadOptions options;
  options.stop = &stop;
  options.import.progress = [&] {
    if (stop.load(std::memory_order_relaxed)) throw Interrupted{};
  };
  Json document;
  try {
    line.show("reading", 0, 2);
    const amd::CaseSide a = amd::load_case(flags.a, options);
    line.show("reading", 1, 2);
    const amd::CaseSide b = amd::load_case(flags.b, options);
    if (stop.load(std::memory_order_relaxed)) throw Interrupted{};
    document = amd::case_comparison(a, b);
  } catch (const Interrupted&) {
    line.clear();
    return kExitInterrupted;
  }
  line.clear();
  flags.print(document, amd_compare_report(document));
  return 0;
}

}  // namespace

CliCommand amd_compare() { return command("compare", "two programs and their hardware queues", execute_amd_compare); }

}  // namespace weir::cli
