#include "lab/race/read_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_map>

#include "base/error.h"
#include "base/file.h"
#include "lab/race/captures.h"
#include "trace/race_format.h"

namespace weir::race {
namespace {

constexpr std::uint64_t kLargestLog = std::uint64_t{4} << 30;
constexpr std::uint32_t kLongestText = 1 << 16;  // longer ones are cut
constexpr std::size_t kMostStreams = 4096, kMostRanges = std::size_t{1} << 31;

std::optional<Kind> kind_of(std::uint8_t kind) {
  switch (static_cast<race_format::Kind>(kind)) {
    case race_format::Kind::kernel:
      return Kind::kernel;
    case race_format::Kind::copy:
      return Kind::copy;
    case race_format::Kind::set:
      return Kind::set;
    case race_format::Kind::host_function:
      return Kind::host_function;
    case race_format::Kind::graph_launch:
      return Kind::graph_launch;
    case race_format::Kind::memory_operation:
      return Kind::memory_operation;
    case race_format::Kind::event_record:
      return Kind::event_record;
    case race_format::Kind::stream_wait_event:
      return Kind::stream_wait_event;
    case race_format::Kind::event_synchronize:
      return Kind::event_synchronize;
    case race_format::Kind::stream_synchronize:
      return Kind::stream_synchronize;
    case race_format::Kind::context_synchronize:
      return Kind::context_synchronize;
    case race_format::Kind::allocate:
      return Kind::allocate;
    case race_format::Kind::release:
      return Kind::release;
    case race_format::Kind::checkpoint:
      return Kind::checkpoint;
    default:
      return std::nullopt;
  }
}

bool needs_stream(Kind kind) {
  return is_command(kind) || kind == Kind::event_record || kind == Kind::stream_wait_event ||
         kind == Kind::stream_synchronize;
}

class LogReader {
 public:
  explicit LogReader(std::string_view bytes) : bytes_(bytes) {}

  Log read() {
    race_format::Entry entry;
    while (take(entry)) {
      const bool is_text = static_cast<race_format::Kind>(entry.kind) == race_format::Kind::text;
      const std::uint64_t size = is_text ? entry.accesses : entry.accesses * std::uint64_t{sizeof(race_format::Access)};
      if (size > bytes_.size()) {
        bytes_ = {};
        ++log_.unread;
        break;
      }
      body_ = bytes_.substr(0, size);
      bytes_.remove_prefix(size);
      if (!read(entry)) ++log_.unread;
    }
    log_.unread += bytes_.empty() ? 0 : 1;  // a part of an entry
    return std::move(log_);
  }

 private:
  template <class T>
  bool take(T& value) {
    if (bytes_.size() < sizeof(T)) return false;
    std::memcpy(&value, bytes_.data(), sizeof(T));
    bytes_.remove_prefix(sizeof(T));
    return true;
  }

  // False if it makes no sense.
  bool read(const race_format::Entry& entry) {
    if ((entry.flags & race_format::kFailed) != 0) return true;  // nothing was done
    switch (static_cast<race_format::Kind>(entry.kind)) {
      case race_format::Kind::text:
        return add_text(entry);
      case race_format::Kind::stream:
        return add_stream(entry);
      case race_format::Kind::capture_begins: {
        const std::uint32_t stream = stream_of(entry.stream);
        if (stream != kNoStream) captures_.begin(stream);
        return stream != kNoStream;
      }
      case race_format::Kind::capture_ends:
        return captures_.end(stream_of(entry.stream), entry.object);
      case race_format::Kind::graph_made:
        captures_.make(entry.object, entry.other);
        return true;
      case race_format::Kind::hashed:
        return add_hashes(entry);
      default:
        return add_call(entry);
    }
  }

  bool add_text(const race_format::Entry& entry) {
    if (entry.object == 0) return false;
    text_of_[entry.object] = static_cast<std::uint32_t>(log_.texts.size());
    log_.texts.emplace_back(body_.substr(0, kLongestText));
    return true;
  }
  std::uint32_t label_of(std::uint32_t number) const {
    const auto found = text_of_.find(number);
    return found == text_of_.end() ? 0 : found->second;
  }

  bool add_stream(const race_format::Entry& entry) {
    if (entry.stream == race_format::kNone || log_.streams.size() >= kMostStreams) return false;
    stream_of_[entry.stream] = static_cast<std::uint32_t>(log_.streams.size());
    Stream& stream = log_.streams.emplace_back();
    stream.name = log_.texts[label_of(entry.name)];
    if (stream.name.empty()) stream.name = fmt::format("stream {}", entry.stream);
    stream.is_legacy = (entry.flags & race_format::kLegacy) != 0;
    stream.is_blocking = (entry.flags & race_format::kBlocking) != 0 && !stream.is_legacy;
    stream.device = entry.device;
    return true;
  }
  std::uint32_t stream_of(std::uint32_t number) const {
    const auto found = stream_of_.find(number);
    return found == stream_of_.end() ? kNoStream : found->second;
  }

  bool add_hashes(const race_format::Entry& entry) {
    if (entry.thread == 0 || entry.sequence == 0) return false;
    Hashes& hashes = log_.hashes.emplace_back();
    hashes.name = {entry.thread, entry.sequence};
    for_accesses([&](const race_format::Access& access) {
      const bool has_hashes = access.how != 0;
      hashes.before_behind.emplace_back(has_hashes ? access.begin : 0, has_hashes ? access.bytes : 0);
    });
    return true;
  }

  template <class Visit>
  void for_accesses(Visit&& visit) const {
    for (std::size_t at = 0; at + sizeof(race_format::Access) <= body_.size(); at += sizeof(race_format::Access)) {
      race_format::Access access;
      std::memcpy(&access, body_.data() + at, sizeof(access));
      visit(access);
    }
  }

  bool add_call(const race_format::Entry& entry) {
    const std::optional<Kind> kind = kind_of(entry.kind);
    if (!kind) return false;
    Call call;
    call.kind = *kind;
    call.stream = stream_of(entry.stream);
    if (call.stream == kNoStream && needs_stream(*kind)) return false;
    if (log_.ranges.size() + entry.accesses > kMostRanges) return false;
    call.is_captured = (entry.flags & race_format::kCaptured) != 0;
    call.is_synchronous = is_command(*kind) && (entry.flags & race_format::kSynchronous) != 0;
    call.is_host = (entry.flags & race_format::kHost) != 0;
    call.device = entry.device;
    call.name = {entry.thread,
                 is_command(*kind) || *kind == Kind::allocate || *kind == Kind::release ? entry.sequence : 0};
    call.label = label_of(entry.name);
    call.object = entry.object;
    call.time_ns = entry.time_ns;
    call.first_range = static_cast<std::uint32_t>(log_.ranges.size());
    bool has_sense = true;
    for_accesses([&](const race_format::Access& access) { has_sense &= add_range(call, access); });
    call.range_count = static_cast<std::uint32_t>(log_.ranges.size()) - call.first_range;
    if (call.kind == Kind::graph_launch) captures_.fill(call);
    if (call.stream != kNoStream) has_sense &= captures_.assign(call);
    if (!call.is_captured) follow_memory(call);
    log_.calls.push_back(call);
    return has_sense;
  }

  // True if there is such a range, or rightly none.
  bool add_range(const Call& call, const race_format::Access& access) {
    const bool is_block = call.kind == Kind::allocate || call.kind == Kind::release;
    const bool is_exact = (access.how & race_format::kExact) != 0;
    if (access.bytes > UINT64_MAX - access.begin || access.begin == 0) return false;
    Range range{access.begin, access.begin + access.bytes, (access.how & race_format::kReads) != 0,
                (access.how & race_format::kWrites) != 0, is_exact};
    if (is_block) range.is_exact = true;
    if (!is_block && !range.reads && !range.writes) return false;
    if (access.bytes == 0) {
      if (is_exact) return true;  // touches nothing
      range.end = block_end(access.begin);
    }
    log_.ranges.push_back(range);
    return true;
  }

  // The end of the allocation. An address outside of all allocations stands for one byte.
  std::uint64_t block_end(std::uint64_t address) const {
    const auto after = blocks_.upper_bound(address);
    if (after != blocks_.begin() && std::prev(after)->second > address) return std::prev(after)->second;
    return address + 1;
  }
  void follow_memory(const Call& call) {
    if (call.kind != Kind::allocate && call.kind != Kind::release) return;
    for (const Range& range : log_.ranges_of(call)) {
      if (call.kind == Kind::allocate) {
        blocks_[range.begin] = range.end;
      } else {
        blocks_.erase(range.begin);
      }
    }
  }

  std::string_view bytes_;  // not read yet
  std::string_view body_;   // of the entry at hand
  Log log_;
  Captures captures_{log_};
  std::unordered_map<std::uint64_t, std::uint32_t> text_of_;
  std::unordered_map<std::uint32_t, std::uint32_t> stream_of_;
  std::map<std::uint64_t, std::uint64_t> blocks_;
};

}  // namespace

Log read_log(std::string_view bytes, const std::string& name) {
  race_format::Header header;
  if (bytes.size() < sizeof(header)) reject(fmt::format("{}: not a log of weir race: it is too short", name));
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (std::memcmp(header.magic, race_format::kMagic, sizeof(header.magic)) != 0)
    reject(fmt::format("{}: not a log of weir race", name));
  if (header.version != race_format::kVersion)
    reject(fmt::format("{}: a log of version {}, and this program reads version {}", name, header.version,
                       race_format::kVersion),
           "Use the program and the library of one installation.");
  return LogReader(bytes.substr(sizeof(header))).read();
}

Log read_log(const std::filesystem::path& file) { return read_log(read_file(file, kLargestLog), file.string()); }

}  // namespace weir::race
