#include "run/record_live.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/file.h"
#include "base/process.h"

namespace weir {
namespace {

// Larger tables are not of our making.
constexpr std::uint32_t kMostPlaces = 1U << 16, kMostTextBytes = 1U << 28, kMostChunks = 1U << 20;

bool read_at(int file, void* to, std::size_t bytes, std::uint64_t at) noexcept {
  auto* next = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = ::pread(file, next, bytes, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    next += got;
    at += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

bool fits(std::uint64_t at, std::uint64_t bytes, std::uint64_t file_bytes) noexcept {
  return at <= file_bytes && bytes <= file_bytes - at;
}

// Returns what is wrong with the header of a file of that size, or empty.
std::string fault_in(const record::Header& header, std::uint64_t file_bytes) {
  if (std::memcmp(header.magic, record::kMagic, sizeof header.magic) != 0) return "it is not a recording";
  if (header.version != record::kVersion || header.header_bytes != sizeof(record::Header))
    return fmt::format("it is a recording of version {}, and this weir reads version {}", header.version,
                       record::kVersion);
  if (header.threads > kMostPlaces || header.streams > kMostPlaces || header.text_bytes > kMostTextBytes ||
      header.chunks > kMostChunks ||
      !fits(header.threads_at, std::uint64_t{header.threads} * sizeof(record::Thread), file_bytes) ||
      !fits(header.streams_at, std::uint64_t{header.streams} * sizeof(record::Stream), file_bytes) ||
      !fits(header.texts_at, header.text_bytes, file_bytes) ||
      !fits(header.chunks_at, std::uint64_t{header.chunks} * record::kChunkBytes, file_bytes))
    return "its tables do not fit into the file";
  return {};
}

bool write_word(const std::filesystem::path& path, std::size_t at, std::uint32_t value) noexcept {
  // The library maps the file; the kernel keeps both views equal, and a word is written as a whole.
  const Descriptor file = open_regular(path, O_RDWR | O_NOFOLLOW);
  return file && ::pwrite(file.get(), &value, sizeof value, static_cast<off_t>(at)) == sizeof value;
}

}  // namespace

std::uint64_t RecordedState::calls() const noexcept {
  std::uint64_t sum = 0;
  for (const record::Thread& thread : threads) sum += thread.calls;
  return sum;
}

std::uint64_t RecordedState::commands() const noexcept {
  std::uint64_t sum = 0;
  for (const record::Thread& thread : threads) sum += thread.commands;
  return sum;
}

std::uint64_t RecordedState::outstanding() const noexcept {
  std::uint64_t sum = 0;
  for (const record::Stream& stream : streams)
    if (stream.is_destroyed == 0 && stream.submitted > stream.ended) sum += stream.submitted - stream.ended;
  return sum;
}

std::int64_t RecordedState::last_end_ns() const noexcept {
  std::int64_t newest = 0;
  for (const record::Stream& stream : streams) newest = std::max(newest, stream.ended_ns);
  return newest;
}

std::optional<RecordedState> LiveRecording::read(std::string& reason) const {
  const Descriptor file = open_regular(file_);
  struct stat facts{};
  if (!file || ::fstat(file.get(), &facts) != 0) {
    reason = std::strerror(errno);
    return std::nullopt;
  }
  RecordedState state;
  state.file_bytes = static_cast<std::uint64_t>(facts.st_size);
  if (!read_at(file.get(), &state.header, sizeof state.header, 0)) {
    reason = "it is too short for a recording";
    return std::nullopt;
  }
  reason = fault_in(state.header, state.file_bytes);
  if (!reason.empty()) return std::nullopt;
  state.threads.resize(state.header.threads);
  state.streams.resize(state.header.streams);
  if (!read_at(file.get(), state.threads.data(), state.threads.size() * sizeof(record::Thread),
               state.header.threads_at) ||
      !read_at(file.get(), state.streams.data(), state.streams.size() * sizeof(record::Stream),
               state.header.streams_at)) {
    reason = "its tables cannot be read";
    return std::nullopt;
  }
  std::erase_if(state.threads, [](const record::Thread& thread) { return thread.id == 0; });
  std::erase_if(state.streams, [](const record::Stream& stream) { return stream.is_used == 0; });
  return state;
}

std::string LiveRecording::text(const record::Header& header, std::uint32_t number) const {
  record::TextHeader length{};
  if (number == record::kNoText || number > header.text_bytes || header.text_bytes - number < sizeof length) return {};
  const Descriptor file = open_regular(file_);
  if (!file || !read_at(file.get(), &length, sizeof length, header.texts_at + number)) return {};
  if (length.bytes > header.text_bytes - number - sizeof length) return {};
  std::string text(length.bytes, '\0');
  return read_at(file.get(), text.data(), text.size(), header.texts_at + number + sizeof length) ? text : std::string();
}

std::vector<std::string> LiveRecording::command(const record::Header& header) const {
  const std::string all = text(header, header.command_line);
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t end = std::min(all.find('\0', begin), all.size());
    words.push_back(all.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

std::int64_t LiveRecording::oldest_ns(const record::Header& header) const {
  if (header.chunks == 0 || header.claimed == 0) return 0;
  if (header.claimed < header.chunks) return header.started_ns;
  // The chunk that will be overwritten next.
  const std::uint64_t place = header.claimed % header.chunks;
  record::Entry entry{};
  const Descriptor file = open_regular(file_);
  const std::uint64_t at = header.chunks_at + place * record::kChunkBytes + sizeof(record::ChunkHeader);
  return file && read_at(file.get(), &entry, sizeof entry, at) ? entry.ended_ns : 0;
}

std::vector<RecordedEntry> LiveRecording::news(const record::Header& header) {
  std::vector<RecordedEntry> all;
  const Descriptor file = open_regular(file_);
  if (!file || header.chunks == 0) return all;
  const std::uint64_t first = std::max(std::min(claimed_, header.claimed),
                                       header.claimed - std::min<std::uint64_t>(header.claimed, header.chunks));
  for (std::uint64_t sequence = first; sequence < header.claimed; ++sequence)
    followed_.try_emplace(static_cast<std::uint32_t>(sequence % header.chunks));
  claimed_ = header.claimed;
  std::vector<record::Entry> entries;
  for (auto next = followed_.begin(); next != followed_.end();) {
    const auto at = next++;
    Chunk& chunk = at->second;
    const std::uint64_t offset = header.chunks_at + at->first * std::uint64_t{record::kChunkBytes};
    record::ChunkHeader now{}, after{};
    if (at->first >= header.chunks || !read_at(file.get(), &now, sizeof now, offset)) {
      followed_.erase(at);
      continue;
    }
    if (now.sequence == 0) continue;  // it is being begun
    if (now.sequence != chunk.sequence) chunk = {now.sequence, 0};
    const auto count = std::min(now.count, static_cast<std::uint32_t>(record::kChunkEntries));
    if (count > chunk.count) {
      entries.resize(count - chunk.count);
      const std::uint64_t from = offset + sizeof now + chunk.count * sizeof(record::Entry);
      // The ring may come round while we read.
      const bool is_whole = read_at(file.get(), entries.data(), entries.size() * sizeof(record::Entry), from) &&
                            read_at(file.get(), &after, sizeof after, offset) && after.sequence == now.sequence;
      for (const record::Entry& entry : entries) {
        if (!is_whole) break;
        RecordedEntry& added = all.emplace_back();
        static_cast<record::Entry&>(added) = entry;
        added.thread = now.thread;
      }
      chunk.count = count;
    }
    if (now.state == static_cast<std::uint32_t>(record::ChunkState::full)) followed_.erase(at);
  }
  // Places are taken again and again, so their order says nothing.
  std::stable_sort(all.begin(), all.end(),
                   [](const RecordedEntry& a, const RecordedEntry& b) { return a.ended_ns < b.ended_ns; });
  return all;
}

bool LiveRecording::want_off(bool is_off) const noexcept {
  return write_word(file_, offsetof(record::Header, wanted_off), is_off ? 1 : 0);
}

bool LiveRecording::want_stacks(std::uint32_t request) const noexcept {
  return write_word(file_, offsetof(record::Header, stacks_wanted), request);
}

bool is_alive(const record::Header& header) {
  if (header.pid == 0 || header.pid > INT32_MAX) return false;
  const auto facts = facts_of(static_cast<pid_t>(header.pid));
  return facts && !facts->is_ended() && facts->started == header.process_started;
}

}  // namespace weir
