// A history's tables, the same in every engine: opens them, checks their version and upgrades them; statements with
// bound values. Knows the tables; store.h knows what they mean.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "report/history/engine.h"

namespace weir::history {

class Database {
 public:
  // `where` is a file (SQLite) or the address of a PostgreSQL database. Rejects what is not a history, is damaged, or
  // was written by a newer Weir. With DatabaseAccess::write tables are made where there are none, and older ones
  // upgraded; with read an older version is read as it is.
  Database(const std::string& where, DatabaseAccess access);

  const std::string& name() const noexcept { return engine_->name(); }
  std::int64_t version() const noexcept { return version_; }
  std::uint64_t size_bytes() { return engine_->size_bytes(); }
  bool has_table(const std::string& table) { return engine_->has_table(table); }

  // Runs `work`, and again where it threw TryAgain, for half a minute at most. It must find out itself whether an
  // earlier attempt took effect: a connection may break after the server has committed.
  template <class Work>
  auto repeated(const Work& work) {
    const auto begin = std::chrono::steady_clock::now();
    for (int attempt = 1;; ++attempt) {
      try {
        return work();
      } catch (const TryAgain& trouble) {
        recover(trouble, begin, attempt);
      }
    }
  }

 private:
  friend class Statement;
  friend class Transaction;
  void check_version();
  void upgrade();
  void recover(const TryAgain& trouble, std::chrono::steady_clock::time_point begin, int attempt);

  std::unique_ptr<Engine> engine_;
  std::int64_t version_ = 0;
};

// All or nothing: uncommitted changes are rolled back, even if this process is killed.
class Transaction {
 public:
  explicit Transaction(Database& database, Writing writing = Writing::alone);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  Engine& engine_;
  bool is_open_ = true;
};

// Values are bound in order, and read by column. A column of another type than requested reads as empty.
class Statement {
 public:
  Statement(Database& database, const std::string& sql) : query_(database.engine_->query(sql)) {}

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
  bool next() { return query_->next(); }
  // Runs it to its end; it can then be bound again.
  void run();
  // The first column of its first row, if it is a whole number; it can then be bound again.
  std::optional<std::int64_t> first_integer();

  std::optional<std::int64_t> integer(int column) const { return query_->integer(column); }
  std::optional<double> real(int column) const { return query_->real(column); }
  std::string text(int column) const { return query_->text(column); }
  std::string bytes(int column) const { return query_->bytes(column); }
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

  std::unique_ptr<Query> query_;
  int bound_ = 0;
};

}  // namespace weir::history
