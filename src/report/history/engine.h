// What a history asks of a database program: statements with bound values, transactions, versions of its tables. One
// source per program: engine_sqlite.cpp, engine_postgres.cpp. Knows no table.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace weir::history {

enum class DatabaseAccess : std::uint8_t { read, write };

// What a transaction excludes. SQLite has one writer at a time, so there all of them are alone.
enum class Writing : std::uint8_t {
  beside_others,  // others may add at the same time
  alone,          // nobody else changes anything: tables are upgraded, rows are removed
};

// The server undid the transaction for the sake of another one, or the connection broke: the same again may succeed.
class TryAgain : public Error {
 public:
  TryAgain(const std::string& what, std::string hint, bool is_lost)
      : Error(Fault::run, what, std::move(hint)), is_lost(is_lost) {}
  bool is_lost;  // the connection is: reconnect() comes first
};

// A statement: values are bound by position, from 0 on. A column of another type than requested reads as empty.
class Query {
 public:
  Query() = default;
  virtual ~Query() = default;
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  virtual void bind_null(int at) = 0;
  virtual void bind(int at, std::int64_t value) = 0;
  virtual void bind(int at, double value) = 0;
  virtual void bind_text(int at, std::string_view text) = 0;
  virtual void bind_bytes(int at, std::string_view bytes) = 0;
  // True while there is a row.
  virtual bool next() = 0;
  // It can then be bound again.
  virtual void reset() = 0;

  virtual std::optional<std::int64_t> integer(int column) const = 0;
  virtual std::optional<double> real(int column) const = 0;
  virtual std::string text(int column) const = 0;
  virtual std::string bytes(int column) const = 0;
};

class Engine {
 public:
  Engine() = default;
  virtual ~Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Where the history is, as it may be printed: without a password.
  virtual const std::string& name() const noexcept = 0;
  // A statement in the SQL that all engines share; "?" stands for a value. Rows of one are read before the next begins.
  virtual std::unique_ptr<Query> query(const std::string& sql) = 0;
  // Statements without values and rows, in the engine's own SQL.
  virtual void run(const std::string& sql) = 0;
  // Definitions of tables, written for SQLite, in the engine's own types.
  virtual std::string definition(const std::string& sql) const = 0;

  virtual void begin(Writing writing) = 0;
  virtual void commit() = 0;
  virtual void roll_back() noexcept = 0;
  // After TryAgain::is_lost. Throws TryAgain while the server cannot be reached.
  virtual void reconnect() = 0;

  // The version of the tables; 0 where there are none yet. Rejects a database of another program.
  virtual std::int64_t version() = 0;
  virtual void set_version(std::int64_t version) = 0;
  virtual bool has_table(const std::string& name) = 0;
  // What the history takes on disk, indices included.
  virtual std::uint64_t size_bytes() = 0;
};

// A file, created for writing where there is none.
std::unique_ptr<Engine> open_sqlite(const std::string& file, DatabaseAccess access);

// "postgresql://user@host/db", "postgres://...", "host=... dbname=...".
bool is_postgres(std::string_view where);
// The same as it may be printed.
std::string without_password(std::string_view where);
std::unique_ptr<Engine> open_postgres(const std::string& where, DatabaseAccess access);
// Why histories in PostgreSQL cannot be used here; empty where they can.
std::string postgres_shortfall();

}  // namespace weir::history
