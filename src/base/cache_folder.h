// Folders where compiled code is kept between runs, by what it was compiled from.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace weir {

// ~/.cache/weir/NAME, or below XDG_CACHE_HOME; nothing where this user has neither.
std::optional<std::filesystem::path> cache_folder(std::string_view name);

// FNV-1a of 128 bits over framed pieces: ("ab", "c") differs from ("a", "bc"). Distinguishes sources; it does not
// protect against deliberate collisions, whose author could write into the package anyway.
class ContentHash {
 public:
  ContentHash& add(std::string_view piece);
  std::string text() const;  // 32 hexadecimal digits

 private:
  __extension__ using Wide = unsigned __int128;
  void add_byte(unsigned char byte);
  Wide state_ = (Wide{0x6c62272e07bb0142U} << 64) | 0x62b821756295c58dU;
};

// Ensures a folder that belongs to this user and, if `is_secret`, that nobody else can read: others could put code
// there that Weir runs. Creates it if missing. Rejects one that is a link, somebody else's or open to others.
void make_private(const std::filesystem::path& folder, bool is_secret);

}  // namespace weir
