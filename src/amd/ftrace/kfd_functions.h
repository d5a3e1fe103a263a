// The kernel functions that matter, and their roles: KFD's call chains as of DKMS 6.12 and earlier kernels. Knows
// names, not traces.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "amd/ftrace/kfd_span.h"

namespace weir::ftrace {

// What a call proves, apart from the span that it may begin.
enum class KfdPart : std::uint8_t {
  none,
  kfd_ioctl,
  ioctl_handler,  // kfd_ioctl_NAME
  create_handler,
  pqm_create,
  create_scheduler,
  execute,
  runlist_map,
  runlist_sent,
  unmap,
  unmap_sent,
  fence_wait,
  mqd_allocate,
  mqd_init,
  mqd_init_all_xccs,
  mqd_load,
  mqd_update,
  mqd_destroy,
  mqd_free,
  doorbell_allocate,
  doorbell_mmap,
  kernel_doorbell_write,
  kcq,
  mes_add,
  mes_remove,
  process_end,
  cs_ioctl,
  other_kfd,     // a KFD function by its name, without a role here
  other_amdgpu,  // an amdgpu function outside KFD
};

// `level`: a function is never called, directly or indirectly, by one of the same or a higher level. When it is
// entered, such functions that are open on the thread have ended. -1 for functions outside the chain.
struct KfdFunction {
  KfdPart part = KfdPart::none;
  std::optional<KfdVerb> verb;
  int level = -1;
};

KfdFunction function_of(std::string_view name);

// A cache for function_of(), because a trace repeats a few hundred names millions of times. Each hash has one slot, so
// hostile names cost only time.
class KnownFunctions {
 public:
  KfdFunction of(std::string_view name);

 private:
  static constexpr std::size_t kSlots = 1024, kLongest = 55;
  struct Slot {
    std::uint8_t size = 0;  // 0: none yet
    std::array<char, kLongest> name;
    KfdFunction function;
  };
  std::vector<Slot> slots_ = std::vector<Slot>(kSlots);
};

// An entry point of the kernel, or of a worker for its next piece of work: a function called from here is not below
// anything that was open.
bool is_root(std::string_view caller);

// "create_queue" for command 0xc0604b02; empty if it is not a KFD ioctl. Decided by direction, letter and number,
// because the structures grew over time.
std::string_view kfd_ioctl_name(std::uint64_t command);

}  // namespace weir::ftrace
