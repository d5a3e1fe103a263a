#include "trace/analyse/exposed_words.h"

namespace weir {

const char* to_string(ExposedCause cause) noexcept {
  switch (cause) {
    case ExposedCause::dependency:
      return "dependency";
    case ExposedCause::shallow_prefetch:
      return "shallow_prefetch";
    case ExposedCause::shared_queue:
      return "shared_queue";
    case ExposedCause::launch_bound:
      return "launch_bound";
    case ExposedCause::no_room:
      return "no_room";
    case ExposedCause::rank_skew:
      return "rank_skew";
    case ExposedCause::step_end:
      return "step_end";
    case ExposedCause::unknown:
      break;
  }
  return "unknown";
}

const char* meaning_of(ExposedCause cause) noexcept {
  switch (cause) {
    case ExposedCause::dependency:
      return "what came next needed the collective, which could not have started earlier";
    case ExposedCause::shallow_prefetch:
      return "what came next needed the collective, which had waited for a kernel that still used its buffer";
    case ExposedCause::shared_queue:
      return "a command was ready, behind another stream's in its hardware queue";
    case ExposedCause::launch_bound:
      return "the host was late with the next command or the collective, or the device was just launching it";
    case ExposedCause::no_room:
      return "a command was ready, with nothing in front of it in its queue, and found no free compute units";
    case ExposedCause::rank_skew:
      return "the collective waited for the last rank";
    case ExposedCause::step_end:
      return "nothing followed in the iteration";
    case ExposedCause::unknown:
      break;
  }
  return "the source does not tell";
}

const char* advice_of(ExposedCause cause) noexcept {
  switch (cause) {
    case ExposedCause::dependency:
      return "move independent work beside the collective, or make it shorter: fewer bytes, another algorithm, smaller "
             "pieces that start earlier";
    case ExposedCause::shallow_prefetch:
      return "prefetch one layer further (fsdp.prefetch), so that the next gather has a buffer of its own";
    case ExposedCause::shared_queue:
      return "give streams queues of their own (CUDA_DEVICE_MAX_CONNECTIONS, GPU_MAX_HW_QUEUES, --hw-queues), use "
             "fewer "
             "streams, or submit in another order";
    case ExposedCause::launch_bound:
      return "submit earlier: graphs, fewer and larger kernels, a host thread of its own for communication";
    case ExposedCause::no_room:
      return "leave room beside the larger one: fewer channels for collectives (NCCL_MAX_CTAS, NCCL_MAX_NCHANNELS), "
             "smaller kernels, or a priority for the one that waits";
    case ExposedCause::rank_skew:
      return "look at what the last rank does before the collective: uneven work, a slower device or host";
    case ExposedCause::step_end:
      return "let the next iteration begin earlier, or split the last collective so that most of it runs before";
    case ExposedCause::unknown:
      break;
  }
  return "trace the host's calls and the waits between streams too (weir profile, CUPTI's or rocprofv3's API traces)";
}

}  // namespace weir
