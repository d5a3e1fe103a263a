// The folder that a capture writes: accessible to its owner only, with only new files. Root may write here, so nothing
// is opened through a link, even if the folder is moved meanwhile. Knows no part of a capture.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"

namespace weir::amd {

class CaptureFolder {
 public:
  // Creates it, mode 0700. Rejects a link, another user's folder, one that others may write to, and one that is not
  // empty; with `is_forced` an earlier capture in it is removed, and nothing else.
  CaptureFolder(const std::filesystem::path& path, bool is_forced);

  // The path as the kernel reports it now, without links.
  const std::filesystem::path& path() const { return path_; }
  // A path that another program can write to during the lifetime of this object. Where another user may rename the
  // folder and put another in its place, it goes through this object's descriptor, which stays with the folder;
  // otherwise it is the path.
  std::filesystem::path steady_path() const;

  // Writes a new file below it. Returns the error, such as "snapshots/before/hqds: No space left on device", or an
  // empty string.
  std::string write(const std::string& name, std::string_view text);
  // Replaces a file with a single rename; a link there is replaced, never followed.
  std::string replace(const std::string& name, std::string_view text);

  struct Copied {
    std::string problem;  // empty: none
    bool is_made = false, is_cut = false;
    std::uint64_t bytes = 0;
  };
  // Copies from `from`, up to `most` bytes, or until `is_stopped`.
  Copied copy(int from, const std::string& name, std::uint64_t most, const std::function<bool()>& is_stopped = {});

  // The first file that could not be written, and why; empty: none.
  const std::string& failure() const { return failure_; }

  // Regular files directly in it whose names begin with `prefix`, sorted.
  std::vector<std::string> files(const std::string& prefix) const;
  // Size of a regular file, or of everything below a folder; 0 where there is none.
  std::uint64_t bytes(const std::string& name) const;

 private:
  // What errno says of a file that could not be written; remembers the first.
  std::string write_problem(const std::string& name);
  // Creates a file and its folders; -1 and errno where that is not possible.
  int create(const std::string& name);
  void remove_capture();

  std::filesystem::path path_;
  Descriptor folder_;
  std::string failure_;
};

}  // namespace weir::amd
