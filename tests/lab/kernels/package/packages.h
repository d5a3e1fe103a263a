// Kernel packages made for tests, each in a temporary folder with a cache of its own.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "lab/kernels/package/package.h"
#include "lab/kernels/package/ready_kernel.h"

namespace weir::testing {

// y = 2 x + 1 with `n` elements; macros of compile flags make it go wrong in one way or another.
extern const char* const kScaleSource;

class PackageFolder {
 public:
  PackageFolder();
  ~PackageFolder();
  PackageFolder(const PackageFolder&) = delete;
  PackageFolder& operator=(const PackageFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::string& name, std::string_view text, bool is_executable = false) const;
  // A package of that file, found by its name as discovery does.
  package::Package package(const std::string& file, std::vector<std::string> flags = {}) const;
  package::Package scale(std::vector<std::string> flags = {}) const {
    write("kernel.cpp", kScaleSource);
    return package("kernel.cpp", std::move(flags));
  }
  package::OpenOptions options() const;
  std::vector<std::filesystem::path> cached(const std::string& ending) const;

 private:
  std::filesystem::path root_, path_;
};

// What an Error says, with its hint; empty where nothing is thrown.
template <class Function>
std::string words_of(Function&& function) {
  try {
    function();
  } catch (const Error& error) {
    return std::string(error.what()) + " | " + error.hint;
  }
  return {};
}

}  // namespace weir::testing
