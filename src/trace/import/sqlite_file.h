// Reads a foreign SQLite database: which tables and columns exist, and their rows. Never joins and never uses the
// database's own views, so that no file can make a query expensive. Knows no trace format.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/import/importer.h"

namespace weir {

// Whether `start` begins like a SQLite database.
bool is_sqlite(std::string_view start) noexcept;

class SqliteFile;

// The rows of one table, in file order. A column that the table lacks reads as empty.
class SqliteRows {
 public:
  ~SqliteRows();
  SqliteRows(SqliteRows&& other) noexcept;
  SqliteRows& operator=(SqliteRows&&) = delete;

  bool next();
  std::uint64_t row() const noexcept { return row_; }  // counts from 1
  std::optional<std::int64_t> integer(int column) const;
  std::int64_t integer_or(int column, std::int64_t otherwise) const { return integer(column).value_or(otherwise); }
  // Valid until next(). Empty where there is none; texts of more than 64 KiB are truncated.
  std::string_view text(int column) const;

 private:
  friend class SqliteFile;
  friend class SqliteLookup;
  SqliteRows(SqliteFile& file, std::string table, void* statement);

  SqliteFile* file_;
  std::string table_;
  void* statement_;
  std::uint64_t row_ = 0;
};

// Finds a row of a table by number.
class SqliteLookup {
 public:
  // Null where the row does not exist or the table has no such key. The row is valid until the next call.
  const SqliteRows* find(std::int64_t key);

 private:
  friend class SqliteFile;
  explicit SqliteLookup(std::optional<SqliteRows> row) : row_(std::move(row)) {}
  std::optional<SqliteRows> row_;
  int failed_ = 0;
};

class SqliteFile {
 public:
  // Opens the file itself, or its decompressed bytes in memory where there is no path. Rejects files that are no
  // database or too large to decompress, and everything where this build has no SQLite.
  SqliteFile(const TraceFile& file, TimelineBuilder& to);
  ~SqliteFile();
  SqliteFile(const SqliteFile&) = delete;
  SqliteFile& operator=(const SqliteFile&) = delete;

  // Ordinary tables; no views or virtual tables.
  const std::vector<std::string>& tables() const noexcept { return tables_; }
  bool has(std::string_view table) const noexcept;
  bool has(const std::string& table, std::string_view column);
  // A missing table has no rows.
  SqliteRows rows(const std::string& table, std::initializer_list<const char*> columns);
  SqliteLookup lookup(const std::string& table, const char* key, std::initializer_list<const char*> columns);

 private:
  friend class SqliteRows;
  friend class SqliteLookup;
  struct Database;

  std::vector<std::string> columns_of(const std::string& table);
  void* prepare(const std::string& table, const char* key, std::initializer_list<const char*> columns);
  // Counts a table that cannot be read to its end; reading goes on with the others.
  void problem(const std::string& table, std::uint64_t row);

  const TraceFile& file_;
  TimelineBuilder& to_;
  std::unique_ptr<Database> database_;
  std::vector<std::string> tables_;
};

// Texts of a table by id, as numbers of the builder.
class SqliteNames {
 public:
  SqliteNames(TimelineBuilder& to, SqliteFile& file, const std::string& table,
              std::initializer_list<const char*> columns)
      : to_(to), rows_(file.lookup(table, "id", columns)), has_second_(columns.size() > 1) {}
  // From the first column, or from the second where the first is empty; kNoName where there is no such row. `shown`
  // selects the part of the text to keep.
  std::uint32_t of(std::optional<std::int64_t> id, std::string_view (*shown)(std::string_view) noexcept = nullptr);
  // The text itself, valid until the next call; empty where there is none.
  std::string_view text_of(std::int64_t id) {
    const SqliteRows* const row = rows_.find(id);
    return row == nullptr ? std::string_view() : row->text(0);
  }

 private:
  TimelineBuilder& to_;
  SqliteLookup rows_;
  bool has_second_;
  std::unordered_map<std::int64_t, std::uint32_t> names_;
};

}  // namespace weir
