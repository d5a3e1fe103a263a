// Regions compiled by the system's C++ compiler, which runs as a limited child process. Knows no step.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/descriptor.h"
#include "base/error.h"
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
  // no compiler, if it failed, for this region or an earlier one, or after an interrupt; `done` then has the reason,
  // and counts what happened in any case. May be called from any thread.
  RegionFunction find(const KernelShape& shape, Compilation& done);

 private:
  struct Loaded {
    Descriptor memory;  // stays open: the loader knows libraries by name, and the number is the name
    void* library = nullptr;
    RegionFunction function = nullptr;
  };
  RegionFunction find_or_throw(const KernelShape& shape, Compilation& done);

  std::mutex mutex_;
  std::string compiler_;
  std::string version_;                   // empty until it was asked for
  std::optional<Error> failure_;          // the first: a compiler that hangs costs its time once
  std::map<std::string, Loaded> loaded_;  // by key
};

}  // namespace weir::cpu
