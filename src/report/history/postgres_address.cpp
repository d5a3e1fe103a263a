// Addresses of PostgreSQL databases: what is one, and what of it may be printed. Connects to nothing.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "report/history/engine.h"
#include "report/history/libpq.h"

namespace weir::history {
namespace {

// host=... and the like begin a connection string of keywords.
bool is_keywords(std::string_view where) {
  constexpr std::array<std::string_view, 7> kKeywords = {
      "host=", "hostaddr=", "dbname=", "service=", "user=", "port=", "password="};
  return std::any_of(kKeywords.begin(), kKeywords.end(),
                     [&](std::string_view each) { return where.starts_with(each); });
}

}  // namespace

bool is_postgres(std::string_view where) {
  return where.starts_with("postgresql://") || where.starts_with("postgres://") || is_keywords(where);
}

std::string without_password(std::string_view where) {
  if (is_keywords(where)) {
    const LibPq* const pq = libpq();
    ConnectionOption* const options = pq == nullptr ? nullptr : pq->parse(std::string(where).c_str(), nullptr);
    if (options == nullptr) return "PostgreSQL";
    std::string shown;
    for (const ConnectionOption* option = options; option->keyword != nullptr; ++option)
      for (const std::string_view keyword : {"service", "host", "hostaddr", "port", "user", "dbname"})
        if (option->value != nullptr && option->keyword == keyword)
          shown += fmt::format("{}{}={}", shown.empty() ? "" : " ", keyword, option->value);
    pq->free_options(options);
    return is_postgres(shown) ? shown : "PostgreSQL";
  }
  // postgresql://user:password@host:1/db?password=x. What may be a password is left out.
  const std::size_t begin = where.find("://") + 3;
  const std::size_t question = std::min(where.find('?'), where.size());
  std::string shown(where.substr(0, begin));
  std::string_view place = where.substr(begin, question - begin);
  if (const std::size_t end = where.rfind('@'); end != std::string_view::npos && end >= begin) {
    const std::string_view user = where.substr(begin, end - begin);
    shown += std::string(user.substr(0, user.find_first_of(":@/?"))) + "@";
    place = end < question ? where.substr(end + 1, question - end - 1) : std::string_view();
  }
  shown += place;
  // Of the settings, the folder of the server's socket says where it is.
  for (std::size_t at = question; at < where.size();) {
    const std::size_t end = std::min(where.find('&', at + 1), where.size());
    const std::string_view setting = where.substr(at + 1, end - at - 1);
    for (const std::string_view key : {"host=", "port=", "dbname=", "user="})
      if (setting.starts_with(key) && setting.find('@') == std::string_view::npos)
        shown += fmt::format("{}{}", shown.find('?') == std::string::npos ? "?" : "&", setting);
    at = end;
  }
  return shown;
}

}  // namespace weir::history
