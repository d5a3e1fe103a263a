// Histories in one SQLite file. Knows SQLite's codes and limits; without SQLite in this build, opening one fails with a
// message.
#include <fmt/format.h>
#include <unistd.h>
#include <weir_build.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "report/history/engine.h"

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
constexpr int kCacheKibibytes = 64 << 10;  // indices of a million points; SQLite's own 2 MiB halve the rate of adding
// Damaged trees can visit a page repeatedly; this limit for each statement stops that.
constexpr std::uint64_t kStepsAtLeast = 50'000'000;
constexpr std::uint64_t kStepsPerByte = 256;
constexpr int kStepsPerCheck = 10'000;

class SqliteEngine final : public Engine {
 public:
  SqliteEngine(const std::string& file, DatabaseAccess access);
  ~SqliteEngine() override { sqlite3_close_v2(handle_); }

  const std::string& name() const noexcept override { return name_; }
  std::unique_ptr<Query> query(const std::string& sql) override;
  void run(const std::string& sql) override {
    refill();
    if (const int code = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr); code != SQLITE_OK)
      fail_with_code(code);
  }
  std::string definition(const std::string& sql) const override { return sql; }
  // IMMEDIATE takes the lock here, where waiting for it is possible, and not at the first change.
  void begin(Writing) override { run("BEGIN IMMEDIATE"); }
  void commit() override { run("COMMIT"); }
  void roll_back() noexcept override { sqlite3_exec(handle_, "ROLLBACK", nullptr, nullptr, nullptr); }
  void reconnect() override {}
  std::int64_t version() override;
  void set_version(std::int64_t version) override {
    run(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", kApplication, version));
  }
  bool has_table(const std::string& table) override {
    const auto found = query("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?");
    found->bind_text(0, table);
    return found->next() && found->integer(0) == 1;
  }
  std::uint64_t size_bytes() override {
    return static_cast<std::uint64_t>(
        std::max<std::int64_t>(0, pragma("PRAGMA page_count") * pragma("PRAGMA page_size")));
  }

  [[noreturn]] void fail_with_code(int code) const;
  void refill() { steps_left_ = steps_; }
  sqlite3* handle() const { return handle_; }

 private:
  std::int64_t pragma(const char* sql);

  std::string name_;
  sqlite3* handle_ = nullptr;
  std::uint64_t steps_ = 0, steps_left_ = 0;
};

class SqliteQuery final : public Query {
 public:
  SqliteQuery(SqliteEngine& engine, const std::string& sql) : engine_(engine) {
    engine_.refill();
    if (const int code = sqlite3_prepare_v2(engine.handle(), sql.c_str(), -1, &handle_, nullptr); code != SQLITE_OK)
      engine_.fail_with_code(code);
  }
  ~SqliteQuery() override { sqlite3_finalize(handle_); }

  void bind_null(int at) override { sqlite3_bind_null(handle_, at + 1); }
  void bind(int at, std::int64_t value) override { sqlite3_bind_int64(handle_, at + 1, value); }
  void bind(int at, double value) override { sqlite3_bind_double(handle_, at + 1, value); }
  void bind_text(int at, std::string_view text) override {
    sqlite3_bind_text64(handle_, at + 1, text.data() == nullptr ? "" : text.data(), text.size(), SQLITE_TRANSIENT,
                        SQLITE_UTF8);
  }
  void bind_bytes(int at, std::string_view bytes) override {
    sqlite3_bind_blob64(handle_, at + 1, bytes.data(), bytes.size(), SQLITE_TRANSIENT);
  }
  bool next() override {
    if (!is_running_) engine_.refill();
    is_running_ = true;
    const int code = sqlite3_step(handle_);
    if (code == SQLITE_ROW) return true;
    if (code != SQLITE_DONE) engine_.fail_with_code(code);
    return false;
  }
  void reset() override {
    sqlite3_reset(handle_);
    sqlite3_clear_bindings(handle_);
    is_running_ = false;
  }

  std::optional<std::int64_t> integer(int column) const override {
    if (sqlite3_column_type(handle_, column) != SQLITE_INTEGER) return std::nullopt;
    return sqlite3_column_int64(handle_, column);
  }
  std::optional<double> real(int column) const override {
    const int type = sqlite3_column_type(handle_, column);
    if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) return std::nullopt;
    return sqlite3_column_double(handle_, column);
  }
  std::string text(int column) const override {
    if (sqlite3_column_type(handle_, column) != SQLITE_TEXT) return {};
    const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(handle_, column));
    return text == nullptr ? std::string() : std::string(text, size_of(column));
  }
  std::string bytes(int column) const override {
    if (sqlite3_column_type(handle_, column) != SQLITE_BLOB) return {};
    const auto* const bytes = static_cast<const char*>(sqlite3_column_blob(handle_, column));
    return bytes == nullptr ? std::string() : std::string(bytes, size_of(column));
  }

 private:
  std::size_t size_of(int column) const { return static_cast<std::size_t>(sqlite3_column_bytes(handle_, column)); }

  SqliteEngine& engine_;
  sqlite3_stmt* handle_ = nullptr;
  bool is_running_ = false;
};

SqliteEngine::SqliteEngine(const std::string& file, DatabaseAccess access) : name_(file) {
  const fs::path path(file);
  std::error_code status;
  const bool is_there = fs::exists(path, status);
  if (access == DatabaseAccess::read && !is_there)
    reject(fmt::format("{}: no such history", name_),
           "`weir history add RESULTS...` makes one; --db names another file.");
  if (is_there && fs::is_directory(path, status))
    reject(fmt::format("{}: is a folder", name_), "--db names the file of a history.");
  const std::uint64_t size = is_there ? fs::file_size(path, status) : 0;
  steps_ = kStepsAtLeast + (status ? 0 : size) * kStepsPerByte;
  refill();
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
    run(fmt::format("PRAGMA cache_size = -{}", kCacheKibibytes));
  } catch (...) {
    sqlite3_close_v2(handle_);
    throw;
  }
}

std::unique_ptr<Query> SqliteEngine::query(const std::string& sql) { return std::make_unique<SqliteQuery>(*this, sql); }

void SqliteEngine::fail_with_code(int code) const {
  const std::string reason = handle_ == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(handle_);
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

std::int64_t SqliteEngine::pragma(const char* sql) {
  const auto row = query(sql);
  return row->next() ? row->integer(0).value_or(0) : 0;
}

std::int64_t SqliteEngine::version() {
  const std::int64_t application = pragma("PRAGMA application_id"), version = pragma("PRAGMA user_version");
  if (application == 0 && version == 0 && pragma("SELECT count(*) FROM sqlite_master") == 0) return 0;
  if (application != kApplication)
    reject(fmt::format("{}: is a database of another program, not a history of Weir", name_),
           "--db names another file.");
  return version == 0 ? -1 : version;
}

}  // namespace

std::unique_ptr<Engine> open_sqlite(const std::string& file, DatabaseAccess access) {
  return std::make_unique<SqliteEngine>(file, access);
}

#else

std::unique_ptr<Engine> open_sqlite(const std::string&, DatabaseAccess) {
  reject("a history in a file needs SQLite, and this weir was built without it",
         "Install libsqlite3-dev (scripts/setup.sh does) and build again, or name a PostgreSQL database with --db.");
}

#endif

}  // namespace weir::history
