// What errors of a PostgreSQL server mean to the user, and after which of them the same again may succeed. Knows SQL
// states; asks no server.
#include <fmt/format.h>

#include "report/history/engine.h"
#include "report/history/libpq.h"

namespace weir::history {

std::string first_line(const char* text) {
  std::string line = text == nullptr ? "" : text;
  line = line.substr(0, line.find('\n'));
  if (line.starts_with("ERROR:  ")) line.erase(0, 8);
  return line.substr(0, 500);
}

void throw_server_error(const std::string& name, std::string_view state, const std::string& reason, bool is_connected,
                        int patience_s) {
  const auto is = [&](std::string_view begin) { return state.starts_with(begin); };
  // 08: connection; 57P: the server shuts down or starts; 25P03: we were idle for too long; 53300: too many clients
  if (!is_connected || is("08") || is("57P") || is("25P03") || is("53300"))
    throw TryAgain(fmt::format("{}: the connection broke: {}", name, reason), "Try again; nothing is added twice.",
                   true);
  if (is("40001") || is("40P01"))  // serialization failure, deadlock
    throw TryAgain(fmt::format("{}: others changed the same rows again and again: {}", name, reason), "Try again.",
                   false);
  if (is("57014") || is("55P03"))
    fail(fmt::format("{}: the server took longer than {} s: {}", name, patience_s, reason),
         "Another process may be changing it; try again.");
  if (is("42501") || is("25006"))
    reject(fmt::format("{}: {}", name, reason), "Ask its administrator for the right, or name another one with --db.");
  if (is("42"))  // a table, a column or a type is not what a statement needs
    reject(fmt::format("{}: is not a history that this Weir can read: {}", name, reason), "--db names another one.");
  if (is("54") || is("22")) reject(fmt::format("{}: cannot keep this: {}", name, reason));
  fail(fmt::format("{}: {}", name, reason), is("53100") ? "The server's disk is full." : "");
}

}  // namespace weir::history
