// Histories in a PostgreSQL database, in a schema of their own ("weir"). Knows libpq, SQL states and what may be
// printed of an address; the server keeps the tables.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <map>
#include <thread>
#include <vector>

#include "base/plain_text.h"
#include "report/history/engine.h"
#include "report/history/libpq.h"

namespace weir::history {
namespace {

// Advisory locks belong to one database; "Weir" as four bytes.
constexpr std::int64_t kLock = 0x57656972;
constexpr int kPatienceS = 60;                        // for one statement, and for a lock
constexpr std::uint64_t kMostBytes = 4ULL << 30;      // of the rows of one statement
constexpr int kRowsToDrain = 64;                      // cheaper than asking the server to stop
constexpr std::chrono::seconds kPatienceAtStart{10};  // with a server that is just starting

// "?" outside of quotes becomes $1, $2, ...
std::string numbered(const std::string& sql) {
  std::string text;
  bool is_quoted = false;
  int count = 0;
  for (const char c : sql) {
    if (c == '\'') is_quoted = !is_quoted;
    if (c == '?' && !is_quoted)
      text += fmt::format("${}", ++count);
    else
      text += c;
  }
  return text;
}

// Texts of PostgreSQL are UTF-8 without NUL; what a file said may be anything.
std::string storable(std::string_view text) {
  const std::string valid = as_utf8(text);
  std::string kept;
  kept.reserve(valid.size());
  for (const char c : valid) c == '\0' ? kept += "\xef\xbf\xbd" : kept += c;
  return kept;
}

template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

class PostgresQuery;

class PostgresEngine final : public Engine {
 public:
  PostgresEngine(const std::string& where, DatabaseAccess access);
  ~PostgresEngine() override { pq_.close(connection_); }

  const std::string& name() const noexcept override { return name_; }
  std::unique_ptr<Query> query(const std::string& sql) override;
  void run(const std::string& sql) override;
  std::string definition(const std::string& sql) const override;
  void begin(Writing writing) override;
  void commit() override { run("COMMIT"); }
  void roll_back() noexcept override { pq_.clear(pq_.execute(connection_, "ROLLBACK")); }
  void reconnect() override;
  std::int64_t version() override;
  void set_version(std::int64_t version) override {
    run(
        fmt::format("CREATE TABLE IF NOT EXISTS history_version(version BIGINT NOT NULL); DELETE FROM history_version; "
                    "INSERT INTO history_version VALUES ({})",
                    version));
  }
  bool has_table(const std::string& table) override {
    const auto found = query(
        "SELECT count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = 'weir' AND c.relkind = 'r' AND c.relname = ?");
    found->bind_text(0, table);
    return found->next() && found->integer(0) == 1;
  }
  std::uint64_t size_bytes() override;

  const LibPq& pq() const { return pq_; }
  void* connection() const { return connection_; }
  // Throws the error of a result, or of the connection where there is none.
  [[noreturn]] void fail_with(const void* result) const;
  // The name of a statement that the server has planned.
  const std::string& prepared(const std::string& sql);

  PostgresQuery* active = nullptr;  // whose rows are not read to their end

 private:
  void* attempt();  // a connection, good or not
  void set_up();

  std::string where_, name_;
  DatabaseAccess access_;
  const LibPq& pq_;
  void* connection_ = nullptr;
  std::map<std::string, std::string> prepared_;
};

class PostgresQuery final : public Query {
 public:
  PostgresQuery(PostgresEngine& engine, const std::string& sql) : engine_(engine), sql_(numbered(sql)) {}
  ~PostgresQuery() override {
    try {
      stop();
    } catch (const Error&) {  // the connection is gone, which the next statement will say
    }
  }

  void bind_null(int at) override { at_index(at) = {}; }
  void bind(int at, std::int64_t value) override { at_index(at) = {fmt::to_string(value), true, false}; }
  void bind(int at, double value) override { at_index(at) = {fmt::format("{}", value), true, false}; }
  void bind_text(int at, std::string_view text) override { at_index(at) = {storable(text), true, false}; }
  void bind_bytes(int at, std::string_view bytes) override { at_index(at) = {std::string(bytes), true, true}; }
  bool next() override;
  void reset() override {
    stop();
    values_.clear();
  }

  std::optional<std::int64_t> integer(int column) const override { return number_of<std::int64_t>(view(column)); }
  std::optional<double> real(int column) const override { return number_of<double>(view(column)); }
  std::string text(int column) const override { return std::string(view(column)); }
  std::string bytes(int column) const override;

 private:
  struct Value {
    std::string text;
    bool is_there = false, is_binary = false;
  };
  Value& at_index(int at) {
    if (values_.size() <= static_cast<std::size_t>(at)) values_.resize(static_cast<std::size_t>(at) + 1);
    return values_[static_cast<std::size_t>(at)];
  }
  std::string_view view(int column) const {
    const LibPq& pq = engine_.pq();
    if (row_ == nullptr || column >= pq.columns(row_) || pq.is_null(row_, 0, column) != 0) return {};
    return {pq.value(row_, 0, column), static_cast<std::size_t>(pq.length(row_, 0, column))};
  }
  void start();
  void stop();
  void take_row(void* row) {
    if (row_ != nullptr) engine_.pq().clear(row_);
    row_ = row;
  }

  PostgresEngine& engine_;
  std::string sql_;
  std::vector<Value> values_;
  void* row_ = nullptr;
  bool is_running_ = false;
  int runs_ = 0;
  std::uint64_t bytes_ = 0;
};

void PostgresQuery::start() {
  if (engine_.active != nullptr) throw std::logic_error("rows of another statement are not read to their end");
  const LibPq& pq = engine_.pq();
  std::vector<const char*> texts;
  std::vector<int> lengths, forms;
  for (const Value& value : values_) {
    texts.push_back(value.is_there ? value.text.c_str() : nullptr);
    lengths.push_back(static_cast<int>(value.text.size()));
    forms.push_back(value.is_binary ? 1 : 0);
  }
  const int count = static_cast<int>(values_.size());
  // Planned once where it is run again and again.
  const int sent = ++runs_ == 1 ? pq.send(engine_.connection(), sql_.c_str(), count, nullptr, texts.data(),
                                          lengths.data(), forms.data(), 0)
                                : pq.send_prepared(engine_.connection(), engine_.prepared(sql_).c_str(), count,
                                                   texts.data(), lengths.data(), forms.data(), 0);
  if (sent == 0) engine_.fail_with(nullptr);
  pq.one_by_one(engine_.connection());
  is_running_ = true;
  engine_.active = this;
  bytes_ = 0;
}

bool PostgresQuery::next() {
  if (!is_running_) start();
  const LibPq& pq = engine_.pq();
  void* const result = pq.result(engine_.connection());
  const int status = result == nullptr ? -1 : pq.status(result);
  if (status == kSingleTuple) {
    take_row(result);
    for (int i = 0; i < pq.columns(row_); ++i) bytes_ += static_cast<std::uint64_t>(pq.length(row_, 0, i));
    if (bytes_ > kMostBytes)
      reject(fmt::format("{}: a statement answers with more than {} GiB", engine_.name(), kMostBytes >> 30),
             "Is it a history of Weir? --machine and --workload select less.");
    return true;
  }
  take_row(nullptr);
  is_running_ = false;
  engine_.active = nullptr;
  if (status == kTuplesOk || status == kCommandOk) {
    pq.clear(result);
    while (void* const more = pq.result(engine_.connection())) pq.clear(more);
    return false;
  }
  try {
    engine_.fail_with(result);
  } catch (...) {
    if (result != nullptr) pq.clear(result);
    while (void* const more = pq.result(engine_.connection())) pq.clear(more);
    throw;
  }
}

// Rows that nobody wants: a few are read, for more the server is asked to stop.
void PostgresQuery::stop() {
  take_row(nullptr);
  if (!is_running_) return;
  is_running_ = false;
  engine_.active = nullptr;
  const LibPq& pq = engine_.pq();
  for (int count = 0;; ++count) {
    void* const result = pq.result(engine_.connection());
    if (result == nullptr) return;
    pq.clear(result);
    if (count != kRowsToDrain) continue;
    if (void* const cancellation = pq.cancellation(engine_.connection())) {
      std::array<char, 256> message{};
      pq.cancel(cancellation, message.data(), static_cast<int>(message.size()));
      pq.free_cancellation(cancellation);
    }
  }
}

// \x6980: two digits for each byte.
std::string PostgresQuery::bytes(int column) const {
  std::string_view digits = view(column);
  if (!digits.starts_with("\\x") || digits.size() % 2 != 0) return {};
  digits.remove_prefix(2);
  std::string bytes;
  bytes.reserve(digits.size() / 2);
  const auto digit = [](char c) { return c >= 'a' ? c - 'a' + 10 : c - '0'; };
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes += static_cast<char>(digit(digits[i]) << 4 | digit(digits[i + 1]));
  return bytes;
}

const LibPq& needed_library(const std::string& name) {
  std::string reason;
  if (const LibPq* const library = libpq(&reason)) return *library;
  reject(fmt::format("{}: {}", name, reason), "Install libpq5, or name a file with --db.");
}

PostgresEngine::PostgresEngine(const std::string& where, DatabaseAccess access)
    : where_(where), name_(without_password(where)), access_(access), pq_(needed_library(name_)) {
  if (ConnectionOption* const options = pq_.parse(where.c_str(), nullptr))
    pq_.free_options(options);
  else  // libpq's message would quote parts of it, which may be the password
    reject(fmt::format("{}: libpq cannot read this address", name_), "Write postgresql://USER@HOST/DATABASE.");
  const auto begin = std::chrono::steady_clock::now();
  for (;; std::this_thread::sleep_for(std::chrono::milliseconds(100))) {
    connection_ = attempt();
    if (pq_.connection_status(connection_) == kConnectionOk) break;
    const std::string reason = first_line(pq_.error(connection_));
    pq_.close(connection_);
    // FATAL:  the database system is starting up / is in recovery mode / sorry, too many clients already
    const auto says = [&](std::string_view words) { return reason.find(words) != std::string::npos; };
    if ((says("starting up") || says("recovery") || says("shutting down") || says("too many clients")) &&
        std::chrono::steady_clock::now() - begin < kPatienceAtStart)
      continue;
    fail(fmt::format("{}: cannot connect: {}", name_, reason),
         "Is the server running, and may you connect? A password comes from ~/.pgpass or PGPASSWORD.");
  }
  try {
    set_up();
  } catch (...) {
    pq_.close(connection_);
    throw;
  }
}

void* PostgresEngine::attempt() {
  // What the address says comes after our defaults, and wins.
  constexpr std::array<const char*, 6> kNames = {
      "fallback_application_name", "connect_timeout", "tcp_user_timeout", "dbname", "client_encoding", nullptr};
  const std::array<const char*, 6> values = {"weir", "10", "30000", where_.c_str(), "UTF8", nullptr};
  return pq_.connect(kNames.data(), values.data(), 1);
}

void PostgresEngine::set_up() {
  pq_.on_notice(connection_, [](void*, const char*) {}, nullptr);  // libpq would print them
  run(
      fmt::format("SET search_path = weir, pg_temp; SET statement_timeout = '{0}s'; SET lock_timeout = '{0}s'; "
                  "SET idle_in_transaction_session_timeout = '{0}s'; SET bytea_output = hex; "
                  "SET extra_float_digits = 1; SET default_transaction_read_only = {1}",
                  kPatienceS, access_ == DatabaseAccess::read ? "on" : "off"));
}

void PostgresEngine::reconnect() {
  pq_.close(connection_);
  active = nullptr;
  prepared_.clear();
  connection_ = attempt();
  if (pq_.connection_status(connection_) != kConnectionOk)
    throw TryAgain(
        fmt::format("{}: the connection broke, and there is no new one: {}", name_, first_line(pq_.error(connection_))),
        "Try again; nothing is added twice.", true);
  set_up();
}

std::unique_ptr<Query> PostgresEngine::query(const std::string& sql) {
  return std::make_unique<PostgresQuery>(*this, sql);
}

void PostgresEngine::run(const std::string& sql) {
  void* const result = pq_.execute(connection_, sql.c_str());
  const int status = result == nullptr ? -1 : pq_.status(result);
  if (status == kCommandOk || status == kTuplesOk) {
    pq_.clear(result);
    return;
  }
  try {
    fail_with(result);
  } catch (...) {
    if (result != nullptr) pq_.clear(result);
    throw;
  }
}

const std::string& PostgresEngine::prepared(const std::string& sql) {
  const auto found = prepared_.find(sql);
  if (found != prepared_.end()) return found->second;
  const std::string title = fmt::format("weir_{}", prepared_.size());
  void* const result = pq_.prepare(connection_, title.c_str(), sql.c_str(), 0, nullptr);
  const bool is_good = result != nullptr && pq_.status(result) == kCommandOk;
  if (!is_good) {
    try {
      fail_with(result);
    } catch (...) {
      if (result != nullptr) pq_.clear(result);
      throw;
    }
  }
  pq_.clear(result);
  return prepared_[sql] = title;
}

std::string PostgresEngine::definition(const std::string& sql) const {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kTypes = {
      {{"INTEGER PRIMARY KEY AUTOINCREMENT", "INTEGER PRIMARY KEY"},
       {"INTEGER PRIMARY KEY", "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"},
       {" INTEGER", " BIGINT"},
       {" REAL", " DOUBLE PRECISION"},
       {" BLOB", " BYTEA"},
       {" TEXT", " TEXT COLLATE \"C\""}}};  // in the order of bytes, as in SQLite
  std::string text = sql;
  for (const auto& [from, to] : kTypes)
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  // Where an administrator has made the schema, nobody else needs the right to make one.
  return "DO $$ BEGIN IF to_regnamespace('weir') IS NULL THEN CREATE SCHEMA weir; END IF; END $$;" + text;
}

void PostgresEngine::begin(Writing writing) {
  const bool is_alone = writing == Writing::alone;
  run(fmt::format("BEGIN ISOLATION LEVEL READ COMMITTED; {}SELECT pg_advisory_xact_lock{}({})",
                  is_alone ? "SET LOCAL statement_timeout = '30min'; " : "", is_alone ? "" : "_shared", kLock));
}

std::int64_t PostgresEngine::version() {
  if (!has_table("history_version")) return 0;
  const auto row = query("SELECT max(version) FROM history_version");
  return row->next() ? row->integer(0).value_or(-1) : -1;
}

std::uint64_t PostgresEngine::size_bytes() {
  const auto row = query(
      "SELECT CAST(coalesce(sum(pg_total_relation_size(c.oid)), 0) AS BIGINT) FROM pg_catalog.pg_class c "
      "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'weir' AND c.relkind = 'r'");
  return row->next() ? static_cast<std::uint64_t>(std::max<std::int64_t>(0, row->integer(0).value_or(0))) : 0;
}

void PostgresEngine::fail_with(const void* result) const {
  const char* const state = result == nullptr ? nullptr : pq_.result_field(result, kFieldOfState);
  const char* const message = result == nullptr ? nullptr : pq_.result_field(result, kFieldOfMessage);
  throw_server_error(name_, state == nullptr ? "" : state,
                     first_line(message != nullptr  ? message
                                : result == nullptr ? pq_.error(connection_)
                                                    : pq_.result_error(result)),
                     pq_.connection_status(connection_) == kConnectionOk, kPatienceS);
}

}  // namespace

std::string postgres_shortfall() {
  std::string reason;
  libpq(&reason);
  return reason;
}

std::unique_ptr<Engine> open_postgres(const std::string& where, DatabaseAccess access) {
  return std::make_unique<PostgresEngine>(where, access);
}

}  // namespace weir::history
