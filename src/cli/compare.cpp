// weir compare: reads result files, compares, prints, and turns the verdict into the exit code.
#include "run/compare.h"

#include <memory>
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
};

int execute(const Flags& flags) {
  const CompareOptions options = flags.compare.options();
  const ResultFile baseline = load_results(flags.baseline);
  std::vector<ResultFile> tests;
  for (const std::string& test : flags.tests) tests.push_back(load_results(test));
  return flags.compare.tell(compare_results(baseline, tests, options), "weir compare");
}

}  // namespace

CliCommand compare() {
  return {
      "compare", "Say whether a run is slower, faster or the same as its baseline",
      [](CommandSyntax syntax) -> std::function<int()> {
        const auto flags = std::make_shared<Flags>();
        syntax.add("--baseline", flags->baseline, "Result, sweep or folder to compare with").required().takes("FILE");
        syntax.add("--test", flags->tests, "One or more results, sweeps or folders to judge")
            .required()
            .takes_several()
            .takes("FILE");
        flags->compare.add_to(syntax);
        return [flags] { return execute(*flags); };
      }};
}

}  // namespace weir::cli
