// The streams of a session on a GPU: as urgent as their most urgent command, or confined to parts of the device. Knows
// both vendors' ways to confine a stream: masks of compute units (HIP), and parts made by the driver (CUDA).
#pragma once

#include <vector>

#include "device/gpu/context.h"

namespace weir {

// How streams are confined; not at all if `units` is 0.
struct GpuConfinement {
  int units = 0;         // per stream, at least
  int rest_stream = -1;  // gets all units that the others leave; -1: no stream does
};

struct GpuStreams {
  // Rejects a confinement that leaves a stream without units.
  GpuStreams(PrimaryContext& context, const GpuFacts& facts, const Step& step, const Placement& placement,
             const GpuConfinement& confinement);

  std::vector<GpuPartOwner> parts;  // outlive their streams
  std::vector<GpuStreamOwner> owners;
  std::vector<GpuStream> handles;
  std::vector<int> compute_units;  // per stream; 0: not confined

 private:
  void make_masked(const GpuApi& api, int all, int count, const GpuConfinement& confinement);
  void make_in_parts(const GpuApi& api, int device, const std::vector<int>& priorities,
                     const GpuConfinement& confinement);
  void add(GpuStreamOwner stream, int units);
};

// Whether the table can confine streams, by masks or by parts.
Capability can_confine(const GpuApi& api);
// Units that each stream gets if `wanted` are requested. Rejects a number that the device cannot provide.
int confined_units(const PrimaryContext& context, const GpuFacts& facts, int wanted);

}  // namespace weir
