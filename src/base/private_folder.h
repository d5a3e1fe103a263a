// A folder for the files of one run, accessible to this user only; removed with its contents, unless kept, also where a
// second signal ends this process.
#pragma once

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/stop.h"

namespace weir {

class PrivateFolder {
 public:
  PrivateFolder() {
    std::error_code status;
    const std::filesystem::path parent = std::filesystem::temp_directory_path(status);
    if (status) fail("there is no folder for temporary files", "Set TMPDIR to one that exists.");
    std::string name = (parent / "weir_child_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      fail(fmt::format("{}: cannot make a folder: {}", parent.string(), std::strerror(errno)),
           "Set TMPDIR to a folder that you may write to.");
    path_ = name;
    cut_.emplace(path_);
  }
  ~PrivateFolder() {
    if (is_kept_) return;
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  void keep() {
    is_kept_ = true;
    cut_.reset();
  }

 private:
  std::filesystem::path path_;
  std::optional<RemovedWhenCut> cut_;
  bool is_kept_ = false;
};

}  // namespace weir
