// weir history add: adds results to the history, with the commit that they measure.
#include <fmt/format.h>

#include "base/error.h"
#include "base/git.h"
#include "cli/history_flags.h"
#include "cli/list.h"
#include "report/history/document.h"
#include "report/text/documents.h"

namespace weir::cli {
namespace {

constexpr std::size_t kLongestWord = 200;

struct HistoryAddFlags : HistoryFlags {
  std::vector<std::string> paths;
  std::string tag, commit;
  bool asks_changes = false;

  void add_to(CommandSyntax syntax) {
    syntax
        .add("results PATH", paths,
             "results, sweeps, summaries of weir bench, documents of weir channel or weir fleet probe, or folders of "
             "them; the "
             "same result "
             "is never added twice")
        .required();
    syntax.add("--tag NAME", tag, "a word to find this entry by: nightly, v1.2, ...");
    syntax.add("--commit REF", commit, "commit of the program that was measured (default: git's HEAD of this folder)");
    syntax.add(
        "--git-changes", asks_changes,
        "also note whether tracked files differ from that commit (looks at all of them, with git's filters off)");
    HistoryFlags::add_to(syntax);
  }
};

void set_commit(const HistoryAddFlags& flags, history::AddOptions& options) {
  if (!flags.commit.empty()) {
    options.commit = flags.commit;
    options.commit_basis = "given";
    return;
  }
  const auto head = git_head();
  if (!head) return;
  options.commit = head->commit;
  options.commit_basis = flags.asks_changes && has_git_changes().value_or(false) ? "git, with changes" : "git";
}

int execute_history_add(const HistoryAddFlags& flags) {
  flags.check_output();
  for (const auto& [name, text] : {std::pair("--tag", &flags.tag), std::pair("--commit", &flags.commit)})
    if (text->size() > kLongestWord) reject(fmt::format("{}: more than {} letters", name, kLongestWord));
  const std::vector<std::filesystem::path> paths(flags.paths.begin(), flags.paths.end());
  const history::Intake intake = history::read_intake(paths);
  if (!intake.refused.empty()) {
    std::string all = intake.refused[0];
    for (std::size_t i = 1; i < intake.refused.size(); ++i) all += "\n" + intake.refused[i];
    reject(all, "Nothing was added: an entry is added whole or not at all.");
  }
  history::AddOptions options;
  options.tag = flags.tag;
  set_commit(flags, options);
  history::Store store(flags.database, history::DatabaseAccess::write);
  const history::Added added = store.add(intake, options);
  const Json document = history::added_document(store, added, options, intake);
  if (!flags.is_quiet || flags.wants_json() || flags.wants_markdown() || flags.has_file())
    flags.print(document, history_report(document));
  return 0;
}

}  // namespace

CliCommand history_add() { return command("add", "put results into the history", execute_history_add); }

}  // namespace weir::cli
