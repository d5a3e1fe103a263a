// Names of functions by address: from the dynamic linker, and for this program from its own symbol table.
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
    std::uintptr_t begin = 0, end = 0;  // relative to own_base_
    std::string name;
  };
  void read_own_file();

  std::uintptr_t own_base_ = 0;
  std::vector<Function> own_;  // by address; empty if the file was stripped
};

}  // namespace weir
