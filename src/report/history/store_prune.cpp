// Taking out of a history: one entry, or what is old. Knows the tables, and what must not stay behind.
#include <fmt/format.h>

#include "report/history/store.h"

namespace weir::history {
namespace {

constexpr const char* kOldPoints =
    "SELECT id FROM (SELECT p.id AS id, row_number() OVER (PARTITION BY p.machine, p.workload, p.key, "
    "substr(coalesce(p.measured, e.added), 1, 10) ORDER BY coalesce(p.measured, e.added) DESC, p.id DESC) AS place "
    "FROM point p JOIN entry e ON e.id = p.entry WHERE coalesce(p.measured, e.added) < ?) AS old WHERE place > ?";
constexpr const char* kOldDocuments =
    "SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY kind, subject, substr(measured, 1, 10) "
    "ORDER BY measured DESC, id DESC) AS place FROM document WHERE measured < ?) AS old WHERE place > ?";

std::size_t count(Statement& statement) {
  return static_cast<std::size_t>(std::max<std::int64_t>(0, statement.first_integer().value_or(0)));
}

Statement& bind_old(Statement& statement, const PruneOptions& options) {
  return statement.bind(std::string_view(options.before)).bind(std::int64_t{options.is_keeping_daily ? 1 : 0});
}

// Entries of which nothing is left, and what no point refers to. Returns how many entries.
std::size_t remove_unused(Database& database) {
  constexpr const char* kUnused =
      "NOT EXISTS (SELECT 1 FROM point WHERE point.entry = entry.id) AND NOT EXISTS "
      "(SELECT 1 FROM document WHERE document.entry = entry.id)";
  Statement unused(database, fmt::format("SELECT count(*) FROM entry WHERE {}", kUnused));
  const std::size_t entries = count(unused);
  Statement(database, fmt::format("DELETE FROM entry WHERE {}", kUnused)).run();
  Statement(database, "DELETE FROM machine WHERE NOT EXISTS (SELECT 1 FROM point WHERE point.machine = machine.id)")
      .run();
  Statement(database,
            "DELETE FROM conditions WHERE NOT EXISTS (SELECT 1 FROM point WHERE point.conditions = conditions.id)")
      .run();
  return entries;
}

}  // namespace

bool Store::remove(std::int64_t entry) {
  bool is_attempted = false;
  return database_.repeated([&] {
    Transaction transaction(database_);
    Statement found(database_, "SELECT 1 FROM entry WHERE id = ?");
    // After a commit whose answer was lost, it is gone because of us.
    if (!found.bind(entry).first_integer()) return is_attempted;
    Statement(database_, "DELETE FROM point WHERE entry = ?").bind(entry).run();
    Statement(database_, "DELETE FROM document WHERE entry = ?").bind(entry).run();
    remove_unused(database_);
    is_attempted = true;
    transaction.commit();
    return true;
  });
}

Pruned Store::would_prune(const PruneOptions& options) {
  Pruned pruned;
  Statement points(database_, fmt::format("SELECT count(*) FROM ({}) AS counted", kOldPoints));
  pruned.points = count(bind_old(points, options));
  if (database_.version() < 2) return pruned;
  Statement documents(database_, fmt::format("SELECT count(*) FROM ({}) AS counted", kOldDocuments));
  pruned.documents = count(bind_old(documents, options));
  Statement entries(database_,
                    fmt::format("SELECT count(*) FROM entry WHERE NOT EXISTS (SELECT 1 FROM point WHERE point.entry = "
                                "entry.id AND point.id NOT IN ({})) AND NOT EXISTS (SELECT 1 FROM document WHERE "
                                "document.entry = entry.id AND document.id NOT IN ({}))",
                                kOldPoints, kOldDocuments));
  bind_old(entries, options);
  pruned.entries = count(bind_old(entries, options));
  return pruned;
}

Pruned Store::prune(const PruneOptions& options) {
  return database_.repeated([&] {
    Transaction transaction(database_);
    Pruned pruned = would_prune(options);
    Statement points(database_, fmt::format("DELETE FROM point WHERE id IN ({})", kOldPoints));
    bind_old(points, options).run();
    Statement documents(database_, fmt::format("DELETE FROM document WHERE id IN ({})", kOldDocuments));
    bind_old(documents, options).run();
    pruned.entries = remove_unused(database_);
    transaction.commit();
    return pruned;
  });
}

}  // namespace weir::history
