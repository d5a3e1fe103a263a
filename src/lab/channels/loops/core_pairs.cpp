#include "lab/channels/loops/core_pairs.h"

#include "lab/channels/loops/team.h"
#include "measure/environment.h"
#include "weir_build.h"

#if WEIR_HAVE_HWLOC
#include <hwloc.h>

#include <memory>
#include <type_traits>
#endif

namespace weir::channel_bench {
namespace {

enum Kind { kSameCpu, kSameCore, kNeighbours, kOtherCache, kOtherNode, kOtherSocket };

std::vector<CorePair> all_missing() {
  return {
      {"same_cpu", "both threads on one processor, taking turns", 0, 0, "this process may use no processor"},
      {"same_core", "two hardware threads of one core", 0, 0, "no core here has two hardware threads"},
      {"neighbours", "two cores below one last-level cache", 0, 0, "no two cores here share a last-level cache"},
      {"other_cache", "two cores of one socket with a last-level cache each", 0, 0,
       "all cores of a socket share their last-level cache here"},
      {"other_node", "two cores of one socket at different memory nodes", 0, 0,
       "all cores of a socket have the same memory node here"},
      {"other_socket", "two cores in different sockets", 0, 0, "there is only one socket here"},
  };
}

#if WEIR_HAVE_HWLOC
using Topology = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, decltype(&hwloc_topology_destroy)>;

Topology load_topology() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return {nullptr, hwloc_topology_destroy};
  Topology owned(topology, hwloc_topology_destroy);
  if (hwloc_topology_load(topology) != 0) owned.reset();
  return owned;
}

// The objects that contain a processor; null if the machine (or its hypervisor) reports none.
struct Place {
  int core_number;
  hwloc_obj_t core, cache, socket;
  hwloc_const_nodeset_t nodes;
};

Kind kind_of(const Place& a, const Place& b) {
  if (a.core_number == b.core_number) return kSameCpu;
  if (a.socket != b.socket) return kOtherSocket;
  if (a.core != nullptr && a.core == b.core) return kSameCore;
  if (a.nodes != nullptr && b.nodes != nullptr && !hwloc_bitmap_isequal(a.nodes, b.nodes)) return kOtherNode;
  // Without information about caches, cores of one socket count as neighbours.
  return a.cache == b.cache ? kNeighbours : kOtherCache;
}

void find_pairs(hwloc_topology_t topology, std::vector<CorePair>& pairs) {
  std::vector<Place> places;
  for (const int core : usable_cores()) {
    const hwloc_obj_t processor = hwloc_get_pu_obj_by_os_index(topology, static_cast<unsigned>(core));
    if (processor == nullptr) continue;
    hwloc_obj_t cache = nullptr;
    for (hwloc_obj_t above = processor; above != nullptr; above = above->parent)
      if (hwloc_obj_type_is_dcache(above->type)) cache = above;  // the last one is the outermost
    places.push_back({core, hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, processor), cache,
                      hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, processor), processor->nodeset});
  }
  for (const Place& a : places) {
    for (const Place& b : places) {
      if (b.core_number < a.core_number) continue;
      CorePair& pair = pairs[kind_of(a, b)];
      if (pair.unavailable.empty()) continue;
      pair.first = a.core_number;
      pair.second = b.core_number;
      pair.unavailable.clear();
    }
  }
}
#endif

}  // namespace

std::vector<CorePair> core_pairs() {
  std::vector<CorePair> pairs = all_missing();
#if WEIR_HAVE_HWLOC
  if (const Topology topology = load_topology()) {
    find_pairs(topology.get(), pairs);
    return pairs;
  }
  const std::string why = "hwloc could not read this machine's topology";
#else
  const std::string why = "built without hwloc: install libhwloc-dev and build again";
#endif
  for (CorePair& pair : pairs) pair.unavailable = why;
  if (const auto cores = usable_cores(); !cores.empty())
    pairs[kSameCpu] = {pairs[kSameCpu].name, pairs[kSameCpu].where, cores[0], cores[0], ""};
  return pairs;
}

}  // namespace weir::channel_bench
