// Names of functions by their address: what the dynamic linker knows, and of this program all that its file still
// holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weir {

class FunctionNames {
 public:
  FunctionNames();
  // "weir::cpu::Engine::work", "libcuda.so.1+0x1f2e0", "0x7f...". Not for signal handlers.
  std::string at(const void* address) const;

 private:
  struct Function {
    std::uintptr_t begin = 0, end = 0;  // less own_base_
    std::string name;
  };
  void read_own_file();

  std::uintptr_t own_base_ = 0;
  std::vector<Function> own_;  // by address; empty where the file was stripped
};

}  // namespace weir
