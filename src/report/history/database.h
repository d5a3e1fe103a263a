// One SQLite file that is a history: opens it, checks it, upgrades it to the current version; statements with bound
// values. Knows the tables; store.h knows what they mean. Without SQLite in this build, opening it fails with a
// message.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace weir::history {

enum class DatabaseAccess : std::uint8_t { read, write };

class Database {
 public:
  // Rejects a file that is not a history, is damaged, or was written by a newer Weir. With Access::write a missing file
  // is created, and an older version upgraded.
  Database(const std::filesystem::path& path, DatabaseAccess access);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  const std::string& name() const noexcept { return name_; }
  // Throws the error that matches SQLite's code, with a message for the user.
  [[noreturn]] void fail_with_code(int code) const;

 private:
  friend class Statement;
  friend class Transaction;
  void run(const char* sql) const;
  std::int64_t pragma(const char* sql) const;
  void bring_up_to_date() const;

  std::string name_;
  sqlite3* handle_ = nullptr;
  std::uint64_t steps_left_ = 0;
};

// All or nothing: uncommitted changes are rolled back, even if this process is killed. Waits for other writers.
class Transaction {
 public:
  explicit Transaction(Database& database);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  Database& database_;
  bool is_open_ = true;
};

// Values are bound in order, and read by column. A column of another type than requested reads as empty.
class Statement {
 public:
  Statement(Database& database, const char* sql);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(std::int64_t value);
  Statement& bind(std::optional<double> value);
  Statement& bind(std::string_view text);
  Statement& bind_or_null(const std::string& text);  // null where it is empty
  Statement& bind_bytes(std::string_view bytes);
  template <class First, class Second, class... Rest>
  Statement& bind(const First& first, const Second& second, const Rest&... rest) {
    bind(first).bind(second);
    (bind(rest), ...);
    return *this;
  }
  // True while there is a row.
  bool next();
  // Runs it to its end; it can then be bound again.
  void run();

  std::optional<std::int64_t> integer(int column) const;
  std::optional<double> real(int column) const;
  std::string text(int column) const;
  std::string bytes(int column) const;
  // The columns from the first on, in order.
  template <class... Values>
  void read(int column, Values&... values) const {
    (take(column++, values), ...);
  }

 private:
  void take(int column, std::string& into) const { into = text(column); }
  void take(int column, std::optional<double>& into) const { into = real(column); }
  void take(int column, std::int64_t& into) const { into = integer(column).value_or(0); }
  void take(int column, std::size_t& into) const {
    into = static_cast<std::size_t>(std::max<std::int64_t>(0, integer(column).value_or(0)));
  }

  Database& database_;
  sqlite3_stmt* handle_ = nullptr;
  int bound_ = 0;
};

}  // namespace weir::history
