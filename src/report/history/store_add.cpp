// Adding to a history: whole or not at all, and once, whatever breaks in between. Knows the tables; reads no file.
#include <fmt/format.h>
#include <weir_build.h>

#include <map>
#include <set>

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
constexpr std::size_t kAtOnce = 64;

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
  Middle latency, throughput;
};

void bind_series(Statement& statement, const SampleSeries& series, const Middle& middle) {
  statement.bind_or_null(series.unit).bind_or_null(series.reason);
  statement.bind(static_cast<std::int64_t>(series.samples.size()), middle.median, middle.low, middle.high);
  if (series.samples.empty())
    statement.bind(std::nullopt);
  else
    statement.bind_bytes(pack_samples(series.samples));
}

// Digests of a table that exist already, with their entries.
template <class List, class Digest>
std::map<std::string, std::int64_t> known_in(Database& database, const char* table, const List& list, Digest digest) {
  std::map<std::string, std::int64_t> known;
  std::string marks;
  for (std::size_t i = 0; i < kAtOnce; ++i) marks += i == 0 ? "?" : ",?";
  Statement rows(database, fmt::format("SELECT digest, entry FROM {} WHERE digest IN ({})", table, marks));
  for (std::size_t begin = 0; begin < list.size(); begin += kAtOnce) {
    for (std::size_t i = 0; i < kAtOnce; ++i)
      rows.bind(std::string_view(digest(list[std::min(begin + i, list.size() - 1)])));
    while (rows.next()) known[rows.text(0)] = rows.integer(1).value_or(0);
    rows.run();
  }
  return known;
}

// One attempt, in one transaction.
class Adding {
 public:
  Adding(Database& database, const AddOptions& options)
      : database_(database),
        options_(options),
        transaction_(database, Writing::beside_others),
        insert_(database,
                "INSERT INTO point(entry, machine, conditions, digest, origin, measured, weir_version, weir_commit, "
                "workload, key, failure, latency_unit, latency_reason, latency_count, latency_median, latency_low, "
                "latency_high, latency_samples, throughput_unit, throughput_reason, throughput_count, "
                "throughput_median, throughput_low, throughput_high, throughput_samples) "
                "VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT(digest) DO NOTHING "
                "RETURNING id"),
        entry_of_point_(database, "SELECT entry FROM point WHERE digest = ?"),
        keep_(database,
              "INSERT INTO document(entry, digest, kind, subject, measured, body) VALUES (?,?,?,?,?,?) "
              "ON CONFLICT(digest) DO NOTHING RETURNING id") {}

  void add(const Prepared& prepared, Added& added) {
    const NewPoint& point = *prepared.point;
    const std::int64_t entry = entry_id();
    insert_.bind(entry, machine_id(point.machine), conditions_id(point), point.digest, point.point.origin);
    insert_.bind_or_null(point.measured).bind_or_null(point.weir_version).bind_or_null(point.weir_commit);
    insert_.bind(point.point.key.at("workload"), key_text(point.point.key)).bind_or_null(point.point.failure);
    bind_series(insert_, point.point.latency, prepared.latency);
    bind_series(insert_, point.point.throughput, prepared.throughput);
    if (insert_.first_integer()) {
      is_used_ = true;
      ++added.points;
      if (!point.point.failure.empty()) ++added.failed;
      return;
    }
    // Twice in this intake, or another process has added it since we looked.
    ++added.known;
    if (const auto known = entry_of_point_.bind(std::string_view(point.digest)).first_integer())
      known_entries_.insert(*known);
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

  std::int64_t conditions_id(const NewPoint& point) {
    // Points of one document share them, one after the other.
    if (conditions_ && point.device == device_ && point.environment == environment_) return *conditions_;
    device_ = point.device;
    environment_ = point.environment;
    const std::string device = document_text(point.device), environment = document_text(point.environment);
    const std::string digest = digest_of(device + "\n" + environment);
    conditions_ = identity(all_conditions_, digest, "SELECT id FROM conditions WHERE digest = ?",
                           "INSERT INTO conditions(digest, device, environment) VALUES (?,?,?) "
                           "ON CONFLICT(digest) DO NOTHING RETURNING id",
                           [&](Statement& insert) {
                             insert.bind(std::string_view(digest)).bind_or_null(device).bind_or_null(environment);
                           });
    return *conditions_;
  }

  Database& database_;
  const AddOptions& options_;
  Transaction transaction_;
  Statement insert_, entry_of_point_, keep_;
  std::optional<std::int64_t> entry_, conditions_;
  bool is_used_ = false;
  Json device_, environment_;
  std::map<std::string, std::int64_t> machines_, all_conditions_;
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
    const auto points = known_in(database_, "point", intake.points, [](const NewPoint& each) { return each.digest; });
    for (const NewPoint& point : intake.points) {
      const auto known = points.find(point.digest);
      if (known == points.end()) {
        fresh.push_back({&point, {}, {}});
        continue;
      }
      entries.insert(known->second);
      ++before.known;
    }
    const auto kept =
        known_in(database_, "document", intake.documents, [](const NewDocument& each) { return each.digest; });
    for (const NewDocument& document : intake.documents)
      if (const auto known = kept.find(document.digest); known == kept.end())
        documents.push_back(&document);
      else
        entries.insert(known->second);
    before.known_entries.assign(entries.begin(), entries.end());
  });
  if (fresh.empty() && documents.empty()) return before;
  for (Prepared& each : fresh) {
    each.latency = middle_of(each.point->point.latency);
    each.throughput = middle_of(each.point->point.throughput);
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
    for (const Prepared& each : fresh) adding.add(each, added);
    for (const NewDocument* const each : documents) adding.add(*each, added);
    adding.finish(added);
    attempted = added;
    adding.commit();
    return added;
  });
}

}  // namespace weir::history
