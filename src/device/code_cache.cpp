#include "device/code_cache.h"

#include <filesystem>

#include "base/cache_folder.h"
#include "base/error.h"
#include "base/file.h"

namespace weir {
namespace {

constexpr std::uint64_t kLargestCode = std::uint64_t{64} << 20;

std::optional<std::filesystem::path> file_of(const std::string& key) {
  const auto folder = cache_folder("regions");
  if (!folder) return std::nullopt;
  make_private(*folder, true);
  return *folder / key;
}

// A file begins with the hash of what follows: "0123...ef\n". Loading a truncated library would crash the process.
std::string hash_line(std::string_view code) { return ContentHash().add(code).text() + "\n"; }

}  // namespace

std::optional<std::string> kept_code(const std::string& key) try {
  const auto file = file_of(key);
  if (!file || !std::filesystem::is_regular_file(*file)) return std::nullopt;
  std::string text = read_file(*file, kLargestCode);
  const std::size_t end = text.find('\n');
  if (end == std::string::npos || hash_line(std::string_view(text).substr(end + 1)) != text.substr(0, end + 1))
    return std::nullopt;
  text.erase(0, end + 1);
  return text;
} catch (const std::exception&) {
  return std::nullopt;
}

void keep_code(const std::string& key, std::string_view code) try {
  if (const auto file = file_of(key)) write_file(*file, hash_line(code) + std::string(code), true);
} catch (const std::exception&) {  // see the header
}

}  // namespace weir
