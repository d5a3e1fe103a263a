#include "report/history/database.h"

#include <fmt/format.h>
#include <unistd.h>
#include <weir_build.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/file.h"

#if WEIR_HAVE_SQLITE
#include <sqlite3.h>
#endif

namespace weir::history {

#if WEIR_HAVE_SQLITE
namespace {

namespace fs = std::filesystem;

// "Weir" as four bytes of the file's header, which distinguishes a history from databases of other programs.
constexpr std::int64_t kApplication = 0x57656972;
constexpr int kBusyMs = 30'000;  // an add holds the file for less than a second
constexpr int kLongestValue = 256 << 20;
constexpr std::int64_t kHeapBytes = std::int64_t{1} << 30;
// Damaged trees can visit a page repeatedly; this limit stops that.
constexpr std::uint64_t kStepsAtLeast = 50'000'000;
constexpr std::uint64_t kStepsPerByte = 256;
constexpr int kStepsPerCheck = 10'000;

// One entry per version: the statements that upgrade the version before. Files store their version in user_version.
constexpr std::array kVersions = {R"(
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
)"};
constexpr std::int64_t kVersion = static_cast<std::int64_t>(kVersions.size());

std::string words(sqlite3* handle, int code) {
  return handle == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(handle);
}

}  // namespace

Database::Database(const fs::path& path, DatabaseAccess access) : name_(path.string()) {
  std::error_code status;
  const bool is_there = fs::exists(path, status);
  if (access == DatabaseAccess::read && !is_there)
    reject(fmt::format("{}: no such history", name_),
           "`weir history add RESULTS...` makes one; --db names another file.");
  if (is_there && fs::is_directory(path, status))
    reject(fmt::format("{}: is a folder", name_), "--db names the file of a history.");
  const std::uint64_t size = is_there ? fs::file_size(path, status) : 0;
  steps_left_ = kStepsAtLeast + (status ? 0 : size) * kStepsPerByte;
  if (access == DatabaseAccess::read && !status && size == 0)
    reject(fmt::format("{}: is empty, and no history yet", name_), "`weir history add RESULTS...` makes one of it.");
  // Opened for writing even to read, because changes that a killed process left incomplete must be rolled back first.
  const bool can_write = access == DatabaseAccess::write || ::access(path.c_str(), W_OK) == 0;
  const int flags = (can_write ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) |
                    (access == DatabaseAccess::write ? SQLITE_OPEN_CREATE : 0) | SQLITE_OPEN_NOMUTEX;
  try {
    if (const int code = sqlite3_open_v2(name_.c_str(), &handle_, flags, nullptr); code != SQLITE_OK)
      fail_with_code(code);
    sqlite3_hard_heap_limit64(kHeapBytes);
    sqlite3_extended_result_codes(handle_, 0);
    sqlite3_busy_timeout(handle_, kBusyMs);
    sqlite3_db_config(handle_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(handle_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(handle_, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
    sqlite3_db_config(handle_, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
    sqlite3_limit(handle_, SQLITE_LIMIT_LENGTH, kLongestValue);
    sqlite3_limit(handle_, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_progress_handler(
        handle_, kStepsPerCheck,
        [](void* left) {
          auto& steps = *static_cast<std::uint64_t*>(left);
          steps -= std::min<std::uint64_t>(steps, kStepsPerCheck);
          return steps == 0 ? 1 : 0;
        },
        &steps_left_);
    if (access == DatabaseAccess::write) {
      Transaction transaction(*this);
      bring_up_to_date();
      transaction.commit();
      return;
    }
    if (pragma("PRAGMA application_id") != kApplication)
      reject(fmt::format("{}: is a database of another program, not a history of Weir", name_),
             "--db names another file.");
    const std::int64_t version = pragma("PRAGMA user_version");
    if (version != kVersion)
      reject(fmt::format("{}: is a history of version {}, this Weir reads version {}", name_, version, kVersion),
             version > kVersion ? "Use the newer Weir that wrote it." : "`weir history add` brings it up to date.");
  } catch (...) {
    sqlite3_close_v2(handle_);
    throw;
  }
}

Database::~Database() { sqlite3_close_v2(handle_); }

void Database::fail_with_code(int code) const {
  const std::string reason = words(handle_, code);
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      fail(fmt::format("{}: another process has been writing to it for {} s", name_, kBusyMs / 1000), "Try again.");
    case SQLITE_NOTADB:
      reject(fmt::format("{}: is not an SQLite database, so it is not a history", name_), "--db names another file.");
    case SQLITE_INTERRUPT:
    case SQLITE_CORRUPT:
      reject(fmt::format("{}: the database is damaged: {}", name_, reason),
             "Put back a copy, or save what is left with `sqlite3 FILE .recover | sqlite3 NEW`.");
    case SQLITE_ERROR:  // a table or column that a statement needs does not exist
      reject(fmt::format("{}: is not a history that this Weir can read: {}", name_, reason),
             "--db names another file.");
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      reject(fmt::format("{}: cannot be opened: {}", name_, reason), "Check the folder and its permissions.");
    default:
      fail(fmt::format("{}: {}", name_, reason), "Is the disk full?");
  }
}

void Database::run(const char* sql) const {
  if (const int code = sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr); code != SQLITE_OK) fail_with_code(code);
}

std::int64_t Database::pragma(const char* sql) const {
  sqlite3_stmt* statement = nullptr;
  int code = sqlite3_prepare_v2(handle_, sql, -1, &statement, nullptr);
  if (code == SQLITE_OK) code = sqlite3_step(statement);
  const std::int64_t value = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
  sqlite3_finalize(statement);
  if (code != SQLITE_ROW && code != SQLITE_DONE) fail_with_code(code);
  return value;
}

void Database::bring_up_to_date() const {
  const std::int64_t application = pragma("PRAGMA application_id");
  const std::int64_t version = pragma("PRAGMA user_version");
  const bool is_new = application == 0 && version == 0 && pragma("SELECT count(*) FROM sqlite_master") == 0;
  if (application != kApplication && !is_new)
    reject(fmt::format("{}: is a database of another program, not a history of Weir", name_),
           "--db names another file.");
  if (version > kVersion)
    reject(fmt::format("{}: is a history of version {}, this Weir writes version {}", name_, version, kVersion),
           "Use the newer Weir that wrote it.");
  if (version < 0 || (version == 0 && !is_new))
    reject(fmt::format("{}: is a history without a version: it is damaged", name_), "Put back a copy.");
  if (version == kVersion) return;
  for (std::int64_t next = version; next < kVersion; ++next) run(kVersions[static_cast<std::size_t>(next)]);
  run(fmt::format("PRAGMA application_id = {}", kApplication).c_str());
  run(fmt::format("PRAGMA user_version = {}", kVersion).c_str());
}

// IMMEDIATE takes the lock here, where waiting for it is possible, and not at the first change.
Transaction::Transaction(Database& database) : database_(database) { database_.run("BEGIN IMMEDIATE"); }

Transaction::~Transaction() {
  if (is_open_) sqlite3_exec(database_.handle_, "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() {
  database_.run("COMMIT");
  is_open_ = false;
}

Statement::Statement(Database& database, const char* sql) : database_(database) {
  if (const int code = sqlite3_prepare_v2(database_.handle_, sql, -1, &handle_, nullptr); code != SQLITE_OK)
    database_.fail_with_code(code);
}

Statement::~Statement() { sqlite3_finalize(handle_); }

Statement& Statement::bind(std::int64_t value) {
  sqlite3_bind_int64(handle_, ++bound_, value);
  return *this;
}

Statement& Statement::bind(std::optional<double> value) {
  value ? sqlite3_bind_double(handle_, ++bound_, *value) : sqlite3_bind_null(handle_, ++bound_);
  return *this;
}

Statement& Statement::bind(std::string_view text) {
  sqlite3_bind_text64(handle_, ++bound_, text.data() == nullptr ? "" : text.data(), text.size(), SQLITE_TRANSIENT,
                      SQLITE_UTF8);
  return *this;
}

Statement& Statement::bind_or_null(const std::string& text) {
  if (!text.empty()) return bind(std::string_view(text));
  sqlite3_bind_null(handle_, ++bound_);
  return *this;
}

Statement& Statement::bind_bytes(std::string_view bytes) {
  sqlite3_bind_blob64(handle_, ++bound_, bytes.data(), bytes.size(), SQLITE_TRANSIENT);
  return *this;
}

bool Statement::next() {
  const int code = sqlite3_step(handle_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) database_.fail_with_code(code);
  return false;
}

void Statement::run() {
  while (next()) {
  }
  sqlite3_reset(handle_);
  sqlite3_clear_bindings(handle_);
  bound_ = 0;
}

std::optional<std::int64_t> Statement::integer(int column) const {
  if (sqlite3_column_type(handle_, column) != SQLITE_INTEGER) return std::nullopt;
  return sqlite3_column_int64(handle_, column);
}

std::optional<double> Statement::real(int column) const {
  const int type = sqlite3_column_type(handle_, column);
  if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) return std::nullopt;
  return sqlite3_column_double(handle_, column);
}

std::string Statement::text(int column) const {
  if (sqlite3_column_type(handle_, column) != SQLITE_TEXT) return {};
  const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(handle_, column));
  return text == nullptr ? std::string()
                         : std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(handle_, column)));
}

std::string Statement::bytes(int column) const {
  if (sqlite3_column_type(handle_, column) != SQLITE_BLOB) return {};
  const auto* const bytes = static_cast<const char*>(sqlite3_column_blob(handle_, column));
  return bytes == nullptr ? std::string()
                          : std::string(bytes, static_cast<std::size_t>(sqlite3_column_bytes(handle_, column)));
}

#else

Database::Database(const std::filesystem::path& path, DatabaseAccess) : name_(path.string()) {
  reject("a history is a SQLite file, and this weir was built without SQLite",
         "Install libsqlite3-dev (scripts/setup.sh does) and build again.");
}
Database::~Database() = default;
void Database::fail_with_code(int) const { reject("this weir was built without SQLite"); }
void Database::run(const char*) const {}
std::int64_t Database::pragma(const char*) const { return 0; }
void Database::bring_up_to_date() const {}
Transaction::Transaction(Database& database) : database_(database) {}
Transaction::~Transaction() = default;
void Transaction::commit() { is_open_ = false; }
Statement::Statement(Database& database, const char*) : database_(database) {}
Statement::~Statement() = default;
Statement& Statement::bind(std::int64_t) { return *this; }
Statement& Statement::bind(std::optional<double>) { return *this; }
Statement& Statement::bind(std::string_view) { return *this; }
Statement& Statement::bind_or_null(const std::string&) { return *this; }
Statement& Statement::bind_bytes(std::string_view) { return *this; }
bool Statement::next() { return false; }
void Statement::run() {}
std::optional<std::int64_t> Statement::integer(int) const { return std::nullopt; }
std::optional<double> Statement::real(int) const { return std::nullopt; }
std::string Statement::text(int) const { return {}; }
std::string Statement::bytes(int) const { return {}; }

#endif

}  // namespace weir::history
