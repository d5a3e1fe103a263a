#include "report/history/database.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <thread>

namespace weir::history {
namespace {

// One entry per version: the statements that upgrade the version before.
constexpr std::array kVersions = {
    R"(
CREATE TABLE machine(
  id INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE, label TEXT NOT NULL, facts TEXT NOT NULL);
CREATE TABLE conditions(
  id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, device TEXT, environment TEXT);
CREATE TABLE entry(
  id INTEGER PRIMARY KEY AUTOINCREMENT, added TEXT NOT NULL, tag TEXT, commit_id TEXT, commit_basis TEXT,
  weir_version TEXT NOT NULL, weir_commit TEXT NOT NULL);
CREATE TABLE point(
  id INTEGER PRIMARY KEY, entry INTEGER NOT NULL REFERENCES entry(id), machine INTEGER NOT NULL REFERENCES machine(id),
  conditions INTEGER NOT NULL REFERENCES conditions(id), digest TEXT NOT NULL UNIQUE, origin TEXT NOT NULL,
  measured TEXT, weir_version TEXT, weir_commit TEXT, workload TEXT NOT NULL, key TEXT NOT NULL, failure TEXT,
  latency_unit TEXT, latency_reason TEXT, latency_count INTEGER, latency_median REAL, latency_low REAL,
  latency_high REAL, latency_samples BLOB,
  throughput_unit TEXT, throughput_reason TEXT, throughput_count INTEGER, throughput_median REAL, throughput_low REAL,
  throughput_high REAL, throughput_samples BLOB);
CREATE INDEX point_of_workload ON point(workload);
CREATE INDEX point_of_entry ON point(entry);
)",
    // Whole documents beside the points; serial numbers; an index for every question that is asked of a million points.
    R"(
ALTER TABLE machine ADD COLUMN serial TEXT;
CREATE INDEX machine_of_serial ON machine(serial);
CREATE TABLE document(
  id INTEGER PRIMARY KEY, entry INTEGER NOT NULL REFERENCES entry(id), digest TEXT NOT NULL UNIQUE, kind TEXT NOT NULL,
  subject TEXT NOT NULL, measured TEXT NOT NULL, body BLOB NOT NULL);
CREATE INDEX document_of_subject ON document(kind, subject, measured);
CREATE INDEX document_of_entry ON document(entry);
DROP INDEX point_of_workload;
CREATE INDEX point_of_series ON point(workload, machine, measured, latency_median, throughput_median);
CREATE INDEX point_of_machine ON point(machine);
CREATE INDEX point_of_conditions ON point(conditions);
CREATE TABLE IF NOT EXISTS prediction(
  id INTEGER PRIMARY KEY, created TEXT NOT NULL, program TEXT NOT NULL, setting TEXT NOT NULL, gain REAL NOT NULL,
  low REAL NOT NULL, high REAL NOT NULL, measured REAL, measured_low REAL, measured_high REAL);
)"};
constexpr std::int64_t kVersion = static_cast<std::int64_t>(kVersions.size());

constexpr std::chrono::seconds kPatience{30};
constexpr int kAttempts = 40;
constexpr std::chrono::milliseconds kFirstPause{20}, kLongestPause{1000};

}  // namespace

Database::Database(const std::string& where, DatabaseAccess access)
    : engine_(is_postgres(where) ? open_postgres(where, access) : open_sqlite(where, access)) {
  repeated([&] {
    check_version();
    if (access == DatabaseAccess::write && version_ < kVersion) upgrade();
  });
  if (version_ == 0)
    reject(fmt::format("{}: is empty, and no history yet", name()), "`weir history add RESULTS...` makes one of it.");
}

void Database::check_version() {
  version_ = engine_->version();
  if (version_ > kVersion)
    reject(fmt::format("{}: is a history of version {}, this Weir knows version {}", name(), version_, kVersion),
           "Use the newer Weir that wrote it.");
  if (version_ < 0)
    reject(fmt::format("{}: is a history without a version: it is damaged", name()), "Put back a copy.");
}

void Database::upgrade() {
  Transaction transaction(*this);
  check_version();  // another process may have been faster
  for (std::int64_t next = version_; next < kVersion; ++next)
    engine_->run(engine_->definition(kVersions[static_cast<std::size_t>(next)]));
  if (version_ < kVersion) engine_->set_version(kVersion);
  transaction.commit();
  version_ = kVersion;
}

void Database::recover(const TryAgain& trouble, std::chrono::steady_clock::time_point begin, int attempt) {
  bool is_lost = trouble.is_lost;
  for (int pauses = attempt;; ++pauses) {
    if (pauses > kAttempts || std::chrono::steady_clock::now() - begin > kPatience) throw trouble;
    // Processes that collided must not collide again: their pauses differ.
    const int doublings = std::min(pauses - 1, 6);
    const auto longest = std::min(kFirstPause * (1 << doublings), kLongestPause);
    std::this_thread::sleep_for(longest / 2 + longest / 2 * (::getpid() % 16) / 16);
    if (!is_lost) return;
    try {
      engine_->reconnect();
      return;
    } catch (const TryAgain&) {
    }
  }
}

Transaction::Transaction(Database& database, Writing writing) : engine_(*database.engine_) { engine_.begin(writing); }

Transaction::~Transaction() {
  if (is_open_) engine_.roll_back();
}

void Transaction::commit() {
  engine_.commit();
  is_open_ = false;
}

Statement& Statement::bind(std::int64_t value) {
  query_->bind(bound_++, value);
  return *this;
}

Statement& Statement::bind(std::optional<double> value) {
  value ? query_->bind(bound_, *value) : query_->bind_null(bound_);
  ++bound_;
  return *this;
}

Statement& Statement::bind(std::string_view text) {
  query_->bind_text(bound_++, text);
  return *this;
}

Statement& Statement::bind_or_null(const std::string& text) {
  if (!text.empty()) return bind(std::string_view(text));
  query_->bind_null(bound_++);
  return *this;
}

Statement& Statement::bind_bytes(std::string_view bytes) {
  query_->bind_bytes(bound_++, bytes);
  return *this;
}

void Statement::run() {
  while (next()) {
  }
  query_->reset();
  bound_ = 0;
}

std::optional<std::int64_t> Statement::first_integer() {
  const std::optional<std::int64_t> value = next() ? integer(0) : std::nullopt;
  query_->reset();
  bound_ = 0;
  return value;
}

}  // namespace weir::history
