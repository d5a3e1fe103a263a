// Stores built libraries by what they were built from. Knows files and hashes; starts no compiler.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/cache_folder.h"

namespace weir::package {

// Writes weir/NAME below `folder` for each embedded header, unless it is already there with the same content.
void write_headers(const std::filesystem::path& folder);

// Adds names and contents of all files in a package's folder that a compiler could include. Rejects a folder with more
// than 4096 such files or 64 MiB of them.
void add_sources(ContentHash& hash, const std::filesystem::path& folder);

// One entry: KEY.so, and KEY.deps, which lists the files that it was built from with their hashes.
class CacheEntry {
 public:
  CacheEntry(std::filesystem::path cache, const std::string& name, const std::string& key);
  // Whether it was built before, from the same files.
  bool is_fresh() const;
  const std::filesystem::path& library() const { return library_; }
  const std::filesystem::path& log() const { return log_; }  // output of the last compiler run
  // Temporary names to build under.
  std::filesystem::path unfinished() const;
  std::filesystem::path unfinished_deps() const;
  // Moves the built files into place. `own` is the folder of Weir's headers, which the key covers. The package's
  // headers are listed although their contents are in the key too: a source may include files that add_sources() does
  // not see, through a link to a folder or with another extension. Also cleans up on failure.
  void take(const std::filesystem::path& own) const;
  void discard() const;

 private:
  std::filesystem::path library_, deps_, log_;
};

}  // namespace weir::package
