#include "trace/export/capture_writer.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

namespace weir {
namespace {

// For one kind of record, before they are written: a few thousand records per write().
constexpr std::size_t kPendingBytes = std::size_t{256} << 10;
constexpr std::size_t kLongestText = std::size_t{1} << 20;
// Kept free below the limit, so that a full file can still report what it lacks.
constexpr std::uint64_t kReserve = 4096;

void append_bytes(std::vector<char>& to, const void* from, std::size_t size) {
  const char* const bytes = static_cast<const char*>(from);
  to.insert(to.end(), bytes, bytes + size);
}

}  // namespace

CaptureWriter::CaptureWriter(int descriptor, std::uint64_t limit_bytes) noexcept
    : descriptor_(descriptor), limit_(limit_bytes > kReserve ? limit_bytes - kReserve : 0) {
  capture::FileHeader header{};
  std::memcpy(header.magic, capture::kMagic, sizeof(header.magic));
  header.version = capture::kVersion;
  write_all(&header, sizeof(header));
}

CaptureWriter::~CaptureWriter() { finish(capture::kUnknownTime); }

bool CaptureWriter::write_all(const void* bytes, std::size_t size) noexcept {
  if (descriptor_ < 0 || error_ != 0) return false;
  const char* from = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t done = ::write(descriptor_, from, size);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) {
      error_ = done < 0 ? errno : EIO;
      // A truncated block would look as if the program had been killed. The freed space is used for the end block.
      if (::ftruncate(descriptor_, static_cast<off_t>(whole_)) == 0) {
        ::lseek(descriptor_, static_cast<off_t>(whole_), SEEK_SET);
        written_ = whole_;
      }
      return false;
    }
    from += done;
    size -= static_cast<std::size_t>(done);
    written_ += static_cast<std::uint64_t>(done);
  }
  whole_ = written_;
  return true;
}

void CaptureWriter::block(capture::Block type, const void* facts, std::size_t size, std::string_view text) noexcept {
  text = text.substr(0, kLongestText);
  const capture::BlockHeader header{static_cast<std::uint32_t>(type), static_cast<std::uint32_t>(size + text.size())};
  const std::size_t before = texts_.size();
  try {
    append_bytes(texts_, &header, sizeof(header));
    append_bytes(texts_, facts, size);
    append_bytes(texts_, text.data(), text.size());
  } catch (const std::bad_alloc&) {
    texts_.resize(before);
    return;
  }
  if (texts_.size() < kPendingBytes) return;
  write_all(texts_.data(), texts_.size());
  texts_.clear();
}

void CaptureWriter::process(const capture::ProcessFacts& facts, std::string_view clock,
                            const std::vector<std::string>& words) noexcept {
  try {
    std::string text(clock);
    text += '\0';
    for (const std::string& word : words) text.append(word.c_str(), word.size() + 1);
    block(capture::Block::process, &facts, sizeof(facts), text);
  } catch (const std::bad_alloc&) {  // a capture without its command line is still usable
  }
}

void CaptureWriter::device(std::uint32_t device, std::string_view name) noexcept {
  const capture::DeviceFacts facts{device, 0};
  block(capture::Block::device, &facts, sizeof(facts), name);
}

void CaptureWriter::message(std::string_view text) noexcept { block(capture::Block::message, nullptr, 0, text); }

void CaptureWriter::lost(std::uint64_t records, std::string_view reason) noexcept {
  lost_ += records;
  const capture::LostFacts facts{records};
  block(capture::Block::lost, &facts, sizeof(facts), reason);
}

std::uint32_t CaptureWriter::name(std::string_view text) noexcept {
  try {
    std::string key(text.substr(0, kLongestText));
    if (const auto found = names_.find(key); found != names_.end()) return found->second;
    const auto number = static_cast<std::uint32_t>(names_.size());
    const capture::NameFacts facts{number, 0};
    // A full file accepts no more texts either.
    if (written_ + texts_.size() + key.size() > limit_) return capture::kNone;
    block(capture::Block::name, &facts, sizeof(facts), key);
    names_.emplace(std::move(key), number);
    return number;
  } catch (const std::bad_alloc&) {
    return capture::kNone;
  }
}

void CaptureWriter::append(Pending& to, const void* record) noexcept {
  if (descriptor_ < 0 || error_ != 0) {
    ++lost_;
    ++unwritten_;
    return;
  }
  try {
    if (to.bytes.empty()) {
      to.bytes.reserve(kPendingBytes);
      to.bytes.resize(sizeof(capture::BlockHeader) + sizeof(capture::ArrayHeader));
    }
    append_bytes(to.bytes, record, to.record_bytes);
  } catch (const std::bad_alloc&) {
    ++lost_;
    ++unreported_;
    return;
  }
  if (to.bytes.size() + to.record_bytes > kPendingBytes) write_pending(to);
}

void CaptureWriter::write_pending(Pending& pending) noexcept {
  constexpr std::size_t kHeaders = sizeof(capture::BlockHeader) + sizeof(capture::ArrayHeader);
  if (pending.bytes.size() <= kHeaders) return;
  const std::size_t payload = pending.bytes.size() - sizeof(capture::BlockHeader);
  const std::size_t count = (pending.bytes.size() - kHeaders) / pending.record_bytes;
  if (written_ + texts_.size() + pending.bytes.size() > limit_) {
    lost_ += count;
    unreported_ += count;
    pending.bytes.clear();
    return;
  }
  const capture::BlockHeader header{static_cast<std::uint32_t>(pending.type), static_cast<std::uint32_t>(payload)};
  const capture::ArrayHeader array{pending.record_bytes, static_cast<std::uint32_t>(count)};
  std::memcpy(pending.bytes.data(), &header, sizeof(header));
  std::memcpy(pending.bytes.data() + sizeof(header), &array, sizeof(array));
  if (!texts_.empty()) write_all(texts_.data(), texts_.size());
  texts_.clear();
  if (!write_all(pending.bytes.data(), pending.bytes.size())) {
    lost_ += count;
    unwritten_ += count;
  }
  pending.bytes.clear();
}

void CaptureWriter::write_lost() noexcept {
  if (unreported_ == 0) return;
  const capture::LostFacts facts{unreported_};
  unreported_ = 0;
  block(capture::Block::lost, &facts, sizeof(facts), "the capture had reached its size limit");
}

void CaptureWriter::flush() noexcept {
  for (Pending* pending : {&contexts_, &kernels_, &copies_, &calls_, &syncs_, &events_, &markers_})
    write_pending(*pending);
  write_lost();
  if (!texts_.empty()) write_all(texts_.data(), texts_.size());
  texts_.clear();
}

void CaptureWriter::finish(std::int64_t ended_ns) noexcept {
  if (descriptor_ < 0) return;
  flush();
  if (const int error = error_; error != 0) {
    // Try again: there may be room for this little.
    error_ = 0;
    failed_ = error;
    texts_.clear();
    write_lost();
    const capture::LostFacts lost{unwritten_};
    block(capture::Block::lost, &lost, sizeof(lost), std::strerror(error));
  }
  const capture::EndFacts facts{ended_ns};
  block(capture::Block::end, &facts, sizeof(facts), {});
  write_all(texts_.data(), texts_.size());
  texts_.clear();
  ::close(descriptor_);
  descriptor_ = -1;
}

void CaptureWriter::abandon() noexcept {
  for (Pending* pending : {&contexts_, &kernels_, &copies_, &calls_, &syncs_, &events_, &markers_})
    pending->bytes.clear();
  texts_.clear();
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

}  // namespace weir
