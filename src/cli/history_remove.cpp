// weir history remove: removes an entry and its points, or all that is older than a date.
#include <fmt/format.h>

#include <ctime>

#include "base/console.h"
#include "base/error.h"
#include "base/options.h"
#include "cli/history_flags.h"
#include "cli/list.h"

namespace weir::cli {
namespace {

struct HistoryRemoveFlags {
  std::string entry, before;
  std::string database = history::kDefaultFile;
  bool is_keeping_daily = false, is_dry_run = false, is_quiet = false;

  void add_to(CommandSyntax syntax) {
    syntax.add("entry N", entry, "its number, as `weir history list` shows it");
    syntax.add("--before WHEN", before,
               "instead of an entry: everything that was measured before this day (2026-01-31) or this long ago (90d)");
    syntax.add("--keep-daily", is_keeping_daily,
               "with --before: keep the last run of each series and day, and the last probe of each node and day");
    syntax.add("--dry-run", is_dry_run, "with --before: only print what would be removed");
    syntax.add("--db PATH", database, kHistoryPlace);
    syntax.add("--quiet,-q", is_quiet, "print nothing but errors");
  }
};

// 2026-01-31 or 90d, as a time of results.
std::string time_of(const std::string& when) {
  if (history::is_time(when)) return when;
  if (history::is_time(when + "T00:00:00Z")) return when + "T00:00:00Z";
  const std::int64_t days = when.ends_with("d") ? parse_integer(when.substr(0, when.size() - 1)).value_or(0) : 0;
  if (days < 1 || days > 36'500)
    reject(fmt::format("--before {}: is neither a day nor an age", when), "Write 2026-01-31, or 90d for 90 days ago.");
  const std::time_t then = std::time(nullptr) - static_cast<std::time_t>(days) * 24 * 3600;
  std::tm utc{};
  gmtime_r(&then, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                     utc.tm_hour, utc.tm_min, utc.tm_sec);
}

std::string words_of(const history::Pruned& pruned) {
  const auto counted = [](std::size_t count, const char* one, const char* many) {
    return fmt::format("{} {}", count, count == 1 ? one : many);
  };
  return fmt::format("{}, {} and {} of which nothing is left", counted(pruned.points, "result", "results"),
                     counted(pruned.documents, "probe", "probes"), counted(pruned.entries, "entry", "entries"));
}

int remove_old(const HistoryRemoveFlags& flags) {
  history::PruneOptions options;
  options.before = time_of(flags.before);
  options.is_keeping_daily = flags.is_keeping_daily;
  if (flags.is_dry_run) {
    history::Store store(flags.database, history::DatabaseAccess::read);
    print_out("Measured before {}: {} would be removed from {}.\n", options.before,
              words_of(store.would_prune(options)), store.name());
    return 0;
  }
  history::Store(flags.database, history::DatabaseAccess::read);
  history::Store store(flags.database, history::DatabaseAccess::write);
  const history::Pruned pruned = store.prune(options);
  if (!flags.is_quiet)
    print_out("Measured before {}: {} were removed from {}.\n", options.before, words_of(pruned), store.name());
  return 0;
}

int execute_history_remove(const HistoryRemoveFlags& flags) {
  if (flags.entry.empty() == flags.before.empty())
    reject("weir history remove needs the number of an entry, or --before",
           "`weir history list` shows the numbers; --before 90d removes what is older than 90 days.");
  if (!flags.before.empty()) return remove_old(flags);
  if (flags.is_keeping_daily || flags.is_dry_run)
    reject("--keep-daily and --dry-run belong to --before", "Leave them out to remove an entry.");
  const std::int64_t entry = entry_number(flags.entry);
  // Opening for reading rejects a missing file; opening for writing would create it.
  history::Store(flags.database, history::DatabaseAccess::read);
  history::Store store(flags.database, history::DatabaseAccess::write);
  if (!store.remove(entry))
    reject(fmt::format("{}: has no entry {}", store.name(), entry), "`weir history list` shows them.");
  if (!flags.is_quiet) print_out("Entry {} was removed from {}.\n", entry, store.name());
  return 0;
}

}  // namespace

CliCommand history_remove() {
  return command("remove", "take an entry, or what is old, out of the history", execute_history_remove);
}

}  // namespace weir::cli
