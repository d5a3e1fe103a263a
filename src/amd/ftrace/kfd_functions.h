// Which kernel functions matter, and as what: KFD's call chains, as of DKMS 6.12 and the kernels before it. Knows
// names; nothing of traces.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "amd/ftrace/kfd_span.h"

namespace weir::ftrace {

// What a call is evidence of, beside the span that it may begin.
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
  other_kfd,     // KFD by its name, without a role here
  other_amdgpu,  // of the driver, outside KFD
};

// `level`: a function is never called, however far below, by one of the same or a higher level: where it is entered,
// those of the thread that are open have ended. -1 for what has no place in the chain.
struct KfdFunction {
  KfdPart part = KfdPart::none;
  std::optional<KfdVerb> verb;
  int level = -1;
};

KfdFunction function_of(std::string_view name);

// function_of() that remembers: a trace repeats a few hundred names millions of times. One slot per hash, so that
// hostile names only cost time.
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

// The first thing a thread does in the kernel, or a worker for the next piece of work: a function called from here is
// below nothing that was open.
bool is_root(std::string_view caller);

// "create_queue" of command 0xc0604b02; empty where it is no ioctl of KFD. Told by direction, letter and number,
// because structures grew over time.
std::string_view kfd_ioctl_name(std::uint64_t command);

}  // namespace weir::ftrace
