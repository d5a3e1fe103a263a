// A temporary folder of kernel packages for tests.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace weir::testing {

class PackageTree {
 public:
  PackageTree() {
    std::string name = (std::filesystem::temp_directory_path() / "weir-packages-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~PackageTree() {
    std::error_code status;
    std::filesystem::remove_all(path_, status);
  }
  PackageTree(const PackageTree&) = delete;
  PackageTree& operator=(const PackageTree&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // Writes a file below the tree, with its folders.
  std::filesystem::path put(const std::string& name, std::string_view text = "", bool is_executable = false) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
    if (is_executable)
      std::filesystem::permissions(file, std::filesystem::perms::owner_exec, std::filesystem::perm_options::add);
    return file;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace weir::testing
