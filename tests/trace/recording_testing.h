// Recordings of a flight recorder (trace/record_format.h) for tests: writes the bytes as the library in a program does,
// with small tables. Knows no reader.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/record_format.h"

namespace weir {

class RecordingBuilder {
 public:
  static constexpr std::uint32_t kThreads = 16, kStreams = 16, kTextBytes = 16384;

  // Once its chunks are full, the oldest one makes room.
  explicit RecordingBuilder(std::uint32_t chunks = 4) : threads_(kThreads), streams_(kStreams), open_(kThreads) {
    const auto rounded = [](std::uint64_t bytes) { return (bytes + 4095) / 4096 * 4096; };
    std::memcpy(header_.magic, record::kMagic, sizeof(header_.magic));
    header_.version = record::kVersion;
    header_.header_bytes = sizeof(record::Header);
    header_.threads = kThreads;
    header_.streams = kStreams;
    header_.text_bytes = kTextBytes;
    header_.chunks = chunks;
    header_.threads_at = rounded(sizeof(record::Header));
    header_.streams_at = header_.threads_at + rounded(kThreads * sizeof(record::Thread));
    header_.texts_at = header_.streams_at + rounded(kStreams * sizeof(record::Stream));
    header_.chunks_at = header_.texts_at + kTextBytes;
    header_.pid = 4711;
    header_.parent_pid = 1;
    header_.state = static_cast<std::uint32_t>(record::State::running);
    texts_.assign(sizeof(record::TextHeader), '\0');
    chunks_.assign(chunks * record::kChunkBytes, '\0');
    header_.clock = add_text("CLOCK_MONOTONIC");
    header_.command_line = add_text(std::string_view("./program\0two words\0", 20));
  }

  record::Header& header() { return header_; }
  record::Thread& thread(std::uint32_t place) { return threads_.at(place); }
  record::Stream& stream(std::uint32_t place) { return streams_.at(place); }

  // Each returns a number or a place for what follows.
  std::uint32_t add_text(std::string_view text) {
    if (text.empty()) return record::kNoText;
    if (const auto found = numbers_.find(std::string(text)); found != numbers_.end()) return found->second;
    const auto at = static_cast<std::uint32_t>(texts_.size());
    const record::TextHeader length{static_cast<std::uint32_t>(text.size())};
    texts_.append(reinterpret_cast<const char*>(&length), sizeof(length)).append(text);
    texts_.resize((texts_.size() + 3) / 4 * 4);
    if (texts_.size() > kTextBytes) throw std::runtime_error("too many texts for a recording of a test");
    numbers_.emplace(text, at);
    return at;
  }
  std::uint32_t add_thread(std::uint32_t id, std::string_view name = "python3") {
    record::Thread& thread = threads_.at(thread_count_);
    thread.id = id;
    std::memcpy(thread.name, name.data(), std::min(name.size(), sizeof(thread.name) - 1));
    return thread_count_++;
  }
  std::uint32_t add_stream(std::uint32_t id, std::uint32_t context = 1, std::uint32_t device = 0) {
    streams_.at(stream_count_) = described(id, context, device);
    return stream_count_++;
  }
  // The program destroyed the stream there, and another one takes its place.
  void replace_stream(std::uint32_t place, std::uint32_t id) {
    streams_.at(place) = described(id, streams_.at(place).context, streams_.at(place).device);
  }
  std::uint16_t add_function(const std::string& name) {
    const auto [at, is_new] = functions_.try_emplace(name, static_cast<std::uint16_t>(functions_.size() + 1));
    if (is_new) header_.functions[at->second] = add_text(name);
    return at->second;
  }

  // A call of the driver that has returned. A command on a stream gets the next number of that stream, unless it has
  // flags.
  record::Entry call(std::uint32_t thread, record::Kind kind, const std::string& function, std::uint32_t stream,
                     std::int64_t started_ns, std::int64_t ended_ns, std::string_view name = {},
                     std::uint64_t object = 0, std::uint8_t flags = 0) {
    record::Entry entry{};
    entry.started_ns = started_ns;
    entry.ended_ns = ended_ns;
    entry.object = object;
    entry.stream = stream;
    entry.context = stream == record::kNone ? 1 : streams_.at(stream).context;
    entry.correlation = ++correlation_;
    entry.name = add_text(name);
    entry.function = add_function(function);
    entry.kind = static_cast<std::uint8_t>(kind);
    entry.flags = flags;
    if (record::is_command(kind) && flags == 0 && stream != record::kNone) {
      entry.number = static_cast<std::uint32_t>(++streams_[stream].submitted);
      streams_[stream].submitted_ns = ended_ns;
      ++threads_.at(thread).commands;
    }
    ++threads_.at(thread).calls;
    append(thread, entry);
    return entry;
  }
  record::Entry launch(std::uint32_t thread, std::uint32_t stream, std::string_view kernel, std::int64_t started_ns,
                       std::int64_t ended_ns) {
    return call(thread, record::Kind::launch, "cuLaunchKernel", stream, started_ns, ended_ns, kernel);
  }
  // The first `number` commands of a stream had ended at a time.
  void mark(std::uint32_t thread, std::uint32_t stream, std::uint64_t number, std::int64_t ended_ns,
            std::uint32_t error_ns = 0) {
    record::Entry entry{};
    entry.started_ns = entry.ended_ns = ended_ns;
    entry.object = number;
    entry.stream = stream;
    entry.context = streams_.at(stream).context;
    entry.kind = static_cast<std::uint8_t>(record::Kind::mark);
    entry.number = error_ns;
    append(thread, entry);
    streams_[stream].ended = std::max(streams_[stream].ended, number);
    streams_[stream].ended_ns = ended_ns;
  }
  // The device's record of the command that the call with this correlation submitted.
  void device(std::uint32_t thread, std::uint32_t correlation, std::uint32_t stream, std::int64_t started_ns,
              std::int64_t ended_ns, std::string_view kernel = {}, std::uint32_t channel = record::kNone,
              std::uint64_t bytes = 0) {
    record::Entry entry{};
    entry.started_ns = started_ns;
    entry.ended_ns = ended_ns;
    entry.object = bytes;
    entry.stream = stream;
    entry.context = stream == record::kNone ? 1 : streams_.at(stream).context;
    entry.correlation = correlation;
    entry.name = add_text(kernel);
    entry.function = kernel.empty() ? 2 : 1;  // of a copy engine, or not
    entry.kind = static_cast<std::uint8_t>(record::Kind::device);
    entry.number = channel;
    append(thread, entry);
  }
  void range(std::uint32_t thread, std::string_view name, std::int64_t started_ns, std::int64_t ended_ns) {
    record::Entry entry{};
    entry.started_ns = started_ns;
    entry.ended_ns = ended_ns;
    entry.stream = entry.context = record::kNone;
    entry.name = add_text(name);
    entry.kind = static_cast<std::uint8_t>(record::Kind::range);
    append(thread, entry);
  }
  // The thread is in a call that has not returned.
  void enter(std::uint32_t thread, record::Kind kind, const std::string& function, std::uint32_t stream,
             std::int64_t started_ns, std::uint64_t object = 0) {
    record::Thread& in = threads_.at(thread);
    in.started_ns = started_ns;
    in.stream = stream;
    in.context = stream == record::kNone ? 1 : streams_.at(stream).context;
    in.object = object;
    in.function = add_function(function);
    in.kind = static_cast<std::uint8_t>(kind);
  }
  void append(std::uint32_t thread, const record::Entry& entry) {
    Open& open = open_.at(thread);
    if (!open.is_open || chunk(open.index).count == record::kChunkEntries) claim(thread);
    record::ChunkHeader head = chunk(open.index);
    std::memcpy(at(open.index) + sizeof(head) + head.count * sizeof(entry), &entry, sizeof(entry));
    ++head.count;
    std::memcpy(at(open.index), &head, sizeof(head));
  }

  std::string bytes() const {
    record::Header header = header_;
    header.texts_used = static_cast<std::uint32_t>(texts_.size());
    std::string made(header.chunks_at, '\0');
    std::memcpy(made.data(), &header, sizeof(header));
    std::memcpy(made.data() + header.threads_at, threads_.data(), threads_.size() * sizeof(record::Thread));
    std::memcpy(made.data() + header.streams_at, streams_.data(), streams_.size() * sizeof(record::Stream));
    std::memcpy(made.data() + header.texts_at, texts_.data(), texts_.size());
    return made + chunks_;
  }

 private:
  struct Open {
    bool is_open = false;
    std::uint32_t index = 0;
  };

  static record::Stream described(std::uint32_t id, std::uint32_t context, std::uint32_t device) {
    record::Stream stream{};
    stream.handle = 0x7f00'0000U + id;
    stream.context = context;
    stream.id = id;
    stream.device = device;
    stream.is_used = 1;
    stream.thread = record::kNone;
    return stream;
  }
  char* at(std::uint32_t index) { return chunks_.data() + index * record::kChunkBytes; }
  record::ChunkHeader chunk(std::uint32_t index) {
    record::ChunkHeader head{};
    std::memcpy(&head, at(index), sizeof(head));
    return head;
  }
  void claim(std::uint32_t thread) {
    Open& own = open_.at(thread);
    if (own.is_open) set_state(own.index, record::ChunkState::full);
    own.is_open = false;
    for (std::uint32_t tries = 0; tries < header_.chunks; ++tries) {
      const auto index = static_cast<std::uint32_t>(header_.claimed++ % header_.chunks);
      if (chunk(index).state == static_cast<std::uint32_t>(record::ChunkState::open)) continue;
      record::ChunkHeader head{};
      head.sequence = header_.claimed;
      head.thread = thread;
      head.state = static_cast<std::uint32_t>(record::ChunkState::open);
      std::memcpy(at(index), &head, sizeof(head));
      own = {true, index};
      return;
    }
    throw std::runtime_error("too few chunks for the threads of a recording of a test");
  }
  void set_state(std::uint32_t index, record::ChunkState state) {
    record::ChunkHeader head = chunk(index);
    head.state = static_cast<std::uint32_t>(state);
    std::memcpy(at(index), &head, sizeof(head));
  }

  record::Header header_{};
  std::vector<record::Thread> threads_;
  std::vector<record::Stream> streams_;
  std::vector<Open> open_;
  std::string texts_, chunks_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::unordered_map<std::string, std::uint16_t> functions_;
  std::uint32_t thread_count_ = 0, stream_count_ = 0, correlation_ = 0;
};

}  // namespace weir
