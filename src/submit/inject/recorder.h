// What libraries in other people's programs note about calls of the driver: per thread and without locks, into memory
// in the format of trace/record_format.h. That memory is a file that keeps the newest entries, or is drained by a
// reader in the same process. Knows no vendor; allocates nothing and throws nothing after create().
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "trace/record_format.h"

namespace weir::inject {

std::int64_t monotonic_ns() noexcept;

// The calls of this thread are not the program's while one of these exists.
class Unrecorded {
 public:
  Unrecorded() noexcept;
  ~Unrecorded();
  Unrecorded(const Unrecorded&) = delete;
  Unrecorded& operator=(const Unrecorded&) = delete;
  static bool is_here() noexcept;

 private:
  bool was_here_;
};

class Recorder {
 public:
  enum class When : std::uint8_t {
    overwrites,  // the oldest entries make room
    drains,      // entries are lost unless drain() makes room in time
  };
  // What a call is about, known when it begins.
  struct Call {
    std::uint64_t object = 0;
    std::uint32_t stream = record::kNone;
    std::uint32_t context = record::kNone;
    std::uint32_t name = record::kNoText;
    std::uint16_t function = 0;
    record::Kind kind = record::Kind::other;
    bool is_collective = false;  // a kernel of NCCL or RCCL
  };
  struct StreamFacts {
    std::uint32_t context = record::kNone;  // where it was created
    std::uint32_t device = record::kNone;
    std::uint32_t id = record::kNone;  // in the vendor's own records
  };

  // `descriptor`: of an empty file that becomes the memory and stays open; -1: the memory is private. Null, with the
  // reason, where there is no memory.
  static std::unique_ptr<Recorder> create(int descriptor, std::uint64_t bytes, When when, std::string& reason);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  record::Header& header() noexcept { return *header_; }
  // Equal texts have the same number; kNoText where there is no room. Takes a lock.
  std::uint32_t text(std::string_view text) noexcept;
  std::string_view text_at(std::uint32_t number) const noexcept;
  // Replaces a text that was at least as long when it was made; cuts what is longer.
  void rewrite(std::uint32_t number, std::string_view text) noexcept;

  // The calling thread's place; kNone where there are too many threads. The others below take it.
  std::uint32_t thread() noexcept;
  // In a forked child: what the calling thread remembers is its parent's, whose memory the two share.
  static void abandon_thread() noexcept;
  record::Thread& thread_at(std::uint32_t place) noexcept { return threads_[place]; }
  void begin(std::uint32_t thread, const Call& call, std::int64_t now_ns) noexcept;
  // The call that begin() named has returned. Returns which of its stream the command is, from 1; 0: it is none.
  std::uint64_t end(std::uint32_t thread, std::uint32_t correlation, std::uint8_t flags, std::int64_t now_ns) noexcept;
  void append(std::uint32_t thread, const record::Entry& entry) noexcept;

  // The place of a stream, which gets one with these facts where it has none yet; kNone where there are too many.
  // `thread`: the place of the thread whose default stream it is, or kNone. Takes a lock, so remember the answer until
  // generation() changes.
  std::uint32_t stream(std::uint64_t handle, std::uint32_t thread, const StreamFacts& facts) noexcept;
  record::Stream& stream_at(std::uint32_t place) noexcept { return streams_[place]; }
  std::uint32_t stream_places() const noexcept { return header_->streams; }
  // The handle may belong to another stream from now on.
  void stream_destroyed(std::uint64_t handle) noexcept;
  void context_destroyed(std::uint32_t context) noexcept;
  // The first `number` commands of a stream have ended.
  void ended(std::uint32_t stream, std::uint64_t number, std::int64_t now_ns) noexcept;
  // The host has waited since `since_ns` for everything that was submitted before, to one stream or (kNone) to all of
  // the context.
  void waited(std::uint32_t stream, std::uint32_t context, std::int64_t since_ns, std::int64_t now_ns) noexcept;
  // Changes when what is remembered of handles and names may be wrong.
  std::uint32_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }
  void forget() noexcept { generation_.fetch_add(1, std::memory_order_release); }

  // Hands over the entries that are new since the last call, oldest first within a thread. One thread at a time.
  void drain(const std::function<void(const record::Thread&, const record::Entry&)>& use) noexcept;
  std::uint64_t lost() const noexcept { return lost_.load(std::memory_order_relaxed); }

 private:
  Recorder() = default;
  void note_overwritten(const record::ChunkHeader& chunk) noexcept;
  record::ChunkHeader* claim(std::uint32_t thread) noexcept;
  template <class Condition>
  void end_streams(const Condition& is_meant) noexcept;
  record::ChunkHeader& chunk(std::uint64_t index) const noexcept {
    return *reinterpret_cast<record::ChunkHeader*>(chunks_ + index * record::kChunkBytes);
  }

  record::Header* header_ = nullptr;
  record::Thread* threads_ = nullptr;
  record::Stream* streams_ = nullptr;
  char* texts_ = nullptr;
  char* chunks_ = nullptr;
  When when_ = When::overwrites;
  std::atomic<std::uint64_t> lost_{0};
  std::atomic<std::uint32_t> generation_{0};
  std::mutex mutex_;  // protects what follows, and the tables of texts and streams
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::unique_ptr<std::uint32_t[]> drained_;  // by chunk; used by drain() alone
};

}  // namespace weir::inject
