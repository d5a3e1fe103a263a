// weir amd compare: two programs and their hardware queues, from logs, captures or timelines.
#include "report/amd_compare.h"

#include <fmt/format.h>

#include "amd/case_document.h"
#include "amd/case_load.h"
#include "base/json.h"
#include "cli/list.h"
#include "cli/process.h"

namespace weir::cli {
namespace {

struct Flags {
  std::string a, b;
  std::string report = "text";
  std::string output;
  bool is_forced = false, is_quiet = false;
};

int execute(const Flags& flags) {
  if (!flags.output.empty()) check_writable(flags.output, flags.is_forced);
  const std::atomic<bool>& stop = catch_interrupts();
  ProgressLine line(flags.is_quiet);
  struct Interrupted {};
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
  const std::string text = flags.report == "json"       ? to_text(document)
                           : flags.report == "markdown" ? amd_compare_markdown(document)
                                                        : amd_compare_text(document);
  if (flags.output.empty()) {
    fmt::print("{}", text);
    return 0;
  }
  write_file(flags.output, text, flags.is_forced);
  if (!flags.is_quiet) fmt::print("Written to {}\n", flags.output);
  return 0;
}

}  // namespace

CliCommand amd_compare() {
  return {
      "compare", "two programs and their hardware queues", [](CLI::App& app) -> std::function<int()> {
        const auto flags = std::make_shared<Flags>();
        constexpr const char* kHelp =
            "a runtime log, a folder of `weir amd capture`, a report of `weir amd log --report json`, or a timeline "
            "(`weir profile WORKLOAD -o FILE`, or any trace that `weir analyze` reads)";
        app.add_option("A", flags->a, fmt::format("the urgent case: {}", kHelp))->required()->type_name("FILE");
        app.add_option("B", flags->b, "the case that may wait, likewise")->required()->type_name("FILE");
        app.add_option("--report", flags->report, "how to tell it")
            ->capture_default_str()
            ->check(CLI::IsMember({"text", "markdown", "json"}));
        app.add_option("--output,-o", flags->output, "write the report to this file")->type_name("FILE");
        app.add_flag("--force", flags->is_forced, "replace a file that exists");
        app.add_flag("--quiet,-q", flags->is_quiet, "no progress, no names of files written");
        app.footer("Exit code: 0, whatever differs; 2 bad input.");
        return [flags] { return execute(*flags); };
      }};
}

}  // namespace weir::cli
