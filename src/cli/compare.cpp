// weir compare: reads result files, compares, prints, and turns the verdict into the exit code.
#include "run/compare.h"

#include <string>
#include <vector>

#include "cli/compare_flags.h"
#include "cli/list.h"
#include "run/load.h"

namespace weir::cli {
namespace {

struct Flags {
  std::string baseline;
  std::vector<std::string> tests;
  CompareFlags compare;

  void add_to(CommandSyntax syntax) {
    syntax.add("--baseline FILE", baseline, "Result, sweep or folder to compare with").required();
    syntax.add("--test FILE", tests, "One or more results, sweeps or folders to judge").required().takes_several();
    compare.add_to(syntax);
  }
};

int execute(const Flags& flags) {
  const CompareOptions options = flags.compare.options();
  const ResultFile baseline = load_results(flags.baseline);
  std::vector<ResultFile> tests;
  for (const std::string& test : flags.tests) tests.push_back(load_results(test));
  return flags.compare.print(compare_results(baseline, tests, options), "weir compare");
}

}  // namespace

CliCommand compare() {
  return command("compare", "Say whether a run is slower, faster or the same as its baseline", execute);
}

}  // namespace weir::cli
