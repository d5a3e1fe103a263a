// Reads Weir's own captures (trace/capture_format.h) as far as they go: the program that wrote one may have been
// killed. Trusts no count and no size in the file.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/plain_text.h"
#include "base/text_gate.h"
#include "trace/capture_format.h"
#include "trace/import/cuda_activity.h"
#include "trace/import/list.h"

namespace weir::importer_list {
namespace {

using capture::kNone;

static_assert(std::endian::native == std::endian::little, "captures are read as they lie in memory");

template <class Record>
Record as(const char* bytes) noexcept {
  Record record;
  std::memcpy(&record, bytes, sizeof(record));
  return record;
}

std::int64_t time_of(std::int64_t ns) noexcept { return ns == capture::kUnknownTime ? kNoTime : ns; }

// A note is one line of moderate length. NUL separates the words of a command line.
std::string note_text(std::string_view text) {
  std::string shown(whole_characters(text, 200));
  std::replace(shown.begin(), shown.end(), '\0', ' ');
  return for_line(shown);
}

class CaptureReader {
 public:
  CaptureReader(const TraceFile& file, TimelineBuilder& to) : file_(file), to_(to), activity_(to) {}

  void read() {
    char header[sizeof(capture::FileHeader)];
    const std::size_t got = fill(header, sizeof(header));
    if (got < sizeof(capture::kMagic) || std::memcmp(header, capture::kMagic, sizeof(capture::kMagic)) != 0)
      reject(fmt::format("{}: is not a capture of weir: it does not begin with WEIRCAP1", file_.name),
             "Choose the right --input-format, or leave it out.");
    if (got < sizeof(header)) return to_.drop("capture that ends within its header", got);
    const auto facts = as<capture::FileHeader>(header);
    if (facts.version > capture::kVersion)
      reject(fmt::format("{}: is a capture of version {}, this weir reads up to {}", file_.name, facts.version,
                         capture::kVersion),
             "Read it with the weir that wrote it.");
    to_.set_source("CUPTI activity records");
    activity_.knows_waits();
    while (read_block()) {
    }
    if (!has_end_) to_.note("the capture has no end: its program was killed, or still runs; read as far as it goes");
    activity_.resolve("");
    to_.trust_gaps();
  }

 private:
  std::size_t fill(char* to, std::size_t size) {
    std::size_t got = 0;
    while (got < size) {
      const std::size_t more = file_.bytes->read(to + got, size - got);
      if (more == 0) break;
      got += more;
    }
    return got;
  }

  // Reads the next `size` bytes into payload_, fewer where the file ends. Grows with the data present, not with the
  // claimed size.
  void fill_payload(std::size_t size) {
    payload_.clear();
    while (payload_.size() < size) {
      const std::size_t before = payload_.size();
      payload_.resize(std::min(size, before + 65536));
      const std::size_t got = fill(payload_.data() + before, payload_.size() - before);
      if (before + got == payload_.size()) continue;
      payload_.resize(before + got);
      break;
    }
  }

  bool read_block() {
    at_ = file_.bytes->position();
    char header[sizeof(capture::BlockHeader)];
    const std::size_t got = fill(header, sizeof(header));
    if (got == 0) return false;
    if (got < sizeof(header)) {
      to_.drop("block that the file ends within", at_);
      return false;
    }
    const auto block = as<capture::BlockHeader>(header);
    if (block.bytes > capture::kMaxBytes) {
      to_.drop("block larger than blocks are: the rest of the file is not read", at_);
      return false;
    }
    fill_payload(block.bytes);
    const bool is_whole = payload_.size() == block.bytes;
    if (!is_whole) to_.drop("block that the file ends within", at_);
    use(static_cast<capture::Block>(block.type), is_whole);
    if (file_.progress) file_.progress();
    return is_whole;
  }

  void use(capture::Block type, bool is_whole) {
    switch (type) {
      case capture::Block::kernels:
        return each<capture::KernelRecord>([this](const auto& record) { add(record); });
      case capture::Block::copies:
        return each<capture::CopyRecord>([this](const auto& record) { add(record); });
      case capture::Block::calls:
        return each<capture::CallRecord>([this](const auto& record) { add(record); });
      case capture::Block::syncs:
        return each<capture::SyncRecord>([this](const auto& record) { add(record); });
      case capture::Block::events:
        return each<capture::EventRecord>([this](const auto& record) { add(record); });
      case capture::Block::markers:
        return each<capture::MarkerRecord>([this](const auto& record) { add(record); });
      case capture::Block::contexts:
        return each<capture::ContextRecord>(
            [this](const auto& record) { activity_.context_is_on(file_.process, record.context, record.device); });
      default:
        if (is_whole) use_text(type);
    }
  }

  // Truncated texts would be wrong, so these blocks are used completely or not at all.
  void use_text(capture::Block type) {
    const std::string_view payload(payload_.data(), payload_.size());
    const auto has = [&](std::size_t size) {
      if (payload.size() >= size) return true;
      to_.drop("block smaller than its type is", at_);
      return false;
    };
    switch (type) {
      case capture::Block::process:
        if (has(sizeof(capture::ProcessFacts))) use_process(payload);
        break;
      case capture::Block::device:
        if (has(sizeof(capture::DeviceFacts)))
          label_device(as<capture::DeviceFacts>(payload_.data()).device, payload.substr(sizeof(capture::DeviceFacts)));
        break;
      case capture::Block::name:
        if (has(sizeof(capture::NameFacts))) {
          to_.charge(64);
          names_[as<capture::NameFacts>(payload_.data()).name] = to_.name(payload.substr(sizeof(capture::NameFacts)));
        }
        break;
      case capture::Block::lost:
        if (has(sizeof(capture::LostFacts)))
          to_.drop(++lost_blocks_ <= kMaxMessages
                       ? "lost while capturing: " + note_text(payload.substr(sizeof(capture::LostFacts)))
                       : std::string("lost while capturing"),
                   at_, as<capture::LostFacts>(payload_.data()).records);
        break;
      case capture::Block::message:
        if (++messages_ <= kMaxMessages) to_.note("while capturing: " + note_text(payload));
        break;
      case capture::Block::end:
        has_end_ = true;
        break;
      default:
        to_.drop("block of a type that this weir does not know", at_);
    }
  }

  void use_process(std::string_view payload) {
    if (std::exchange(has_process_, true)) return to_.drop("second block about the process", at_);
    const auto facts = as<capture::ProcessFacts>(payload_.data());
    const std::string_view texts = payload.substr(sizeof(facts));
    const std::size_t clock_end = std::min(texts.find('\0'), texts.size());
    const std::string clock = note_text(texts.substr(0, clock_end));
    const std::string_view words = texts.substr(std::min(clock_end + 1, texts.size()));
    to_.set_source("CUPTI activity records, " + clock);
    to_.note(fmt::format("process {}: {}", facts.pid, note_text(words)));
  }

  void label_device(std::uint32_t device, std::string_view name) {
    if (const auto lane = to_.device(file_.process, device))
      to_.label_device(*lane, fmt::format("GPU {}: {}", device, note_text(name)));
  }

  template <class Record, class Use>
  void each(const Use& use) {
    if (payload_.size() < sizeof(capture::ArrayHeader)) return to_.drop("block smaller than its type is", at_);
    const auto array = as<capture::ArrayHeader>(payload_.data());
    if (array.record_bytes < sizeof(Record)) return to_.drop("block whose records are too small", at_);
    const std::size_t there = (payload_.size() - sizeof(array)) / array.record_bytes;
    if (there < array.count) to_.drop("record that is not there", at_, array.count - there);
    const char* from = payload_.data() + sizeof(array);
    for (std::size_t i = std::min<std::size_t>(there, array.count); i > 0; --i, from += array.record_bytes)
      use(as<Record>(from));
  }

  std::uint32_t name_of(std::uint32_t name) const {
    const auto found = names_.find(name);
    return found == names_.end() ? kNoName : found->second;
  }

  std::optional<TraceCommand> command_at(const capture::Place& place) {
    const auto lane = activity_.lane(file_.process, place.device, place.context, place.stream, at_);
    if (!lane || !activity_.has_times(place.started_ns, place.ended_ns, at_)) return std::nullopt;
    TraceCommand command;
    command.process = file_.process;
    command.stream = lane->stream;
    if (place.channel != kNone)
      command.queue = to_.queue(lane->device, place.channel,
                                place.channel_type == static_cast<std::uint32_t>(capture::ChannelType::async_memcpy));
    command.correlation = place.correlation;
    command.launched_ns = time_of(place.submitted_ns);  // see gpu_activity_trace.cpp
    command.started_ns = place.started_ns;
    command.ended_ns = place.ended_ns;
    command.at = at_;
    return command;
  }

  void add(const capture::KernelRecord& record) {
    auto command = command_at(record.place);
    if (!command) return;
    command->name = name_of(record.name);
    to_.add(*command);
  }

  void add(const capture::CopyRecord& record) {
    auto command = command_at(record.place);
    if (!command) return;
    const bool is_memset = record.kind == static_cast<std::uint32_t>(capture::CopyKind::memset);
    command->kind = is_memset ? SpanKind::memset : SpanKind::copy;
    command->name = to_.name(is_memset ? "Memset" : cuda_copy_name(record.kind));
    command->bytes = record.bytes;
    to_.add(*command);
  }

  void add(const capture::CallRecord& record) {
    to_.add({name_of(record.name), record.thread, record.correlation, file_.process, CallKind::other,
             time_of(record.started_ns), time_of(record.ended_ns)},
            at_);
  }

  void add(const capture::SyncRecord& record) {
    activity_.add(
        record.type,
        {{file_.process, record.context, record.stream, record.event, record.event_sync, record.correlation}, at_},
        time_of(record.started_ns), time_of(record.ended_ns));
  }

  void add(const capture::EventRecord& record) {
    if (record.device != kNone) activity_.context_is_on(file_.process, record.context, record.device);
    activity_.add(CudaActivity::Recorded{file_.process, record.context, record.stream, record.event, record.event_sync,
                                         record.correlation});
  }

  void add(const capture::MarkerRecord& record) {
    to_.add(TraceRange{name_of(record.name), file_.process, time_of(record.started_ns), time_of(record.ended_ns)});
  }

  static constexpr int kMaxMessages = 20;

  const TraceFile& file_;
  TimelineBuilder& to_;
  CudaActivity activity_;
  std::vector<char> payload_;
  std::unordered_map<std::uint32_t, std::uint32_t> names_;
  std::uint64_t at_ = 0;
  int messages_ = 0, lost_blocks_ = 0;
  bool has_end_ = false, has_process_ = false;
};

}  // namespace

Importer weir_capture() {
  return {"weir_capture", "what `weir profile -- program` captured",
          [](std::string_view start) {
            return start.substr(0, sizeof(capture::kMagic)) ==
                   std::string_view(capture::kMagic, sizeof(capture::kMagic));
          },
          [](const TraceFile& file, TimelineBuilder& to) { CaptureReader(file, to).read(); }};
}

}  // namespace weir::importer_list
