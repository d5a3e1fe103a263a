#include "submit/inject/cuda_race_acts.h"

#include <algorithm>
#include <atomic>
#include <ctime>
#include <set>
#include <string>

#include "submit/inject/cuda_race_driver.h"
#include "submit/inject/recorder.h"

namespace weir::inject {
namespace {

using race_format::Access;

constexpr std::int64_t kLongestJoinNs = 5'000'000'000;
constexpr std::uint64_t kLargestHash = std::uint64_t{64} << 20, kLargestGuess = std::uint64_t{1} << 20;
constexpr std::size_t kMostHashes = 256;

// The event between two commands.
struct PlannedWait {
  bool is_recorded = false, is_captured = false;
  cuuint64_t capture = 0;
  CUevent event = nullptr;
  CUcontext context = nullptr;
};
struct RaceActs {
  std::mutex mutex;  // never held while the driver is called
  std::vector<PlannedWait> waits;
  std::set<RaceName> reached;
  std::uint32_t blind = 0;
};
RaceActs& race_acts() noexcept {
  static RaceActs& kActs = *new RaceActs;
  return kActs;
}

constexpr const char* kForbidden = "left out: another capture forbids to touch the stream";

// 0: the stream is not captured, or the driver does not say by which.
cuuint64_t capture_id(CUstream stream) noexcept {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* nodes = nullptr;
  std::size_t count = 0;
  const CUresult result = race_driver().capture(stream, &status, &id, &graph, &nodes, &count);
  return result == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? id : 0;
}

// Returns why it was not done, or empty.
std::string delay(const RaceThread& thread, std::int64_t ns) {
  if (thread.capture == RaceCapture::forbidden) return kForbidden;
  const Visiting visit(cuda_driver(), thread.stream.context);
  if (!visit) return "left out: the context of the stream cannot be entered";
  const std::string reason = launch_delay(thread.stream.context, thread.stream.handle, ns);
  return reason.empty() ? "" : "left out: " + reason;
}

std::string record_wait(const RaceThread& thread, std::uint32_t number) {
  if (thread.capture == RaceCapture::forbidden) return kForbidden;
  PlannedWait made;
  made.context = thread.stream.context;
  made.is_captured = thread.capture == RaceCapture::captured;
  const Visiting visit(cuda_driver(), made.context);
  if (!visit) return "left out: the context of the first stream cannot be entered";
  if (made.is_captured) made.capture = capture_id(thread.stream.handle);
  made.event = static_cast<CUevent>(cuda_driver().make());
  if (made.event == nullptr) return "left out: no event can be made";
  if (const CUresult result = race_driver().record(made.event, thread.stream.handle); result != CUDA_SUCCESS) {
    cuda_driver().drop(made.event);
    return "left out: the event cannot be recorded: " + describe_answer(result);
  }
  made.is_recorded = true;
  RaceActs& acts = race_acts();
  const std::lock_guard lock(acts.mutex);
  acts.waits.resize(race_run().plan.waits.size());
  acts.waits[number] = made;
  return "";
}

std::string await(const RaceThread& thread, std::uint32_t number) {
  PlannedWait wait;
  RaceActs& acts = race_acts();
  {
    const std::lock_guard lock(acts.mutex);
    if (number < acts.waits.size()) wait = acts.waits[number];
  }
  if (!wait.is_recorded) return "left out: the first command was not submitted before the second";
  if (thread.capture == RaceCapture::forbidden) return kForbidden;
  const bool is_captured = thread.capture == RaceCapture::captured;
  const Visiting visit(cuda_driver(), thread.stream.context);
  if (!visit) return "left out: the context of the second stream cannot be entered";
  if (is_captured != wait.is_captured) return "left out: only one of the two commands is captured into a graph";
  if (is_captured && (wait.capture == 0 || capture_id(thread.stream.handle) != wait.capture))
    return "left out: the two commands are captured into different graphs";
  const CUresult result = race_driver().wait(thread.stream.handle, wait.event, 0);
  return result == CUDA_SUCCESS ? "" : "left out: the stream cannot wait: " + describe_answer(result);
}

// Not for ever: the command may wait for what this thread does next.
std::string join_command(const RaceThread& thread) {
  if (thread.capture != RaceCapture::none) return "left out: the command is captured into a graph";
  const Visiting visit(cuda_driver(), thread.stream.context);
  if (!visit) return "left out: the context of the stream cannot be entered";
  const Event event = cuda_driver().make();
  if (event == nullptr) return "left out: no event can be made";
  std::string reason;
  if (!cuda_driver().record(event, thread.stream.handle)) reason = "left out: the event cannot be recorded";
  const std::int64_t since = monotonic_ns();
  const timespec rest{0, 20'000};
  while (reason.empty()) {
    const GateDriver::State state = cuda_driver().query(event);
    if (state == GateDriver::State::ended) break;
    if (state == GateDriver::State::lost) reason = "left out: the event was lost";
    if (monotonic_ns() - since > kLongestJoinNs) reason = "left out: the command had not ended after 5 s";
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, nullptr);
  }
  cuda_driver().drop(event);
  return reason;
}

// How much of what an access may reach is hashed; 0: nothing.
std::uint64_t bytes_to_hash(const RaceThread& thread, const Access& access, bool& is_host) {
  is_host = false;
  RaceRun& run = race_run();
  std::uint64_t known_end = 0;
  {
    const std::lock_guard lock(run.mutex);
    if (const RaceMemory::Block* const block = run.memory.find(access.begin); block != nullptr) {
      known_end = block->end();
      is_host = block->is_host;
    }
  }
  const RaceDriver& driver = race_driver();
  unsigned type = 0;
  int device = -1;
  CUdeviceptr begin = 0;
  std::size_t bytes = 0;
  const bool is_known = driver.pointer(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, access.begin) == CUDA_SUCCESS;
  if (!is_known || is_host) {
    is_host = true;  // pageable or pinned
    if (access.bytes != 0) return std::min(access.bytes, kLargestHash);
    return known_end == 0 ? 0 : std::min(known_end - access.begin, kLargestGuess);
  }
  // A block that is gone, or of another device, would end the program.
  if (driver.pointer(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, access.begin) != CUDA_SUCCESS ||
      device != thread.stream.device || driver.address_range(&begin, &bytes, access.begin) != CUDA_SUCCESS)
    return 0;
  const std::uint64_t left = begin + bytes - access.begin;
  return access.bytes != 0 ? std::min({access.bytes, left, kLargestHash}) : std::min(left, kLargestGuess);
}

// The hash of each access, and whether there is one. The device is idle before and behind.
struct AccessHash {
  std::uint64_t hash = 0;
  bool is_known = false;
};
std::string hash_accesses(const RaceThread& thread, std::vector<AccessHash>& hashes) {
  hashes.clear();
  if (thread.capture != RaceCapture::none) return "left out: the command is captured into a graph";
  const Visiting visit(cuda_driver(), thread.stream.context);
  if (!visit) return "left out: the context of the stream cannot be entered";
  if (const CUresult result = race_driver().synchronize(); result != CUDA_SUCCESS)
    return "left out: the device cannot be waited for: " + describe_answer(result);
  std::vector<std::pair<std::size_t, RaceSlot*>> slots;
  const std::size_t count = std::min(thread.accesses.list.size(), kMostHashes);
  hashes.resize(count);
  std::string reason;
  for (std::size_t i = 0; i < count; ++i) {
    const Access& access = thread.accesses.list[i];
    bool is_host = false;
    const std::uint64_t bytes = bytes_to_hash(thread, access, is_host);
    if (bytes == 0) continue;
    if (is_host) {
      hashes[i] = {hash_of_memory(reinterpret_cast<const void*>(access.begin), bytes), true};
      continue;
    }
    RaceSlot* const slot = new_race_slot(reason);
    if (slot == nullptr) return "left out: " + reason;
    reason = launch_hash(thread.stream.context, thread.stream.handle, access.begin, bytes, slot);
    if (!reason.empty()) return "left out: " + reason;
    slots.emplace_back(i, slot);
  }
  if (const CUresult result = race_driver().synchronize(); result != CUDA_SUCCESS)
    return "left out: the device cannot be waited for: " + describe_answer(result);
  for (const auto& [i, slot] : slots)
    if (slot->is_ready()) hashes[i] = {slot->hash, true};
  return "";
}

void report(const std::string& instruction, const std::string& reason) {
  note_race(instruction + ": " + (reason.empty() ? "done" : reason));
}

void note_wait(std::uint32_t number, const std::string& reason) {
  const RacePlan::Wait& wait = race_run().plan.waits[number];
  report("wait " + text_of(wait.first) + " " + text_of(wait.second), reason);
}

std::string instruction_of_delay(RaceName name, std::int64_t ns) {
  return "delay " + text_of(name) + " " + std::to_string(ns);
}

void write_hashes(const RaceThread& thread, const std::vector<AccessHash>& behind) {
  std::vector<Access> both;
  for (std::size_t i = 0; i < behind.size(); ++i) {
    const bool is_known = behind[i].is_known && 2 * i + 1 < thread.hashes.size() && thread.hashes[2 * i + 1] != 0;
    const Access& access = thread.accesses.list[i];
    both.push_back({is_known ? thread.hashes[2 * i] : 0, is_known ? behind[i].hash : 0, is_known ? access.how : 0,
                    access.parameter});
  }
  race_format::Entry entry{};
  entry.kind = static_cast<std::uint8_t>(race_format::Kind::hashed);
  entry.thread = thread.name.thread;
  entry.sequence = thread.name.sequence;
  entry.stream = thread.stream.number;
  entry.device = thread.stream.device;
  entry.time_ns = thread.began_ns;
  RaceRun& run = race_run();
  const std::lock_guard lock(run.mutex);
  run.log.add(entry, both);
}

}  // namespace

void act_before(RaceThread& thread) {
  const RacePlan& plan = race_run().plan;
  RaceActs& acts = race_acts();
  thread.hashes.clear();
  if (const RaceOrders* const orders = thread.orders; orders != nullptr) {
    {
      const std::lock_guard lock(acts.mutex);
      acts.reached.insert(thread.name);
    }
    if (orders->shows_stack) write_race_stack(thread.name);
    for (const std::uint32_t number : orders->awaited) note_wait(number, await(thread, number));
    if (orders->hashes) {
      std::vector<AccessHash> before;
      const std::string reason = hash_accesses(thread, before);
      if (!reason.empty()) note_race("hash " + text_of(thread.name) + ": " + reason);
      for (const AccessHash& one : before) {
        thread.hashes.push_back(one.hash);
        thread.hashes.push_back(one.is_known ? 1 : 0);
      }
    }
    if (orders->delay_ns != 0)
      report(instruction_of_delay(thread.name, orders->delay_ns), delay(thread, orders->delay_ns));
  }
  const std::int64_t ns = plan.blind_delay(thread.name);
  if (ns == 0) return;
  {
    const std::lock_guard lock(acts.mutex);
    if (acts.blind >= std::min(plan.most, race_format::kMostDelays)) return;
    ++acts.blind;
  }
  report(instruction_of_delay(thread.name, ns), delay(thread, ns));
}

void act_behind(RaceThread& thread, bool has_failed) {
  const RaceOrders* const orders = thread.orders;
  if (orders == nullptr) return;
  for (const std::uint32_t number : orders->recorded)
    if (const std::string reason = record_wait(thread, number); !reason.empty()) note_wait(number, reason);
  if (orders->joins) report("join " + text_of(thread.name), join_command(thread));
  if (!orders->hashes || thread.hashes.empty()) return;
  if (!race_run().log.is_open()) return note_race("hash " + text_of(thread.name) + ": left out: there is no log");
  std::vector<AccessHash> behind;
  const std::string reason = has_failed ? "left out: the command failed" : hash_accesses(thread, behind);
  report("hash " + text_of(thread.name), reason);
  if (reason.empty()) write_hashes(thread, behind);
}

void forget_race_events() {
  RaceActs& acts = race_acts();
  const std::lock_guard lock(acts.mutex);
  acts.waits.clear();  // the context takes its events along
}

void note_what_was_not_reached() {
  RaceActs& acts = race_acts();
  std::vector<RaceName> missing;
  {
    const std::lock_guard lock(acts.mutex);
    for (const auto& [name, orders] : race_run().plan.orders)
      if (!acts.reached.contains(name)) missing.push_back(name);
  }
  for (const RaceName name : missing) note_race("command " + text_of(name) + ": was not reached");
}

}  // namespace weir::inject
