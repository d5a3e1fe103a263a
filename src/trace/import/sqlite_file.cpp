#include "trace/import/sqlite_file.h"

#include <fmt/format.h>
#include <weir_build.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/units.h"

#if WEIR_HAVE_SQLITE
#include <sqlite3.h>
#endif

namespace weir {
namespace {

constexpr std::string_view kMagic{"SQLite format 3\0", 16};

}  // namespace

bool is_sqlite(std::string_view start) noexcept { return start.substr(0, kMagic.size()) == kMagic; }

#if WEIR_HAVE_SQLITE
namespace {

// Limit for databases that are decompressed into memory.
constexpr std::uint64_t kMaxInMemory = std::uint64_t{2} << 30;
constexpr int kLongestValue = 64 << 20;  // Nsight Systems keeps whole files in some rows
constexpr std::size_t kLongestText = 65'536;
constexpr std::int64_t kHeapBytes = std::int64_t{512} << 20;
// Steps of SQLite's virtual machine: a row takes one per column and a few more, and has at least one byte per column.
// Damaged trees can visit a page repeatedly; this limit stops that.
constexpr std::uint64_t kStepsPerByte = 32;
constexpr std::uint64_t kStepsAtLeast = 1'000'000;
constexpr int kStepsPerCheck = 10'000;
constexpr int kMaxFailed = 1000;  // look-ups in one table

std::string uri_of(const std::filesystem::path& path) {
  std::string uri = "file:";
  std::error_code no_folder;  // the current folder was removed: the name stays as it is
  const std::filesystem::path whole = std::filesystem::absolute(path, no_folder);
  for (const char c : (no_folder ? path : whole).string()) {
    const bool is_plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '/' || c == '.' || c == '_';
    uri += is_plain ? std::string(1, c) : fmt::format("%{:02x}", static_cast<unsigned char>(c));
  }
  // Immutable: no locks, no journal, and no files are written next to it.
  return uri + "?mode=ro&immutable=1";
}

std::string identifier(std::string_view name) {
  std::string text = "\"";
  for (const char c : name) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + "\"";
}

// From the header, big endian: page size (2 bytes at 16; 1 means 65,536) and number of pages (4 bytes at 28).
constexpr std::size_t kHeaderBytes = 100;
constexpr std::size_t kPagesAt = 28;

struct Pages {
  std::uint64_t size = 0, count = 0;
  bool are_missing(std::uint64_t bytes) const noexcept { return size >= 512 && count > bytes / size; }
};

Pages pages_of(const unsigned char* header) noexcept {
  const std::uint64_t size = std::uint64_t{header[16]} << 8 | header[17];
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < 4; ++i) count = count << 8 | header[kPagesAt + i];
  return {size == 1 ? 65536 : size, count};
}

// Whether SQLite can open it directly: it refuses the whole file if pages are missing.
bool is_whole_database(const std::filesystem::path& path) {
  const std::string start = start_of_file(path, kHeaderBytes);
  if (start.size() < kHeaderBytes || !is_sqlite(start)) return false;
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(path, error);
  return error || !pages_of(reinterpret_cast<const unsigned char*>(start.data())).are_missing(size);
}

// What a file may access while it is read: columns of tables, and nothing else.
int allow(void*, int action, const char*, const char*, const char*, const char*) {
  return action == SQLITE_SELECT || action == SQLITE_READ ? SQLITE_OK : SQLITE_DENY;
}

}  // namespace

struct SqliteFile::Database {
  sqlite3* handle = nullptr;
  std::vector<unsigned char> bytes;  // where it is read from memory
  std::uint64_t steps_left = 0;

  ~Database() { sqlite3_close_v2(handle); }

  void open_path(const std::filesystem::path& path) {
    std::error_code error;
    const std::uint64_t size = std::filesystem::file_size(path, error);
    allow_steps(error ? 0 : size);
    const std::string uri = uri_of(path);
    sqlite3_open_v2(uri.c_str(), &handle, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
  }

  void open_bytes(const TraceFile& file, TimelineBuilder& to) {
    for (std::size_t got = 0;;) {
      if (bytes.size() - got < 65536) {
        const std::size_t more = std::max<std::size_t>(bytes.size(), std::size_t{1} << 17);
        to.charge(more + more / 2);  // the old and the new buffer exist at the same time while it grows
        bytes.resize(bytes.size() + more);
      }
      const std::size_t more = file.bytes->read(reinterpret_cast<char*>(bytes.data()) + got, bytes.size() - got);
      got += more;
      if (got > kMaxInMemory)
        reject(fmt::format("{}: the database has more than {}, which is too much to unpack into memory", file.name,
                           format_bytes(kMaxInMemory)),
               "Unpack it into a file and read that.");
      if (more == 0) {
        bytes.resize(got);
        break;
      }
    }
    use_remaining_pages(to);
    // A database in WAL mode cannot be read from memory; without its log it is an ordinary database.
    if (bytes.size() > 19) bytes[18] = bytes[19] = 1;
    allow_steps(bytes.size());
    sqlite3_open_v2(":memory:", &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
    const auto size = static_cast<sqlite3_int64>(bytes.size());
    if (handle != nullptr) sqlite3_deserialize(handle, "main", bytes.data(), size, size, SQLITE_DESERIALIZE_READONLY);
  }

  // In a truncated file, tables whose pages remain can be read once the header no longer claims the missing pages.
  void use_remaining_pages(TimelineBuilder& to) {
    if (bytes.size() < kHeaderBytes) return;
    const Pages pages = pages_of(bytes.data());
    if (!pages.are_missing(bytes.size())) return;
    const std::uint64_t there = bytes.size() / pages.size;
    bytes.resize(static_cast<std::size_t>(there * pages.size));
    for (std::size_t i = 0; i < 4 && there > 0; ++i)
      bytes[kPagesAt + i] = static_cast<unsigned char>(there >> (24 - 8 * i) & 0xFF);
    to.drop("page that the database should have: it was cut off, and tables may lack rows", bytes.size(),
            pages.count - there);
  }

  void allow_steps(std::uint64_t size) { steps_left = kStepsAtLeast + size * kStepsPerByte; }

  void secure() {
    sqlite3_hard_heap_limit64(kHeapBytes);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
    sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, kLongestValue);
    sqlite3_limit(handle, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_limit(handle, SQLITE_LIMIT_SQL_LENGTH, 1 << 20);
    sqlite3_limit(handle, SQLITE_LIMIT_EXPR_DEPTH, 100);
    sqlite3_limit(handle, SQLITE_LIMIT_VDBE_OP, 25'000);
    sqlite3_limit(handle, SQLITE_LIMIT_COLUMN, 500);
    sqlite3_limit(handle, SQLITE_LIMIT_WORKER_THREADS, 0);
    sqlite3_set_authorizer(handle, allow, nullptr);
    sqlite3_progress_handler(
        handle, kStepsPerCheck,
        [](void* database) {
          std::uint64_t& left = static_cast<Database*>(database)->steps_left;
          left -= std::min<std::uint64_t>(left, kStepsPerCheck);
          return left == 0 ? 1 : 0;
        },
        this);
  }
};

SqliteFile::SqliteFile(const TraceFile& file, TimelineBuilder& to)
    : file_(file), to_(to), database_(std::make_unique<Database>()) {
  if (!file.path.empty() && is_whole_database(file.path)) {
    database_->open_path(file.path);
    std::error_code ignored;
    std::filesystem::path log = file.path;
    log += "-wal";
    if (std::filesystem::exists(log, ignored) && std::filesystem::file_size(log, ignored) > 0)
      to.note(fmt::format("what lies in {} beside the database was not read: open and close it with sqlite3 first",
                          log.filename().string()));
  } else {
    if (!is_sqlite(file.bytes->peek(kMagic.size())))
      reject(fmt::format("{}: is not an SQLite database", file.name),
             "Choose the right --input-format, or leave it out.");
    database_->open_bytes(file, to);
  }
  if (database_->handle == nullptr) reject(fmt::format("{}: no memory to open the database", file.name));
  database_->secure();
  sqlite3_stmt* statement = nullptr;
  // rootpage 0: views and virtual tables
  sqlite3_prepare_v2(database_->handle, "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0", -1,
                     &statement, nullptr);
  SqliteRows found(*this, "sqlite_master", statement);
  if (statement == nullptr)
    reject(fmt::format("{}: is not a database that SQLite can read: {}", file.name, sqlite3_errmsg(database_->handle)),
           "A file that is damaged or was cut off can be saved with `sqlite3 FILE .recover | sqlite3 NEW`.");
  while (found.next()) {
    to.charge(128 + found.text(0).size());
    tables_.emplace_back(found.text(0));
  }
  to.begin_file(file.name, "row");
}

std::vector<std::string> SqliteFile::columns_of(const std::string& table) {
  std::vector<std::string> columns;
  if (!has(table)) return columns;
  sqlite3_stmt* statement = nullptr;
  const std::string sql = fmt::format("SELECT * FROM {} LIMIT 0", identifier(table));
  if (sqlite3_prepare_v2(database_->handle, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) problem(table, 0);
  for (int i = 0; i < sqlite3_column_count(statement); ++i)
    if (const char* const name = sqlite3_column_name(statement, i); name != nullptr) columns.emplace_back(name);
  sqlite3_finalize(statement);
  return columns;
}

void* SqliteFile::prepare(const std::string& table, const char* key, std::initializer_list<const char*> columns) {
  const std::vector<std::string> there = columns_of(table);
  const auto has_column = [&](std::string_view column) {
    return std::find(there.begin(), there.end(), column) != there.end();
  };
  if (there.empty() || (key != nullptr && !has_column(key))) return nullptr;
  std::string sql = "SELECT ";
  for (const char* column : columns) {
    if (sql.back() != ' ') sql += ',';
    sql += has_column(column) ? identifier(column) : "NULL";
  }
  sql += " FROM " + identifier(table);
  if (key != nullptr) sql += fmt::format(" WHERE {} = ?", identifier(key));
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_->handle, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) problem(table, 0);
  return statement;
}

void SqliteFile::problem(const std::string& table, std::uint64_t row) {
  // Table names come from the file, but only those that the importers ask for get here.
  if (database_->steps_left == 0)
    return to_.drop(fmt::format("table {}: damaged: it takes more steps to read than a file of its size should", table),
                    row);
  to_.drop(fmt::format("table {} cannot be read to its end: {}", table, sqlite3_errmsg(database_->handle)), row);
}

bool SqliteRows::next() {
  if (statement_ == nullptr) return false;
  const int status = sqlite3_step(static_cast<sqlite3_stmt*>(statement_));
  if (status == SQLITE_ROW) {
    ++row_;
    if ((row_ & 4095) == 0 && file_->file_.progress) file_->file_.progress();
    return true;
  }
  if (status != SQLITE_DONE) file_->problem(table_, row_ + 1);
  sqlite3_finalize(static_cast<sqlite3_stmt*>(std::exchange(statement_, nullptr)));
  return false;
}

std::optional<std::int64_t> SqliteRows::integer(int column) const {
  auto* const statement = static_cast<sqlite3_stmt*>(statement_);
  // Any column may hold any type. A real number with an integer value counts as an integer.
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
      return sqlite3_column_int64(statement, column);
    case SQLITE_FLOAT: {
      const double value = sqlite3_column_double(statement, column);
      if (value >= -9.0e18 && value <= 9.0e18) return static_cast<std::int64_t>(value);
      return std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

std::string_view SqliteRows::text(int column) const {
  auto* const statement = static_cast<sqlite3_stmt*>(statement_);
  if (sqlite3_column_type(statement, column) != SQLITE_TEXT) return {};
  const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
  if (text == nullptr) return {};
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, column));
  return {text, std::min(size, kLongestText)};
}

SqliteRows::~SqliteRows() { sqlite3_finalize(static_cast<sqlite3_stmt*>(statement_)); }

const SqliteRows* SqliteLookup::find(std::int64_t key) {
  if (!row_ || row_->statement_ == nullptr) return nullptr;
  auto* const statement = static_cast<sqlite3_stmt*>(row_->statement_);
  sqlite3_reset(statement);
  sqlite3_bind_int64(statement, 1, key);
  const int status = sqlite3_step(statement);
  if (status == SQLITE_ROW) return &*row_;
  if (status == SQLITE_DONE) return nullptr;
  // One bad row or page does not make the others unusable, but a file that is bad throughout must not cause a message
  // for each.
  row_->file_->problem(row_->table_, 0);
  if (status == SQLITE_INTERRUPT || ++failed_ >= kMaxFailed) row_.reset();
  return nullptr;
}

#else  // the importers exist all the same, so that a file is recognised and the message names what is missing

struct SqliteFile::Database {};

SqliteFile::SqliteFile(const TraceFile& file, TimelineBuilder& to) : file_(file), to_(to) {
  reject(fmt::format("{}: is a SQLite database, and this weir was built without SQLite", file.name),
         "Install libsqlite3-dev (scripts/setup.sh does) and build again.");
}

std::vector<std::string> SqliteFile::columns_of(const std::string&) { return {}; }
void* SqliteFile::prepare(const std::string&, const char*, std::initializer_list<const char*>) { return nullptr; }
void SqliteFile::problem(const std::string&, std::uint64_t) {}
bool SqliteRows::next() { return false; }
std::optional<std::int64_t> SqliteRows::integer(int) const { return std::nullopt; }
std::string_view SqliteRows::text(int) const { return {}; }
SqliteRows::~SqliteRows() = default;
const SqliteRows* SqliteLookup::find(std::int64_t) { return nullptr; }

#endif

SqliteFile::~SqliteFile() = default;

SqliteRows::SqliteRows(SqliteFile& file, std::string table, void* statement)
    : file_(&file), table_(std::move(table)), statement_(statement) {}

SqliteRows::SqliteRows(SqliteRows&& other) noexcept
    : file_(other.file_),
      table_(std::move(other.table_)),
      statement_(std::exchange(other.statement_, nullptr)),
      row_(other.row_) {}

bool SqliteFile::has(std::string_view table) const noexcept {
  return std::find(tables_.begin(), tables_.end(), table) != tables_.end();
}

bool SqliteFile::has(const std::string& table, std::string_view column) {
  const std::vector<std::string> columns = columns_of(table);
  return std::find(columns.begin(), columns.end(), column) != columns.end();
}

SqliteRows SqliteFile::rows(const std::string& table, std::initializer_list<const char*> columns) {
  return {*this, table, prepare(table, nullptr, columns)};
}

SqliteLookup SqliteFile::lookup(const std::string& table, const char* key, std::initializer_list<const char*> columns) {
  if (!has(table)) return SqliteLookup(std::nullopt);
  return SqliteLookup(SqliteRows(*this, table, prepare(table, key, columns)));
}

std::uint32_t SqliteNames::of(std::optional<std::int64_t> id, std::string_view (*shown)(std::string_view) noexcept) {
  if (!id) return kNoName;
  if (const auto found = names_.find(*id); found != names_.end()) return found->second;
  const SqliteRows* const row = rows_.find(*id);
  if (row == nullptr) return kNoName;
  to_.charge(64);
  const std::string_view text = has_second_ && row->text(0).empty() ? row->text(1) : row->text(0);
  return names_[*id] = to_.name(shown == nullptr ? text : shown(text));
}

}  // namespace weir
