// Finds MPI at run time. MPI has no stable binary interface, so what calls it is a module of its own, libweir_mpi.so,
// compiled where its MPI is (docs/adr/0009-mpi-by-module.md). Reads no environment and starts nothing.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "device/rank/communicator.h"

namespace weir {

// What the module hands out through its one symbol, `weir_mpi_module`. The first two never change their place.
struct MpiModule {
  int interface;                            // kMpiModuleInterface of the module
  const char* weir_version;                 // that it was built from
  std::string (*library)();                 // "Open MPI 4.1.4"; works before open()
  std::unique_ptr<Communicator> (*open)();  // initialises MPI; destroying what it returns finalises it
};

inline constexpr int kMpiModuleInterface = 1;
inline constexpr const char* kMpiModuleSymbol = "weir_mpi_module";

struct MpiFound {
  const MpiModule* module = nullptr;
  std::string reason;  // why there is none
};

// Looks beside `binary`, then in ../lib/weir from there. A module stays loaded.
MpiFound find_mpi_module(const std::filesystem::path& binary);

}  // namespace weir
