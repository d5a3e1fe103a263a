// Finds MPI at run time. MPI has no stable binary interface, so a separate module calls it, libweir_mpi.so, compiled
// against the local MPI (docs/adr/0009-mpi-by-module.md). Reads no environment and starts nothing.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "device/rank/communicator.h"

namespace weir {

// The table behind the module's one symbol, `weir_mpi_module`. The first two members never move.
struct MpiModule {
  int interface;                            // kMpiModuleInterface of the module
  const char* weir_version;                 // version of weir that it was built from
  std::string (*library)();                 // "Open MPI 4.1.4"; works before open()
  std::unique_ptr<Communicator> (*open)();  // initialises MPI; destroying what it returns finalises it
};

inline constexpr int kMpiModuleInterface = 2;
inline constexpr const char* kMpiModuleSymbol = "weir_mpi_module";

struct MpiFound {
  const MpiModule* module = nullptr;
  std::string reason;  // why no module was found
};

// Looks next to `binary`, then in ../lib/weir from there. A module stays loaded.
MpiFound find_mpi_module(const std::filesystem::path& binary);

}  // namespace weir
