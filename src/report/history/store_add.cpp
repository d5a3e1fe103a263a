// Adding to a history: whole or not at all, and once, whatever breaks in between. Knows the tables; reads no file.
#include <fmt/format.h>
#include <weir_build.h>

#include <map>
#include <set>
#include <span>

#include "base/clock.h"
#include "measure/statistics.h"
#include "report/history/packed_text.h"
#include "report/history/samples.h"
#include "report/history/store.h"

namespace weir::history {
namespace {

// For a median; a folder of a hundred results must not take a minute. The median of few samples takes few values, and a
// fleet's figures have five samples each, a hundred thousand of them in a night: 0.1 ms each instead of 0.45.
constexpr std::size_t kResamples = 2'000, kResamplesPerSample = 100;
constexpr std::size_t kAtOnce = 64;  // rows of one statement: a round trip costs more than a row

// Keys and facts are objects of strings.
std::string key_text(const std::map<std::string, std::string>& values) { return Json(values).dump(); }

std::string document_text(const Json& json) { return json.is_null() ? std::string() : json.dump(); }

struct Middle {
  std::optional<double> median, low, high;
};

Middle middle_of(const SampleSeries& series) {
  if (series.samples.empty()) return {};
  BootstrapOptions options;
  options.resamples = static_cast<int>(std::min(kResamples, kResamplesPerSample * series.samples.size()));
  Middle middle{median(series.samples), {}, {}};
  if (const auto intervals = summary_intervals(series.samples, options)) {
    middle.low = intervals->p50.low;
    middle.high = intervals->p50.high;
  }
  return middle;
}

// A point and what is computed of it before the transaction, which others wait for.
struct Prepared {
  const NewPoint* point;
  std::string conditions = {};  // digest
  Middle latency = {}, throughput = {};
};

void bind_series(Statement& statement, const SampleSeries& series, const Middle& middle) {
  statement.bind_or_null(series.unit).bind_or_null(series.reason);
  statement.bind(static_cast<std::int64_t>(series.samples.size()), middle.median, middle.low, middle.high);
  if (series.samples.empty())
    statement.bind(std::nullopt);
  else
    statement.bind_bytes(pack_samples(series.samples));
}

// Which of these texts a table has in a column, and the number beside each: one round trip for many.
std::map<std::string, std::int64_t> numbers_in(Database& database, const char* table, const char* column,
                                               const char* number, const std::vector<std::string>& texts) {
  std::map<std::string, std::int64_t> found;
  std::string marks;
  for (std::size_t i = 0; i < kAtOnce; ++i) marks += i == 0 ? "?" : ",?";
  Statement rows(database, fmt::format("SELECT {}, {} FROM {} WHERE {} IN ({})", column, number, table, column, marks));
  for (std::size_t begin = 0; begin < texts.size(); begin += kAtOnce) {
    for (std::size_t i = 0; i < kAtOnce; ++i) rows.bind(std::string_view(texts[std::min(begin + i, texts.size() - 1)]));
    while (rows.next()) found[rows.text(0)] = rows.integer(1).value_or(0);
    rows.run();
  }
  return found;
}

template <class List>
std::vector<std::string> digests_of(const List& list) {
  std::vector<std::string> digests;
  for (const auto& each : list) digests.push_back(each.digest);
  return digests;
}

std::string insert_of(std::size_t rows) {
  std::string sql =
      "INSERT INTO point(entry, machine, conditions, digest, origin, measured, weir_version, weir_commit, workload, "
      "key, failure, latency_unit, latency_reason, latency_count, latency_median, latency_low, latency_high, "
      "latency_samples, throughput_unit, throughput_reason, throughput_count, throughput_median, throughput_low, "
      "throughput_high, throughput_samples) VALUES ";
  for (std::size_t i = 0; i < rows; ++i)
    sql += fmt::format("{}(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", i == 0 ? "" : ",");
  return sql + " ON CONFLICT(digest) DO NOTHING RETURNING digest";
}

// One attempt, in one transaction.
class Adding {
 public:
  Adding(Database& database, const AddOptions& options)
      : database_(database),
        options_(options),
        transaction_(database, Writing::beside_others),
        many_(database, insert_of(kAtOnce)),
        one_(database, insert_of(1)),
        keep_(database,
              "INSERT INTO document(entry, digest, kind, subject, measured, body) VALUES (?,?,?,?,?,?) "
              "ON CONFLICT(digest) DO NOTHING RETURNING id") {}

  void add(std::span<const Prepared> points, Added& added) {
    look_up(points);
    for (std::size_t begin = 0; begin < points.size();) {
      const std::size_t count = points.size() - begin < kAtOnce ? 1 : kAtOnce;
      insert(count == 1 ? one_ : many_, points.subspan(begin, count), added);
      begin += count;
    }
  }

  void add(const NewDocument& document, Added& added) {
    keep_.bind(entry_id()).bind(document.digest, document.kind, document.subject, document.measured);
    keep_.bind_bytes(pack_text(document.text));
    if (!keep_.first_integer()) return;
    is_used_ = true;
    ++added.documents;
  }

  // Which entry it will be; call commit() then.
  void finish(Added& added) {
    if (entry_ && !is_used_) Statement(database_, "DELETE FROM entry WHERE id = ?").bind(*entry_).run();
    if (is_used_) added.entry = entry_;
    for (const std::int64_t entry : added.known_entries) known_entries_.insert(entry);
    added.known_entries.assign(known_entries_.begin(), known_entries_.end());
  }
  void commit() { transaction_.commit(); }

 private:
  // The machines and conditions of these points that exist already.
  void look_up(std::span<const Prepared> points) {
    std::set<std::string> machines, conditions;
    for (const Prepared& each : points) {
      machines.insert(each.point->machine.id);
      conditions.insert(each.conditions);
    }
    machines_ = numbers_in(database_, "machine", "fingerprint", "id", {machines.begin(), machines.end()});
    conditions_ = numbers_in(database_, "conditions", "digest", "id", {conditions.begin(), conditions.end()});
  }

  void insert(Statement& statement, std::span<const Prepared> points, Added& added) {
    for (const Prepared& prepared : points) {
      const NewPoint& point = *prepared.point;
      // In this order: each may ask the database itself.
      const std::int64_t entry = entry_id(), machine = machine_id(point.machine), conditions = conditions_id(prepared);
      statement.bind(entry, machine, conditions, point.digest, point.point.origin);
      statement.bind_or_null(point.measured).bind_or_null(point.weir_version).bind_or_null(point.weir_commit);
      statement.bind(point.point.key.at("workload"), key_text(point.point.key)).bind_or_null(point.point.failure);
      bind_series(statement, point.point.latency, prepared.latency);
      bind_series(statement, point.point.throughput, prepared.throughput);
    }
    std::set<std::string> fresh;
    while (statement.next()) fresh.insert(statement.text(0));
    statement.run();
    std::vector<std::string> known;
    for (const Prepared& prepared : points) {
      if (fresh.erase(prepared.point->digest) == 1) {
        is_used_ = true;
        ++added.points;
        if (!prepared.point->point.failure.empty()) ++added.failed;
      } else {
        known.push_back(prepared.point->digest);
      }
    }
    if (known.empty()) return;
    // Twice in this intake, or another process has added it since we looked.
    added.known += known.size();
    for (const auto& [digest, entry] : numbers_in(database_, "point", "digest", "entry", known))
      known_entries_.insert(entry);
  }

  std::int64_t entry_id() {
    if (entry_) return *entry_;
    Statement insert(database_,
                     "INSERT INTO entry(added, tag, commit_id, commit_basis, weir_version, weir_commit) "
                     "VALUES (?,?,?,?,?,?) RETURNING id");
    insert.bind(wall_time()).bind_or_null(options_.tag).bind_or_null(options_.commit);
    insert.bind_or_null(options_.commit_basis).bind(WEIR_VERSION, WEIR_COMMIT);
    entry_ = insert.first_integer();
    return entry_.value_or(0);
  }

  // The id of a row that exists once: found or made. `make` binds what it inserts.
  template <class Make>
  std::int64_t identity(std::map<std::string, std::int64_t>& seen, const std::string& key, const char* find,
                        const char* insert, const Make& make) {
    if (const auto found = seen.find(key); found != seen.end()) return found->second;
    Statement rows(database_, find);
    for (int round = 0; round < 3; ++round) {
      if (const auto id = rows.bind(std::string_view(key)).first_integer()) return seen[key] = *id;
      Statement made(database_, insert);
      make(made);
      if (const auto id = made.first_integer()) return seen[key] = *id;
    }
    throw TryAgain(fmt::format("{}: a row comes and goes", database_.name()), "Try again.", false);
  }

  std::int64_t machine_id(const Machine& machine) {
    return identity(machines_, machine.id, "SELECT id FROM machine WHERE fingerprint = ?",
                    "INSERT INTO machine(fingerprint, label, facts, serial) VALUES (?,?,?,?) "
                    "ON CONFLICT(fingerprint) DO NOTHING RETURNING id",
                    [&](Statement& insert) {
                      const auto serial = machine.facts.find("serial");
                      insert.bind(machine.id, machine.label, key_text(machine.facts));
                      insert.bind_or_null(serial == machine.facts.end() ? std::string() : serial->second);
                    });
  }

  std::int64_t conditions_id(const Prepared& prepared) {
    return identity(conditions_, prepared.conditions, "SELECT id FROM conditions WHERE digest = ?",
                    "INSERT INTO conditions(digest, device, environment) VALUES (?,?,?) "
                    "ON CONFLICT(digest) DO NOTHING RETURNING id",
                    [&](Statement& insert) {
                      insert.bind(std::string_view(prepared.conditions));
                      insert.bind_or_null(document_text(prepared.point->device));
                      insert.bind_or_null(document_text(prepared.point->environment));
                    });
  }

  Database& database_;
  const AddOptions& options_;
  Transaction transaction_;
  Statement many_, one_, keep_;
  std::optional<std::int64_t> entry_;
  bool is_used_ = false;
  std::map<std::string, std::int64_t> machines_, conditions_;  // by id and digest
  std::set<std::int64_t> known_entries_;
};

}  // namespace

Added Store::add(const Intake& intake, const AddOptions& options) {
  std::vector<Prepared> fresh;
  std::vector<const NewDocument*> documents;
  Added before;
  database_.repeated([&] {
    fresh.clear();
    documents.clear();
    before = {};
    std::set<std::int64_t> entries;
    const auto points = numbers_in(database_, "point", "digest", "entry", digests_of(intake.points));
    for (const NewPoint& point : intake.points) {
      const auto known = points.find(point.digest);
      if (known == points.end()) {
        fresh.push_back({&point});
        continue;
      }
      entries.insert(known->second);
      ++before.known;
    }
    const auto kept = numbers_in(database_, "document", "digest", "entry", digests_of(intake.documents));
    for (const NewDocument& document : intake.documents)
      if (const auto known = kept.find(document.digest); known == kept.end())
        documents.push_back(&document);
      else
        entries.insert(known->second);
    before.known_entries.assign(entries.begin(), entries.end());
  });
  if (fresh.empty() && documents.empty()) return before;
  const NewPoint* before_it = nullptr;  // points of one document share their conditions, one after the other
  for (Prepared& each : fresh) {
    const NewPoint& point = *each.point;
    each.conditions =
        before_it != nullptr && point.device == before_it->device && point.environment == before_it->environment
            ? (&each - 1)->conditions
            : digest_of(document_text(point.device) + "\n" + document_text(point.environment));
    each.latency = middle_of(point.point.latency);
    each.throughput = middle_of(point.point.throughput);
    before_it = &point;
  }
  Added attempted;  // whose commit was sent; whether it arrived is unknown if the connection broke then
  return database_.repeated([&] {
    if (attempted.entry) {
      Statement found(database_, fresh.empty() ? "SELECT entry FROM document WHERE digest = ?"
                                               : "SELECT entry FROM point WHERE digest = ?");
      found.bind(std::string_view(fresh.empty() ? documents[0]->digest : fresh[0].point->digest));
      if (found.first_integer() == attempted.entry) return attempted;
      attempted = {};
    }
    Added added = before;
    Adding adding(database_, options);
    adding.add(fresh, added);
    for (const NewDocument* const each : documents) adding.add(*each, added);
    adding.finish(added);
    attempted = added;
    adding.commit();
    return added;
  });
}

}  // namespace weir::history
