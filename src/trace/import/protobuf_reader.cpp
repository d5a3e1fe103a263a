#include "trace/import/protobuf_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace weir {
namespace {

constexpr int kLongestVarint = 10;
constexpr std::uint32_t kMaxFieldNumber = (1U << 29) - 1;
constexpr std::size_t kStride = 1 << 16;  // of the file, held at least

bool is_known(std::uint64_t type) noexcept { return type <= 2 || type == 5; }  // 3 and 4 are groups: nobody writes them

bool take_varint(std::string_view& from, std::uint64_t* value) noexcept {
  std::uint64_t sum = 0;
  const std::size_t most = std::min<std::size_t>(from.size(), kLongestVarint);
  for (std::size_t i = 0; i < most; ++i) {
    const auto byte = static_cast<unsigned char>(from[i]);
    sum |= static_cast<std::uint64_t>(byte & 0x7fU) << (7 * i);
    if (byte < 0x80U) {
      from.remove_prefix(i + 1);
      *value = sum;
      return true;
    }
  }
  return false;
}

// Little endian, as every machine that Weir runs on.
std::uint64_t fixed(std::string_view from, std::size_t size) noexcept {
  std::uint64_t value = 0;
  std::memcpy(&value, from.data(), size);
  return value;
}
static_assert(std::endian::native == std::endian::little);

}  // namespace

bool ProtobufMessage::next() noexcept {
  if (left_.empty() || is_damaged_) return false;
  std::uint64_t key = 0;
  if (!take_varint(left_, &key)) return fail();
  if (key >> 3 == 0 || key >> 3 > kMaxFieldNumber || !is_known(key & 7)) return fail();
  field_ = {static_cast<std::uint32_t>(key >> 3), static_cast<ProtobufType>(key & 7), 0, {}};
  if (field_.type == ProtobufType::varint) return take_varint(left_, &field_.value) || fail();
  if (field_.type == ProtobufType::bytes) {
    if (!take_varint(left_, &field_.value) || field_.value > left_.size()) return fail();
    field_.bytes = left_.substr(0, static_cast<std::size_t>(field_.value));
    left_.remove_prefix(field_.bytes.size());
    return true;
  }
  const std::size_t size = field_.type == ProtobufType::fixed64 ? 8 : 4;
  if (left_.size() < size) return fail();
  field_.value = fixed(left_, size);
  left_.remove_prefix(size);
  return true;
}

bool ProtobufFile::fail(const char* problem) {
  problem_ = problem;
  return false;
}

bool ProtobufFile::have(std::size_t count) {
  while (end_ - begin_ < count) {
    if (begin_ > 0) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      buffer_at_ += begin_;
      end_ -= begin_;
      begin_ = 0;
    }
    if (end_ == buffer_.size()) {
      // Twice as much each time, but no more than is wanted: planes of XLA's profiles are as large as the file.
      const std::size_t wanted = std::max(count, buffer_.size() + kStride) - buffer_.size();
      const std::size_t more = std::min(std::max(buffer_.size(), kStride), wanted);
      charge_(more);
      buffer_.resize(buffer_.size() + more);
    }
    const std::size_t got = bytes_.read(buffer_.data() + end_, buffer_.size() - end_);
    if (got == 0) return false;
    end_ += got;
  }
  return true;
}

bool ProtobufFile::varint(std::uint64_t* value) {
  have(kLongestVarint);
  std::string_view rest = ahead();
  if (!take_varint(rest, value)) return false;
  begin_ = end_ - rest.size();
  return true;
}

bool ProtobufFile::next() {
  if (!problem_.empty()) return false;
  while (left_ > 0) {
    if (!have(1)) return fail("field cut off by the file's end");
    const auto step = static_cast<std::size_t>(std::min<std::uint64_t>(left_, end_ - begin_));
    begin_ += step;
    left_ -= step;
  }
  if (!have(1)) return false;
  at_ = buffer_at_ + begin_;
  std::uint64_t key = 0;
  if (!varint(&key) || key >> 3 == 0 || key >> 3 > kMaxFieldNumber || !is_known(key & 7))
    return fail("bytes that are no field of a protocol buffer, and what follows them");
  field_ = {static_cast<std::uint32_t>(key >> 3), static_cast<ProtobufType>(key & 7), 0, {}};
  if (field_.type == ProtobufType::varint || field_.type == ProtobufType::bytes) {
    if (!varint(&field_.value))
      return fail(have(kLongestVarint) ? "number of more than ten bytes, and what follows it"
                                       : "field cut off by the file's end");
    left_ = field_.type == ProtobufType::bytes ? field_.value : 0;
    return true;
  }
  const std::size_t size = field_.type == ProtobufType::fixed64 ? 8 : 4;
  if (!have(size)) return fail("field cut off by the file's end");
  field_.value = fixed(ahead(), size);
  begin_ += size;
  return true;
}

std::string_view ProtobufFile::read() {
  const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(left_, SIZE_MAX));
  have(wanted);
  const std::string_view found = ahead().substr(0, wanted);
  begin_ += found.size();
  left_ -= found.size();
  return found;
}

}  // namespace weir
