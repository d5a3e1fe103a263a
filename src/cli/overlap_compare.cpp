// weir overlap compare: two runs of `weir overlap`, by the statistics of `weir compare`.
#include "lab/overlap/overlap_compare.h"

#include <string>

#include "cli/compare_flags.h"
#include "cli/list.h"

namespace weir::cli {
namespace {

struct Flags {
  std::string baseline, test;
  CompareFlags compare;

  void add_to(CommandSyntax syntax) {
    syntax.add("baseline", baseline, "folder or summary.json to compare with").required();
    syntax.add("test", test, "folder or summary.json to judge").required();
    compare.add_to(syntax);
  }
};

int execute(const Flags& flags) {
  const CompareOptions options = flags.compare.options();
  return flags.compare.print(compare_overlap(load_overlap(flags.baseline), load_overlap(flags.test), options),
                             "weir overlap compare");
}

}  // namespace

CliCommand overlap_compare() {
  return command("compare", "say whether a run hides less, or takes longer, than its baseline", execute);
}

}  // namespace weir::cli
