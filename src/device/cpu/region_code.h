// Regions compiled by the system's C++ compiler, which runs as a limited child process. Knows no step.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "device/device.h"
#include "kernel/region.h"

namespace weir::cpu {

// A device's compiled regions. Its functions may be called as long as it lives.
class RegionCode {
 public:
  explicit RegionCode(std::string compiler) : compiler_(std::move(compiler)) {}
  ~RegionCode();
  RegionCode(const RegionCode&) = delete;
  RegionCode& operator=(const RegionCode&) = delete;

  // The function of a region: compiled earlier, from the user's cache, or from the compiler just now. Null if there is
  // no compiler, or if it fails; `done` then has the reason, and counts what happened in any case. May be called from
  // any thread.
  RegionFunction find(const KernelShape& shape, Compilation& done);

 private:
  struct Loaded {
    void* library = nullptr;
    RegionFunction function = nullptr;
  };
  RegionFunction find_or_throw(const KernelShape& shape, Compilation& done);

  std::mutex mutex_;
  std::string compiler_;
  std::string version_;                   // empty until it was asked for
  std::map<std::string, Loaded> loaded_;  // by key
};

}  // namespace weir::cpu
