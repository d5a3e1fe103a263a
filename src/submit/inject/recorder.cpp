#include "submit/inject/recorder.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <span>
#include <vector>

#include "submit/inject/process.h"

namespace weir::inject {
namespace {

using record::ChunkHeader;
using record::ChunkState;
using record::Entry;
using record::kNone;

constexpr std::uint32_t kThreads = 1024, kStreams = 1024, kTextBytes = 1U << 20;
constexpr std::uint64_t kMinChunks = 16;  // 1 MiB
constexpr std::uint64_t kMaxChunks = (std::uint64_t{3} << 30) / record::kChunkBytes;

// What a thread remembers. A program has one recorder.
struct Mine {
  std::uint32_t place = kNone;
  bool is_known = false;
  bool is_over = false;        // the thread is ending
  bool is_collective = false;  // the command that it is submitting
  ChunkHeader* chunk = nullptr;
};
thread_local Mine t_mine;
thread_local bool t_is_unrecorded = false;
pthread_key_t g_key;
pthread_once_t g_key_once = PTHREAD_ONCE_INIT;
bool g_has_key = false;

template <class T>
T load(const T& value) noexcept {
  return std::atomic_ref(const_cast<T&>(value)).load(std::memory_order_acquire);
}
template <class T>
void store(T& value, std::type_identity_t<T> to) noexcept {
  std::atomic_ref(value).store(to, std::memory_order_release);
}

Entry* entries_of(ChunkHeader& chunk) noexcept { return reinterpret_cast<Entry*>(&chunk + 1); }
const Entry* entries_of(const ChunkHeader& chunk) noexcept { return reinterpret_cast<const Entry*>(&chunk + 1); }

void close_chunk(ChunkHeader* chunk) noexcept {
  if (chunk != nullptr) store(chunk->state, static_cast<std::uint32_t>(ChunkState::full));
}

void thread_ends(void* thread) {
  Mine& mine = t_mine;
  close_chunk(mine.chunk);
  store(static_cast<record::Thread*>(thread)->has_ended, 1U);
  mine = Mine{};
  mine.is_over = true;
}

std::uint64_t rounded(std::uint64_t bytes) noexcept { return (bytes + 4095) / 4096 * 4096; }

// Not interrupted by signals of the program, of which a timer may send one after another.
int allocate(int descriptor, std::uint64_t bytes) noexcept {
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = ::posix_fallocate(descriptor, 0, static_cast<off_t>(bytes));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

}  // namespace

std::int64_t monotonic_ns() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

Unrecorded::Unrecorded() noexcept : was_here_(t_is_unrecorded) { t_is_unrecorded = true; }
Unrecorded::~Unrecorded() { t_is_unrecorded = was_here_; }
bool Unrecorded::is_here() noexcept { return t_is_unrecorded; }

std::unique_ptr<Recorder> Recorder::create(int descriptor, std::uint64_t bytes, When when, std::string& reason) {
  const std::uint64_t chunks = std::clamp(bytes / record::kChunkBytes, kMinChunks, kMaxChunks);
  const std::uint64_t threads_at = rounded(sizeof(record::Header));
  const std::uint64_t streams_at = threads_at + rounded(kThreads * sizeof(record::Thread));
  const std::uint64_t texts_at = streams_at + rounded(kStreams * sizeof(record::Stream));
  const std::uint64_t chunks_at = texts_at + kTextBytes;
  const std::uint64_t size = chunks_at + chunks * record::kChunkBytes;
  ::pthread_once(&g_key_once, [] { g_has_key = ::pthread_key_create(&g_key, thread_ends) == 0; });
  if (!g_has_key) {
    reason = "the program has used up the keys of its threads";
    return nullptr;
  }
  if (descriptor >= 0) {
    // A file beyond this limit would kill the program with SIGXFSZ.
    if (rlimit files{}; ::getrlimit(RLIMIT_FSIZE, &files) == 0 && files.rlim_cur < size) {
      reason = "the limit of file sizes (ulimit -f) is smaller";
      return nullptr;
    }
    // Room is taken now: writing to a mapped file on a full disk would kill the program.
    if (const int error = allocate(descriptor, size); error != 0) {
      reason = std::strerror(error);
      return nullptr;
    }
  }
  void* const memory =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
             descriptor >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, descriptor, 0);
  if (memory == MAP_FAILED) {
    reason = std::strerror(errno);
    return nullptr;
  }
#ifdef MADV_POPULATE_WRITE
  // The pages are there, but not yet this process's: each would cost a launch a fault.
  if (descriptor >= 0) ::madvise(memory, size, MADV_POPULATE_WRITE);
#endif
  std::unique_ptr<Recorder> made(new Recorder);
  char* const base = static_cast<char*>(memory);
  made->header_ = reinterpret_cast<record::Header*>(base);
  made->threads_ = reinterpret_cast<record::Thread*>(base + threads_at);
  made->streams_ = reinterpret_cast<record::Stream*>(base + streams_at);
  made->texts_ = base + texts_at;
  made->chunks_ = base + chunks_at;
  made->when_ = when;
  made->drained_ = std::make_unique<std::uint32_t[]>(chunks);
  record::Header& header = *made->header_;
  header.version = record::kVersion;
  header.header_bytes = sizeof(record::Header);
  header.threads = kThreads;
  header.streams = kStreams;
  header.text_bytes = kTextBytes;
  header.chunks = static_cast<std::uint32_t>(chunks);
  header.threads_at = threads_at;
  header.streams_at = streams_at;
  header.texts_at = texts_at;
  header.chunks_at = chunks_at;
  header.texts_used = sizeof(record::TextHeader);  // 0 is no text
  header.pid = static_cast<std::uint64_t>(::getpid());
  header.parent_pid = static_cast<std::uint64_t>(::getppid());
  header.process_started = own_start();
  header.started_ns = monotonic_ns();
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  header.unix_ns = static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
  header.clock = made->text("CLOCK_MONOTONIC");
  // Last, so that a file with this word is complete.
  std::atomic_thread_fence(std::memory_order_release);
  std::memcpy(header.magic, record::kMagic, sizeof(header.magic));
  return made;
}

std::uint32_t Recorder::text(std::string_view text) noexcept {
  if (text.empty()) return record::kNoText;
  text = text.substr(0, 65536);
  const std::lock_guard lock(mutex_);
  try {
    std::string key(text);
    if (const auto found = numbers_.find(key); found != numbers_.end()) return found->second;
    const std::uint32_t at = header_->texts_used;
    const std::uint64_t end = (at + sizeof(record::TextHeader) + text.size() + 3) / 4 * 4;
    if (end > header_->text_bytes) return record::kNoText;
    std::memcpy(texts_ + at + sizeof(record::TextHeader), text.data(), text.size());
    const record::TextHeader length{static_cast<std::uint32_t>(text.size())};
    std::memcpy(texts_ + at, &length, sizeof(length));
    store(header_->texts_used, static_cast<std::uint32_t>(end));
    numbers_.emplace(std::move(key), at);
    return at;
  } catch (const std::bad_alloc&) {
    return record::kNoText;
  }
}

std::string_view Recorder::text_at(std::uint32_t number) const noexcept {
  if (number == record::kNoText) return {};
  record::TextHeader length{};
  std::memcpy(&length, texts_ + number, sizeof(length));
  return {texts_ + number + sizeof(length), length.bytes};
}

void Recorder::rewrite(std::uint32_t number, std::string_view text) noexcept {
  if (number == record::kNoText) return;
  text = text.substr(0, text_at(number).size());
  // The bytes that are not used any more become spaces: readers find the next text by this one's length.
  char* const to = texts_ + number + sizeof(record::TextHeader);
  std::memset(to + text.size(), ' ', text_at(number).size() - text.size());
  std::memcpy(to, text.data(), text.size());
}

std::uint32_t Recorder::thread() noexcept {
  Mine& mine = t_mine;
  if (mine.is_known) [[likely]]
    return mine.place;
  if (mine.is_over) return kNone;
  mine.is_known = true;
  const auto id = static_cast<std::uint32_t>(::syscall(SYS_gettid));
  for (const bool takes_ended : {false, true}) {
    for (std::uint32_t place = 0; place < header_->threads && mine.place == kNone; ++place) {
      record::Thread& thread = threads_[place];
      std::uint32_t expected = takes_ended ? 1 : 0;
      // A new place is taken by its id, one of a thread that has ended by its flag.
      std::atomic_ref<std::uint32_t> word(takes_ended ? thread.has_ended : thread.id);
      if (word.load(std::memory_order_relaxed) != expected ||
          !word.compare_exchange_strong(expected, takes_ended ? 0 : id))
        continue;
      store(thread.id, id);
      mine.place = place;
    }
  }
  if (mine.place == kNone) return kNone;
  record::Thread& thread = threads_[mine.place];
  ::prctl(PR_GET_NAME, thread.name);
  ::pthread_setspecific(g_key, &thread);
  return mine.place;
}

void Recorder::abandon_thread() noexcept {
  t_mine = Mine{};
  t_mine.is_over = true;
  if (g_has_key) ::pthread_setspecific(g_key, nullptr);
}

void Recorder::begin(std::uint32_t place, const Call& call, std::int64_t now_ns) noexcept {
  record::Thread& thread = threads_[place];
  thread.object = call.object;
  thread.stream = call.stream;
  thread.context = call.context;
  thread.name_of_kernel = call.name;
  thread.function = call.function;
  thread.kind = static_cast<std::uint8_t>(call.kind);
  t_mine.is_collective = call.is_collective;
  store(thread.started_ns, now_ns);
}

std::uint64_t Recorder::end(std::uint32_t place, std::uint32_t correlation, std::uint8_t flags,
                            std::int64_t now_ns) noexcept {
  record::Thread& thread = threads_[place];
  if (thread.started_ns == 0) return 0;  // recording began during the call
  const auto kind = static_cast<record::Kind>(thread.kind);
  std::uint64_t number = 0;
  if (record::is_command(kind) && flags == 0 && thread.stream != kNone) {
    record::Stream& stream = streams_[thread.stream];
    number = std::atomic_ref(stream.submitted).fetch_add(1, std::memory_order_relaxed) + 1;
    store(stream.submitted_ns, now_ns);
    if (t_mine.is_collective) std::atomic_ref(stream.collectives).fetch_add(1, std::memory_order_relaxed);
    store(thread.commands, thread.commands + 1);
  }
  store(thread.calls, thread.calls + 1);
  append(place, Entry{.started_ns = thread.started_ns,
                      .ended_ns = now_ns,
                      .object = thread.object,
                      .stream = thread.stream,
                      .context = thread.context,
                      .correlation = correlation,
                      .name = thread.name_of_kernel,
                      .function = thread.function,
                      .kind = thread.kind,
                      .flags = flags,
                      .number = static_cast<std::uint32_t>(number)});
  store(thread.started_ns, 0);
  return number;
}

void Recorder::note_overwritten(const ChunkHeader& chunk) noexcept {
  const std::span entries(entries_of(chunk), std::min<std::size_t>(chunk.count, record::kChunkEntries));
  if (entries.empty()) return;
  std::int64_t newest_ns = entries.back().ended_ns;
  // Calls are noted when they have ended, commands in any order.
  if (header_->is_exact != 0)
    for (const Entry& entry : entries) newest_ns = std::max(newest_ns, entry.ended_ns);
  std::atomic_ref<std::int64_t> until(header_->overwritten_ns);
  std::int64_t before = until.load(std::memory_order_relaxed);
  while (before < newest_ns && !until.compare_exchange_weak(before, newest_ns, std::memory_order_relaxed)) {
  }
}

ChunkHeader* Recorder::claim(std::uint32_t thread) noexcept {
  constexpr auto kFree = static_cast<std::uint32_t>(ChunkState::free);
  constexpr auto kOpen = static_cast<std::uint32_t>(ChunkState::open);
  const std::uint32_t count = header_->chunks;
  for (std::uint32_t tries = 0; tries < count; ++tries) {
    // A reader frees chunks, so the first free one keeps the memory in use small; else the oldest is next.
    std::uint64_t sequence = 0;
    if (when_ == When::overwrites)
      sequence = std::atomic_ref(header_->claimed).fetch_add(1, std::memory_order_relaxed) + 1;
    ChunkHeader& next = chunk(when_ == When::overwrites ? (sequence - 1) % count : tries);
    std::uint32_t state = load(next.state);
    if (state == kOpen || (when_ == When::drains && state != kFree)) continue;
    if (!std::atomic_ref(next.state).compare_exchange_strong(state, kOpen, std::memory_order_acq_rel)) continue;
    if (when_ == When::drains) sequence = std::atomic_ref(header_->claimed).fetch_add(1, std::memory_order_relaxed) + 1;
    if (when_ == When::overwrites) note_overwritten(next);
    store(next.sequence, 0);  // whoever reads it now notices: before any entry changes
    std::atomic_thread_fence(std::memory_order_release);
    store(next.count, 0);
    store(next.thread, thread);
    store(next.sequence, sequence);
    return &next;
  }
  return nullptr;
}

void Recorder::append(std::uint32_t thread, const Entry& entry) noexcept {
  Mine& mine = t_mine;
  // Read once: the memory is a file, which others could change.
  std::uint32_t at = mine.chunk == nullptr ? 0 : load(mine.chunk->count);
  if (at >= record::kChunkEntries) {
    close_chunk(mine.chunk);
    mine.chunk = nullptr;
  }
  if (mine.chunk == nullptr) {
    mine.chunk = claim(thread);
    at = 0;
  }
  if (mine.chunk == nullptr) {
    store(header_->lost, lost_.fetch_add(1, std::memory_order_relaxed) + 1);
    return;
  }
  entries_of(*mine.chunk)[at] = entry;
  store(mine.chunk->count, at + 1);
}

std::uint32_t Recorder::stream(std::uint64_t handle, std::uint32_t thread, const StreamFacts& facts) noexcept {
  const std::lock_guard lock(mutex_);
  // Places of destroyed streams are taken last: entries may still name them.
  std::uint32_t place = kNone, used = 0;
  for (; used < header_->streams && streams_[used].is_used != 0; ++used) {
    record::Stream& known = streams_[used];
    if (known.is_destroyed != 0) {
      if (place == kNone) place = used;
    } else if (known.handle == handle && known.thread == thread && known.context == facts.context) {
      if (facts.id != kNone) store(known.id, facts.id);
      return used;
    }
  }
  if (used < header_->streams) place = used;
  if (place == kNone) return kNone;
  record::Stream& stream = streams_[place];
  store(stream.is_used, 0);
  stream = record::Stream{};
  stream.handle = handle;
  stream.thread = thread;
  stream.context = facts.context;
  stream.device = facts.device;
  stream.id = facts.id;
  store(stream.is_used, 1);
  return place;
}

template <class Condition>
void Recorder::end_streams(const Condition& is_meant) noexcept {
  const std::lock_guard lock(mutex_);
  for (std::uint32_t place = 0; place < header_->streams && streams_[place].is_used != 0; ++place)
    if (is_meant(streams_[place])) store(streams_[place].is_destroyed, 1);
  forget();
}

void Recorder::stream_destroyed(std::uint64_t handle) noexcept {
  end_streams([handle](const record::Stream& stream) { return stream.handle == handle; });
}

void Recorder::context_destroyed(std::uint32_t context) noexcept {
  end_streams([context](const record::Stream& stream) { return stream.context == context; });
}

void Recorder::ended(std::uint32_t place, std::uint64_t number, std::int64_t now_ns) noexcept {
  record::Stream& stream = streams_[place];
  std::atomic_ref<std::uint64_t> ended(stream.ended);
  std::uint64_t before = ended.load(std::memory_order_relaxed);
  while (before < number && !ended.compare_exchange_weak(before, number, std::memory_order_release)) {
  }
  if (before < number) store(stream.ended_ns, now_ns);
}

void Recorder::waited(std::uint32_t place, std::uint32_t context, std::int64_t since_ns, std::int64_t now_ns) noexcept {
  const auto look = [&](std::uint32_t at) {
    // A command that was submitted meanwhile may be under way.
    const std::uint64_t submitted = load(streams_[at].submitted);
    if (load(streams_[at].submitted_ns) <= since_ns) ended(at, submitted, now_ns);
  };
  if (place != kNone) return look(place);
  for (std::uint32_t at = 0; at < header_->streams && load(streams_[at].is_used) != 0; ++at)
    if (streams_[at].context == context) look(at);
}

void Recorder::drain(const std::function<void(const record::Thread&, const Entry&)>& use) noexcept {
  struct Part {
    std::uint64_t sequence;
    std::uint32_t index;
  };
  std::vector<Part> parts;
  try {
    for (std::uint32_t index = 0; index < header_->chunks; ++index) {
      const bool is_free = load(chunk(index).state) == static_cast<std::uint32_t>(ChunkState::free);
      // Chunks are taken from the front, so those behind one that was never used were never used either.
      if (is_free && load(chunk(index).count) == 0) break;
      if (!is_free) parts.push_back({load(chunk(index).sequence), index});
    }
  } catch (const std::bad_alloc&) {
    return;  // there is room until the next time
  }
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.sequence < b.sequence; });
  for (const Part& part : parts) {
    ChunkHeader& one = chunk(part.index);
    if (load(one.sequence) == 0) continue;  // being begun
    const bool is_full = load(one.state) == static_cast<std::uint32_t>(ChunkState::full);
    const std::uint32_t count = load(one.count);
    for (std::uint32_t& next = drained_[part.index]; next < count; ++next)
      use(threads_[one.thread], entries_of(one)[next]);
    if (!is_full) continue;
    drained_[part.index] = 0;
    // Before it is free: who looks while it is claimed must not take the old entries for new ones.
    store(one.sequence, 0);
    store(one.state, static_cast<std::uint32_t>(ChunkState::free));
  }
}

}  // namespace weir::inject
