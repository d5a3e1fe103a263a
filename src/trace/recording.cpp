#include "trace/recording.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/error.h"
#include "base/file.h"

namespace weir {
namespace {

using record::ChunkHeader;
using record::Entry;
using record::Header;
using record::kChunkBytes;
using record::kChunkEntries;
using record::Kind;
using record::kNone;

static_assert(std::endian::native == std::endian::little, "recordings are read as they lie in memory");

// More than any recorder makes: a file that claims more is damaged, and would cost memory.
constexpr std::uint64_t kMaxPlaces = 65'536, kMaxTextBytes = std::uint64_t{64} << 20, kMaxChunks = 65'536;

constexpr std::array<bool, 256> known_kinds() {
  std::array<bool, 256> known{};
  for (const Kind kind : {Kind::other, Kind::launch, Kind::copy, Kind::memset, Kind::graph_launch, Kind::host_function,
                          Kind::memory_operation, Kind::event_record, Kind::stream_wait_event, Kind::event_synchronize,
                          Kind::stream_synchronize, Kind::context_synchronize, Kind::synchronous_copy,
                          Kind::event_create, Kind::event_destroy, Kind::mark, Kind::device, Kind::range})
    known[static_cast<std::size_t>(kind)] = true;
  return known;
}
constexpr std::array<bool, 256> kKnownKinds = known_kinds();

// Bytes that somebody may be writing.
class LiveBytes {
 public:
  virtual ~LiveBytes() = default;
  virtual std::uint64_t size() const = 0;
  // Copies what is there, fewer bytes than `size` only at the end.
  virtual std::size_t copy(std::uint64_t from, char* to, std::size_t size) const = 0;
};

class LiveMemory : public LiveBytes {
 public:
  explicit LiveMemory(std::string_view bytes) : bytes_(bytes) {}
  std::uint64_t size() const override { return bytes_.size(); }
  std::size_t copy(std::uint64_t from, char* to, std::size_t size) const override {
    if (from >= bytes_.size() || size == 0) return 0;  // `to` may be null
    const std::size_t there = std::min<std::uint64_t>(size, bytes_.size() - from);
    // Pairs with the stores of Recorder, if that maps the same memory.
    std::atomic_thread_fence(std::memory_order_acquire);
    std::memcpy(to, bytes_.data() + from, there);
    std::atomic_thread_fence(std::memory_order_acquire);
    return there;
  }

 private:
  std::string_view bytes_;
};

class LiveFile : public LiveBytes {
 public:
  LiveFile(int file, std::uint64_t size, const std::filesystem::path& path) : file_(file), size_(size), path_(path) {}
  std::uint64_t size() const override { return size_; }
  std::size_t copy(std::uint64_t from, char* to, std::size_t size) const override {
    std::size_t got = 0;
    while (got < size && from + got < size_) {
      const ssize_t more = ::pread(file_, to + got, size - got, static_cast<off_t>(from + got));
      if (more < 0 && errno == EINTR) continue;
      if (more < 0) throw_file_error(path_, "read", errno);
      if (more == 0) break;
      got += static_cast<std::size_t>(more);
    }
    return got;
  }

 private:
  int file_;
  std::uint64_t size_;
  const std::filesystem::path& path_;
};

class RecordingReader {
 public:
  RecordingReader(const LiveBytes& bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  Recording read() {
    read_header();
    read_chunks();
    // Later than the entries, so that it describes what they refer to.
    Header now = read_.header;
    if (bytes_.copy(0, reinterpret_cast<char*>(&now), sizeof(now)) == sizeof(now)) {
      now.threads = read_.header.threads, now.streams = read_.header.streams, now.chunks = read_.header.chunks;
      now.text_bytes = read_.header.text_bytes;
      now.threads_at = read_.header.threads_at, now.streams_at = read_.header.streams_at;
      now.texts_at = read_.header.texts_at, now.chunks_at = read_.header.chunks_at;
      read_.header = now;
    }
    read_table(read_.threads, read_.header.threads, read_.header.threads_at, "thread that is not in the file");
    read_table(read_.streams, read_.header.streams, read_.header.streams_at, "stream that is not in the file");
    read_texts();
    check_tables();
    check_entries();
    sort_entries();
    return std::move(read_);
  }

 private:
  struct Part {
    std::uint64_t sequence = 0, at = 0;
  };

  void drop(const char* reason, std::uint64_t count = 1) {
    if (count == 0) return;
    for (auto& [known, before] : read_.dropped)
      if (known == reason) return void(before += std::min(count, UINT64_MAX - before));
    read_.dropped.emplace_back(reason, count);
  }

  void read_header() {
    Header& header = read_.header;
    const std::size_t got = bytes_.copy(0, reinterpret_cast<char*>(&header), sizeof(header));
    if (got < sizeof(header.magic) || std::memcmp(header.magic, record::kMagic, sizeof(header.magic)) != 0)
      reject(fmt::format("{}: is not a recording of weir: it does not begin with {}", name_,
                         std::string_view(record::kMagic, sizeof(record::kMagic))),
             "Name a file that `weir record` keeps (PID.weirrec).");
    if (got < sizeof(header.magic) + sizeof(header.version) || header.version != record::kVersion)
      reject(fmt::format("{}: is a recording of version {}, and this weir reads version {}", name_, header.version,
                         record::kVersion),
             "Read it with the weir that wrote it.");
    if (got < sizeof(header))
      reject(fmt::format("{}: ends within the header of a recording", name_), "Copy the whole file again.");
  }

  // How many items of a table are in the file.
  std::uint64_t there(std::uint64_t at, std::uint64_t bytes_each, std::uint64_t count) const {
    return at >= bytes_.size() ? 0 : std::min(count, (bytes_.size() - at) / bytes_each);
  }

  template <class Item>
  void read_table(std::vector<Item>& items, std::uint64_t count, std::uint64_t at, const char* missing) {
    const std::uint64_t most = std::min(there(at, sizeof(Item), count), kMaxPlaces);
    items.resize(most);
    const std::size_t got = bytes_.copy(at, reinterpret_cast<char*>(items.data()), most * sizeof(Item));
    items.resize(got / sizeof(Item));
    drop(missing, count - items.size());
  }

  void read_texts() {
    const Header& header = read_.header;
    const std::uint64_t used = std::min({header.texts_used, header.text_bytes});
    read_.texts.resize(std::min(there(header.texts_at, 1, used), kMaxTextBytes));
    read_.texts.resize(bytes_.copy(header.texts_at, read_.texts.data(), read_.texts.size()));
    drop("byte of names that is not in the file", header.texts_used - read_.texts.size());
    // Numbers of texts are where one begins.
    is_text_.assign(read_.texts.size() / 4 + 1, false);
    for (std::uint64_t at = sizeof(record::TextHeader); at + sizeof(record::TextHeader) <= read_.texts.size();) {
      record::TextHeader length{};
      std::memcpy(&length, read_.texts.data() + at, sizeof(length));
      const std::uint64_t end = at + sizeof(length) + length.bytes;
      if (end > read_.texts.size()) break;
      is_text_[at / 4] = true;
      at = (end + 3) / 4 * 4;
    }
  }

  // Oldest first. A chunk is used if it was not begun anew while it was copied.
  void read_chunks() {
    const Header& header = read_.header;
    // The last one may be cut.
    const std::uint64_t rest = header.chunks_at < bytes_.size() ? bytes_.size() - header.chunks_at : 0;
    const std::uint64_t chunks =
        std::min({std::uint64_t{header.chunks}, rest / kChunkBytes + (rest % kChunkBytes != 0 ? 1 : 0), kMaxChunks});
    drop("chunk that is not in the file", header.chunks - chunks);
    std::vector<Part> parts;
    std::uint64_t count = 0;
    for (std::uint64_t i = 0; i < chunks; ++i) {
      const std::uint64_t at = header.chunks_at + i * kChunkBytes;
      ChunkHeader head{};
      if (bytes_.copy(at, reinterpret_cast<char*>(&head), sizeof(head)) < sizeof(head) || head.sequence == 0) continue;
      parts.push_back({head.sequence, at});
      count += std::min<std::uint64_t>(head.count, kChunkEntries);
    }
    std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.sequence < b.sequence; });
    read_.entries.reserve(count);
    std::vector<char> copy(kChunkBytes);
    for (const Part& part : parts) read_chunk(part, copy);
  }

  void read_chunk(const Part& part, std::vector<char>& copy) {
    ChunkHeader before{}, after{};
    const auto take = [&](ChunkHeader& head) {
      return bytes_.copy(part.at, reinterpret_cast<char*>(&head), sizeof(head)) == sizeof(head) &&
             head.sequence == part.sequence;
    };
    // What is published by now: entries are there before they are counted.
    if (!take(before)) return drop("chunk that was overwritten while it was read");
    if (before.count > kChunkEntries) drop("entry beyond the end of its chunk", before.count - kChunkEntries);
    const std::size_t wanted = std::min<std::size_t>(before.count, kChunkEntries) * sizeof(Entry);
    const std::size_t got = bytes_.copy(part.at + sizeof(before), copy.data(), wanted);
    if (!take(after)) return drop("chunk that was overwritten while it was read");
    drop("entry that is not in the file", (wanted - got + sizeof(Entry) - 1) / sizeof(Entry));
    for (std::size_t at = 0; at + sizeof(Entry) <= got; at += sizeof(Entry)) {
      RecordedEntry entry;
      std::memcpy(static_cast<Entry*>(&entry), copy.data() + at, sizeof(Entry));
      entry.thread = before.thread;
      read_.entries.push_back(entry);
    }
  }

  void check_tables() {
    for (record::Thread& thread : read_.threads) {
      thread.name[sizeof(thread.name) - 1] = '\0';
      if (thread.stream >= read_.streams.size()) thread.stream = kNone;
      if (!kKnownKinds[thread.kind]) thread.kind = static_cast<std::uint8_t>(Kind::other);
    }
    for (record::Stream& stream : read_.streams)
      if (stream.thread >= read_.threads.size()) stream.thread = kNone;
  }

  void check_entries() {
    std::uint64_t kinds = 0, threads = 0, streams = 0, names = 0;
    const auto has_text = [&](std::uint32_t number) {
      return number == record::kNoText || (number % 4 == 0 && number / 4 < is_text_.size() && is_text_[number / 4]);
    };
    auto& all = read_.entries;
    std::size_t kept = 0;
    for (RecordedEntry& entry : all) {
      if (!kKnownKinds[entry.kind]) {
        ++kinds;
        continue;
      }
      if (entry.thread >= read_.threads.size()) {
        entry.thread = kNone;
        ++threads;
      }
      if (entry.stream >= read_.streams.size() && entry.stream != kNone) {
        entry.stream = kNone;
        ++streams;
      }
      if (!has_text(entry.name)) {
        entry.name = record::kNoText;
        ++names;
      }
      all[kept++] = entry;
    }
    all.resize(kept);
    drop("entry of a kind that this weir does not know", kinds);
    drop("thread of an entry that is not in the table", threads);
    drop("stream of an entry that is not in the table", streams);
    drop("name of an entry that is not in the table", names);
  }

  void sort_entries() {
    auto& all = read_.entries;
    const auto is_earlier = [](const RecordedEntry& a, const RecordedEntry& b) { return a.ended_ns < b.ended_ns; };
    if (std::is_sorted(all.begin(), all.end(), is_earlier)) return;  // of one thread
    // Entries are large, so their order is found first, and each is moved once.
    std::vector<std::pair<std::int64_t, std::uint32_t>> order;
    order.reserve(all.size());
    for (std::uint32_t i = 0; i < all.size(); ++i) order.emplace_back(all[i].ended_ns, i);
    std::sort(order.begin(), order.end());
    std::vector<RecordedEntry> sorted;
    sorted.reserve(all.size());
    for (const auto& [time, place] : order) sorted.push_back(all[place]);
    all = std::move(sorted);
  }

  const LiveBytes& bytes_;
  const std::string& name_;
  Recording read_;
  std::vector<bool> is_text_;  // by number / 4
};

}  // namespace

std::string_view Recording::text(std::uint32_t number) const noexcept {
  record::TextHeader length{};
  if (number == record::kNoText || number > texts.size() || texts.size() - number < sizeof(length)) return {};
  std::memcpy(&length, texts.data() + number, sizeof(length));
  const std::size_t at = number + sizeof(length);
  return length.bytes > texts.size() - at ? std::string_view() : std::string_view(texts).substr(at, length.bytes);
}

std::string_view Recording::function(std::uint32_t number) const noexcept {
  return number < record::kFunctions ? text(header.functions[number]) : std::string_view();
}

std::vector<std::string> Recording::command() const {
  std::vector<std::string> words;
  std::string_view rest = text(header.command_line);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\0'), rest.size());
    words.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return words;
}

std::string copy_recording(const std::filesystem::path& file, std::uint64_t most_bytes) {
  const Descriptor open = open_to_read(file);
  struct stat facts{};
  if (::fstat(open.get(), &facts) != 0) throw_file_error(file, "read", errno);
  // What comes out of a pipe does not change any more.
  if (!S_ISREG(facts.st_mode)) return read_file(file, most_bytes);
  const auto size = static_cast<std::uint64_t>(facts.st_size);
  if (size > most_bytes)
    reject(fmt::format("{}: is larger than {} MiB, the limit for such a file", file.string(), most_bytes >> 20));
  const LiveFile live(open.get(), size, file);
  std::string copy(size, '\0');
  copy.resize(live.copy(0, copy.data(), copy.size()));
  Header header{}, now{};
  if (copy.size() < sizeof(header)) return copy;
  std::memcpy(&header, copy.data(), sizeof(header));
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(header.chunks, kMaxChunks); ++i) {
    const std::uint64_t at = header.chunks_at + i * kChunkBytes;
    ChunkHeader head{};
    if (at >= copy.size() || copy.size() - at < sizeof(head)) break;
    std::uint64_t sequence = 0;
    std::memcpy(&sequence, copy.data() + at, sizeof(sequence));
    if (live.copy(at, reinterpret_cast<char*>(&head), sizeof(head)) == sizeof(head) && head.sequence == sequence)
      continue;
    std::memset(copy.data() + at, 0, sizeof(sequence));
  }
  // Later than the chunks, and so no less than what is missing.
  if (live.copy(0, reinterpret_cast<char*>(&now), sizeof(now)) == sizeof(now))
    std::memcpy(copy.data() + offsetof(Header, overwritten_ns), &now.overwritten_ns, sizeof(now.overwritten_ns));
  return copy;
}

Recording read_recording(std::string_view contents, const std::string& name) {
  return RecordingReader(LiveMemory(contents), name).read();
}

Recording read_recording(const std::filesystem::path& file) {
  const Descriptor open = open_to_read(file);
  struct stat facts{};
  if (::fstat(open.get(), &facts) != 0) throw_file_error(file, "read", errno);
  const std::string name = file.string();
  // Of a pipe there is one look only.
  if (!S_ISREG(facts.st_mode)) return read_recording(read_file(file), name);
  return RecordingReader(LiveFile(open.get(), static_cast<std::uint64_t>(facts.st_size), file), name).read();
}

}  // namespace weir
