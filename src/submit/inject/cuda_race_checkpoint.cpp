#include "submit/inject/cuda_race_checkpoint.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <map>
#include <string>

#include "submit/inject/cuda_race_driver.h"
#include "submit/inject/cuda_race_streams.h"
#include "submit/inject/recorder.h"

namespace weir::inject {
namespace {

constexpr std::size_t kLongestName = 200, kMostNames = 100'000;

struct Checkpoint {
  std::string name;
  std::uint64_t count = 0, hash = 0;
  RaceSlot* slot = nullptr;  // null: the hash is there, or there is none
  CUcontext context = nullptr;
};
struct Checkpoints {
  std::mutex mutex;  // never held while the driver is called
  std::map<std::string, std::uint64_t> counts;
  std::deque<Checkpoint> pending;  // in the order of the calls
};
Checkpoints& checkpoints() noexcept {
  static Checkpoints& kCheckpoints = *new Checkpoints;
  return kCheckpoints;
}

// One word of a line.
std::string checkpoint_name(const char* name) {
  std::string word = name == nullptr || *name == '\0' ? "checkpoint" : std::string(name).substr(0, kLongestName);
  std::replace_if(word.begin(), word.end(), [](char letter) { return letter >= 0 && letter <= ' '; }, '_');
  return word;
}

// Memory that only the device should read: pinned memory can be read at once as well, but a stream may still write it.
bool is_on_device(const void* memory) noexcept {
  if (!has_race_driver()) return false;
  unsigned type = 0;
  CUcontext context = nullptr;
  if (race_driver().current(&context) != CUDA_SUCCESS) context = nullptr;
  const Visiting visit(cuda_driver(), context);
  const auto address = reinterpret_cast<CUdeviceptr>(memory);
  return visit && race_driver().pointer(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) == CUDA_SUCCESS &&
         type == CU_MEMORYTYPE_DEVICE;
}

void write_checkpoint_entry(RaceThread& mine, const Checkpoint& made, std::uint64_t begin, std::uint64_t bytes,
                            const RaceStream& stream) {
  RaceRun& run = race_run();
  const std::lock_guard lock(run.mutex);
  race_format::Entry entry{};
  entry.kind = static_cast<std::uint8_t>(race_format::Kind::checkpoint);
  entry.thread = number_race_thread(run, mine);
  entry.stream = stream.number;
  entry.device = stream.device;
  entry.time_ns = monotonic_ns();
  entry.name = run.log.text(made.name);
  const race_format::Access access{begin, bytes, race_format::kReads | race_format::kExact, 0};
  run.log.add(entry, {&access, bytes == 0 ? std::size_t{0} : std::size_t{1}});
}

// Returns why there will be no hash, or empty.
std::string hash_on_device(Checkpoint& made, const RaceStream& stream, std::uint64_t begin, std::uint64_t bytes) {
  if (stream.context == nullptr) return "the stream's context is not known";
  if (race_capture_of(stream.handle, stream.context) != RaceCapture::none) return "the stream is captured into a graph";
  const Visiting visit(cuda_driver(), stream.context);
  if (!visit) return "the stream's context cannot be entered";
  std::string reason;
  RaceSlot* const slot = new_race_slot(reason);
  if (slot == nullptr) return reason;
  reason = launch_hash(stream.context, stream.handle, begin, bytes, slot);
  if (!reason.empty()) return reason;
  made.slot = slot;
  made.context = stream.context;
  return "";
}

void take_checkpoint(const char* name, const void* memory, std::size_t bytes, void* handle) {
  if (!prepare_race() || !claim_race()) return;
  RaceThread* const mine = race_thread();
  if (mine == nullptr) return;
  const Unrecorded unrecorded;
  Checkpoint made;
  made.name = checkpoint_name(name);
  Checkpoints& all = checkpoints();
  {
    const std::lock_guard lock(all.mutex);
    if (all.counts.size() < kMostNames || all.counts.contains(made.name)) made.count = ++all.counts[made.name];
  }
  if (made.count == 0) return note_race("checkpoint " + made.name + ": left out: there are too many names");
  const auto begin = reinterpret_cast<std::uint64_t>(memory);
  RaceStream stream;
  std::string reason;
  if (bytes == 0 || memory == nullptr) {
    made.hash = 0;  // of nothing
  } else if (is_on_device(memory)) {
    CUcontext context = nullptr;
    if (race_driver().current(&context) != CUDA_SUCCESS) context = nullptr;
    if (handle == nullptr) handle = CU_STREAM_LEGACY;
    stream = find_race_stream(*mine, static_cast<CUstream>(handle), context);
    reason = hash_on_device(made, stream, begin, bytes);
  } else {
    made.hash = hash_of_memory(memory, bytes);
  }
  write_checkpoint_entry(*mine, made, begin, bytes, stream);
  if (!reason.empty())
    return note_race("checkpoint " + made.name + " " + std::to_string(made.count) + ": left out: " + reason);
  {
    const std::lock_guard lock(all.mutex);
    all.pending.push_back(std::move(made));
  }
  write_checkpoints(false);
  if (!has_race_driver()) finish_race();  // a program without a device: nobody else writes the log
}

// The oldest that is ready; false: there is none.
bool take_ready(Checkpoint& ready) {
  Checkpoints& all = checkpoints();
  const std::lock_guard lock(all.mutex);
  if (all.pending.empty()) return false;
  const Checkpoint& oldest = all.pending.front();
  if (oldest.slot != nullptr && !oldest.slot->is_ready()) return false;
  ready = oldest;
  if (ready.slot != nullptr) ready.hash = ready.slot->hash;
  all.pending.pop_front();
  return true;
}

}  // namespace

void write_checkpoints(bool is_end) {
  Checkpoint next;
  while (take_ready(next)) write_digest(next.name, next.count, next.hash);
  if (!is_end) return;
  Checkpoints& all = checkpoints();
  std::deque<Checkpoint> late;
  {
    const std::lock_guard lock(all.mutex);
    late.swap(all.pending);
  }
  CUcontext waited_for = nullptr;
  for (const Checkpoint& one : late) {
    if (one.slot != nullptr && !one.slot->is_ready() && one.context != waited_for) {
      // An error where the driver has gone before us, and then everything has ended.
      if (const Visiting visit(cuda_driver(), one.context); visit) race_driver().synchronize();
      waited_for = one.context;
    }
    if (one.slot == nullptr || one.slot->is_ready())
      write_digest(one.name, one.count, one.slot == nullptr ? one.hash : one.slot->hash);
    else
      note_race("checkpoint " + one.name + " " + std::to_string(one.count) +
                ": left out: it had not ended when the program did");
  }
}

}  // namespace weir::inject

// A stream of null is the legacy default stream. Programs find this by its name: python/weir.py, weir/checkpoint.h.
extern "C" __attribute__((visibility("default"))) void weir_checkpoint(const char* name, const void* memory,
                                                                       std::size_t bytes, void* stream) {
  try {
    weir::inject::take_checkpoint(name, memory, bytes, stream);
  } catch (const std::exception&) {
    weir::inject::note_race("a checkpoint was lost: out of memory");
  }
}
