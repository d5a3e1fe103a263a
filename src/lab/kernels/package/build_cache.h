// Where built libraries are kept, by what they were built from. Knows files and hashes; starts no compiler.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace weir::package {

// FNV-1a of 128 bits over framed pieces: ("ab", "c") differs from ("a", "bc"). Tells sources apart; it does not guard
// against somebody who looks for collisions, who could as well write into the package.
class ContentHash {
 public:
  ContentHash& add(std::string_view piece);
  std::string text() const;  // 32 hexadecimal digits

 private:
  __extension__ using Wide = unsigned __int128;
  void add_byte(unsigned char byte);
  Wide state_ = (Wide{0x6c62272e07bb0142U} << 64) | 0x62b821756295c58dU;
};

// A folder that is ours and, where `is_secret`, nobody else's to read: others could put code there that we run. Made
// where it is missing. Rejects one that is a link, somebody else's or open to others.
void make_private(const std::filesystem::path& folder, bool is_secret);

// Writes weir/NAME for each embedded header below `folder`, where it is not there as it should be.
void write_headers(const std::filesystem::path& folder);

// Adds names and contents of everything below a package's folder that a compiler could include. Rejects a folder with
// more than 4096 such files or 64 MiB of them.
void add_sources(ContentHash& hash, const std::filesystem::path& folder);

// One entry: KEY.so, and KEY.deps, which lists the files that went into it with their hashes.
class CacheEntry {
 public:
  CacheEntry(std::filesystem::path cache, const std::string& name, const std::string& key);
  // Built before, and of the same files.
  bool is_fresh() const;
  const std::filesystem::path& library() const { return library_; }
  const std::filesystem::path& log() const { return log_; }  // what the compiler said at last
  // Names to build under.
  std::filesystem::path unfinished() const;
  std::filesystem::path unfinished_deps() const;
  // Puts what was built in place. `own` is the folder of our headers, which the key covers. Those of the package are
  // listed although their contents are in the key too: a source may include what add_sources() does not see, behind
  // a link to a folder or by another ending. Clears up on failure too.
  void take(const std::filesystem::path& own) const;
  void discard() const;

 private:
  std::filesystem::path library_, deps_, log_;
};

}  // namespace weir::package
