// The streams of a session on a GPU: as urgent as their most urgent command, or confined to parts of the device. Knows
// the two ways of vendors to confine one: masks of compute units (HIP), and parts that the driver cuts (CUDA).
#pragma once

#include <vector>

#include "device/gpu/context.h"

namespace weir {

// What streams are confined to; nothing where `units` is 0.
struct GpuConfinement {
  int units = 0;         // that each gets, at least
  int rest_stream = -1;  // gets what the others leave; -1: none does
};

struct GpuStreams {
  // Rejects a confinement that leaves a stream without units.
  GpuStreams(PrimaryContext& context, const GpuFacts& facts, const Step& step, const Placement& placement,
             const GpuConfinement& confinement);

  std::vector<GpuPartOwner> parts;  // outlive their streams
  std::vector<GpuStreamOwner> owners;
  std::vector<GpuStream> handles;
  std::vector<int> compute_units;  // that each is confined to; 0: it is not

 private:
  void make_masked(const GpuApi& api, int all, int count, const GpuConfinement& confinement);
  void make_in_parts(const GpuApi& api, int device, const std::vector<int>& priorities,
                     const GpuConfinement& confinement);
  void add(GpuStreamOwner stream, int units);
};

// Whether the table can confine streams, in either way.
Capability can_confine(const GpuApi& api);
// Units that each stream gets where so many are wanted. Rejects what the device cannot give.
int confined_units(const PrimaryContext& context, const GpuFacts& facts, int wanted);

}  // namespace weir
