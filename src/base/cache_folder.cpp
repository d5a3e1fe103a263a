#include "base/cache_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace weir {

namespace fs = std::filesystem;

std::optional<fs::path> cache_folder(std::string_view name) {
  const auto below = [&](const char* variable, const char* part) -> std::optional<fs::path> {
    const char* const folder = std::getenv(variable);
    if (folder == nullptr || !fs::path(folder).is_absolute()) return std::nullopt;
    return fs::path(folder) / part / "weir" / name;
  };
  const std::optional<fs::path> found = below("XDG_CACHE_HOME", "");
  return found ? found : below("HOME", ".cache");
}

void ContentHash::add_byte(unsigned char byte) {
  constexpr Wide kPrime = (Wide{0x1000000} << 64) | 0x13b;
  state_ = (state_ ^ byte) * kPrime;
}

ContentHash& ContentHash::add(std::string_view piece) {
  for (std::uint64_t size = piece.size(), i = 0; i < 8; ++i) add_byte(static_cast<unsigned char>(size >> (8 * i)));
  for (const char c : piece) add_byte(static_cast<unsigned char>(c));
  return *this;
}

std::string ContentHash::text() const {
  return fmt::format("{:016x}{:016x}", static_cast<std::uint64_t>(state_ >> 64), static_cast<std::uint64_t>(state_));
}

void make_private(const fs::path& folder, bool is_secret) {
  std::error_code status;
  if (folder.has_parent_path()) fs::create_directories(folder.parent_path(), status);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    fail(fmt::format("{}: cannot be made: {}", folder.string(), std::strerror(errno)), "Choose another cache folder.");
  struct stat found{};
  if (::lstat(folder.c_str(), &found) != 0)
    fail(fmt::format("{}: {}", folder.string(), std::strerror(errno)), "Choose another cache folder.");
  if (!S_ISDIR(found.st_mode))
    reject(fmt::format("{}: is not a folder{}", folder.string(), S_ISLNK(found.st_mode) ? " but a link" : ""),
           "Remove it, or choose another cache folder.");
  if (found.st_uid != ::geteuid())
    reject(fmt::format("{}: belongs to another user, who could change what is run from it", folder.string()),
           "Choose another cache folder.");
  if ((found.st_mode & (is_secret ? 077U : 022U)) != 0)
    reject(fmt::format("{}: is open to others (mode {:o}), who could change what is run from it", folder.string(),
                       found.st_mode & 07777U),
           fmt::format("chmod 700 {}", folder.string()));
}

}  // namespace weir
