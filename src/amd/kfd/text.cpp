#include "amd/kfd/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>

#include "base/error.h"
#include "base/file.h"

namespace weir::kfd {

void UnreadCounts::add(std::string_view reason, std::size_t line) {
  const auto at =
      std::find_if(all_.begin(), all_.end(), [&](const UnreadLines& each) { return each.reason == reason; });
  if (at != all_.end()) {
    ++at->count;
  } else {
    all_.push_back({std::string(reason), 1, line});
  }
}

bool Lines::next(std::string_view& line) {
  if (rest_.empty()) return false;
  const void* const end = std::memchr(rest_.data(), '\n', rest_.size());
  const std::size_t size = end ? static_cast<std::size_t>(static_cast<const char*>(end) - rest_.data()) : rest_.size();
  line = rest_.substr(0, size);
  rest_.remove_prefix(std::min(size + 1, rest_.size()));
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  ++number_;
  return true;
}

bool Cursor::take(std::string_view word) noexcept {
  if (!rest_.starts_with(word)) return false;
  rest_.remove_prefix(word.size());
  return true;
}

bool Cursor::take(int& decimal) noexcept {
  unsigned value = 0;  // a number without a sign
  const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
  if (error != std::errc() || value > INT_MAX) return false;
  decimal = static_cast<int>(value);
  rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
  return true;
}

bool Cursor::take(std::uint32_t& hex, std::size_t least) noexcept {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value, 16);
  const auto used = static_cast<std::size_t>(end - rest_.data());
  if (error != std::errc() || used < least || used > 8) return false;
  hex = value;
  rest_.remove_prefix(used);
  return true;
}

bool parse_hex_row(std::string_view line, std::size_t indent, HexRow& row) noexcept {
  if (line.size() < indent + 18 || line.find_first_not_of(' ') != indent) return false;
  Cursor cursor(line.substr(indent));
  if (!cursor.take(row.at, 8) || !cursor.take(":")) return false;
  row.count = 0;
  while (!cursor.is_done()) {
    if (row.count == 8 || !cursor.take(" ") || !cursor.take(row.words[row.count], 8)) return false;
    ++row.count;
  }
  return row.count > 0;
}

void check_is_text(std::string_view text, const std::string& name) {
  if (text.empty())
    reject(fmt::format("{}: the file is empty", name),
           "KFD's files in debugfs have no size: copy them with cat, not with tools that trust the size. An mqds that "
           "is really empty says that no process has queues.");
  const std::string_view start = text.substr(0, 4096);
  const auto odd = std::count_if(start.begin(), start.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x7f || (byte < 0x20 && byte != '\n' && byte != '\r' && byte != '\t' && byte != 0x1b);
  });
  if (text.find('\0') != std::string_view::npos || static_cast<std::size_t>(odd) * 10 > start.size())
    reject(fmt::format("{}: a binary file, not text of KFD", name),
           "Give text of /sys/kernel/debug/kfd/hqds, mqds or rls.");
}

ReadText read_text(const std::filesystem::path& path, std::size_t limit_bytes) {
  // O_NONBLOCK: a FIFO in that place must not block. Files of debugfs and sysfs do not report their size.
  const Descriptor file = open_kernel_file(path.string(), O_RDONLY | O_NONBLOCK);
  std::string text;
  if (!file || !read_all(file.get(), text, limit_bytes)) return {std::nullopt, errno};
  if (text.size() > limit_bytes) return {std::nullopt, EFBIG};
  return {std::move(text), 0};
}

}  // namespace weir::kfd
