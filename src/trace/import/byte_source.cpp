#include "trace/import/byte_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "trace/import/archive.h"
#include "trace/import/json_text.h"
#include "weir_build.h"
#if WEIR_HAVE_ZLIB
#include <zlib.h>
#endif

namespace weir {

std::size_t ByteSource::read(char* to, std::size_t capacity) {
  std::size_t count = 0;
  if (taken_ < ahead_.size()) {
    count = std::min(capacity, ahead_.size() - taken_);
    std::memcpy(to, ahead_.data() + taken_, count);
    taken_ += count;
    if (taken_ == ahead_.size()) {
      ahead_ = {};
      taken_ = 0;
    }
  } else {
    count = fetch(to, capacity);
  }
  position_ += count;
  return count;
}

std::string_view ByteSource::peek(std::size_t count) {
  if (taken_ > 0) {
    ahead_.erase(ahead_.begin(), ahead_.begin() + static_cast<std::ptrdiff_t>(taken_));
    taken_ = 0;
  }
  while (ahead_.size() < count) {
    const std::size_t had = ahead_.size();
    ahead_.resize(count);
    const std::size_t got = fetch(ahead_.data() + had, count - had);
    ahead_.resize(had + got);
    if (got == 0) break;
  }
  return {ahead_.data(), std::min(count, ahead_.size())};
}

namespace {

class FileSource : public ByteSource {
 public:
  explicit FileSource(const std::filesystem::path& path) : name_(path.string()), file_(open_to_read(path)) {
    struct stat facts{};
    if (::fstat(file_.get(), &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size == 0)
      reject(fmt::format("{}: is empty", name_),
             "The program that writes it failed early, or still runs. Run it again.");
    ::posix_fadvise(file_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  }

 protected:
  std::size_t fetch(char* to, std::size_t capacity) override { return read_some(file_.get(), to, capacity, name_); }

 private:
  std::string name_;
  Descriptor file_;
};

class MemorySource : public ByteSource {
 public:
  explicit MemorySource(std::string_view text) : text_(text) {}

 protected:
  std::size_t fetch(char* to, std::size_t capacity) override {
    const std::size_t count = std::min(capacity, text_.size());
    if (count > 0) std::memcpy(to, text_.data(), count);
    text_.remove_prefix(count);
    return count;
  }

 private:
  std::string_view text_;
};

// A source owned by somebody else.
class BorrowedSource : public ByteSource {
 public:
  explicit BorrowedSource(ByteSource& source) : source_(source) {}
  std::string problem() const override { return source_.problem(); }

 protected:
  std::size_t fetch(char* to, std::size_t capacity) override { return source_.read(to, capacity); }

 private:
  ByteSource& source_;
};

constexpr std::string_view kGzipStart = "\x1f\x8b";
constexpr std::size_t kPackedStart = 16;  // enough to know how it is packed

#if WEIR_HAVE_ZLIB
// One or more gzip members, one after another; data after the last is ignored, as gunzip does.
class GzipSource : public ByteSource {
 public:
  // 16 added to the size of the window means gzip, 32 either format.
  enum Format { gzip = 15 + 16, any = 15 + 32 };

  explicit GzipSource(std::unique_ptr<ByteSource> packed, Format format = gzip) : packed_(std::move(packed)) {
    input_.resize(kInputBytes);
    if (inflateInit2(&stream_, format) != Z_OK) fail("zlib cannot be started");
  }
  ~GzipSource() override { inflateEnd(&stream_); }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  std::string problem() const override { return problem_; }
  bool is_unpacked() const noexcept override { return true; }

 protected:
  std::size_t fetch(char* to, std::size_t capacity) override {
    const auto room = static_cast<uInt>(std::min<std::size_t>(capacity, 1U << 30));
    stream_.next_out = reinterpret_cast<Bytef*>(to);
    stream_.avail_out = room;
    // Fills the buffer: members of a few bytes each would otherwise make every read tiny.
    while (!is_done_ && stream_.avail_out > 0) {
      if (stream_.avail_in == 0 && !refill()) break;
      const int result = inflate(&stream_, Z_NO_FLUSH);
      if (result == Z_STREAM_END) {
        is_between_ = true;
        next_member();
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        problem_ = fmt::format("the .gz data is damaged: {}", stream_.msg != nullptr ? stream_.msg : "bad data");
        is_done_ = true;
      }
    }
    return room - stream_.avail_out;
  }

 private:
  static constexpr std::size_t kInputBytes = 65536;

  bool refill() {
    const std::size_t got = packed_->read(input_.data(), input_.size());
    if (got == 0) {
      if (!is_between_) problem_ = "the .gz file ends in the middle";
      is_done_ = true;
      return false;
    }
    is_between_ = false;
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    stream_.avail_in = static_cast<uInt>(got);
    return true;
  }

  void next_member() {
    if (stream_.avail_in == 0 && !refill()) return;
    if (stream_.next_in[0] != 0x1f) {
      is_done_ = true;
      return;
    }
    inflateReset(&stream_);
    is_between_ = false;
  }

  std::unique_ptr<ByteSource> packed_;
  std::vector<char> input_;
  z_stream stream_{};
  bool is_done_ = false;
  bool is_between_ = false;  // between members: the file may end here
  std::string problem_;
};
#endif

#if !WEIR_HAVE_ZLIB
[[noreturn]] void reject_packed() {
  reject("this build cannot unpack .gz files: zlib was not found when it was made",
         "Unpack the file with gunzip first, or build with zlib (zlib1g-dev).");
}
#endif

std::unique_ptr<ByteSource> unpacked(std::unique_ptr<ByteSource> source) {
  if (source->peek(2) != kGzipStart) return unpack_stream(std::move(source));
#if WEIR_HAVE_ZLIB
  return std::make_unique<GzipSource>(std::move(source));
#else
  reject_packed();
#endif
}

}  // namespace

std::unique_ptr<ByteSource> open_bytes(const std::filesystem::path& path) {
  return unpacked(std::make_unique<FileSource>(path));
}

std::unique_ptr<ByteSource> bytes_of(std::string_view text) { return unpacked(std::make_unique<MemorySource>(text)); }

std::optional<std::string> unpacked_bytes(std::string_view packed, std::size_t most) {
  std::unique_ptr<ByteSource> source = std::make_unique<MemorySource>(packed);
  if (is_packed_stream(packed.substr(0, kPackedStart)))
    source = unpack_stream(std::move(source));
  else
#if WEIR_HAVE_ZLIB
    source = std::make_unique<GzipSource>(std::move(source), GzipSource::any);
#else
    reject_packed();
#endif
  std::string text;
  for (std::size_t had = 0;;) {
    if (had == text.size()) text.resize(std::min(most + 1, 2 * had + 65536));
    const std::size_t got = source->read(text.data() + had, text.size() - had);
    had += got;
    if (had > most || (got == 0 && !source->problem().empty())) return std::nullopt;
    if (got > 0) continue;
    text.resize(had);
    return text;
  }
}

std::unique_ptr<ByteSource> unpack(ByteSource& packed) {
  const std::string_view start = packed.peek(kPackedStart);
  const bool is_packed = start.starts_with(kGzipStart) || is_packed_stream(start);
  return is_packed ? unpacked(std::make_unique<BorrowedSource>(packed)) : nullptr;
}

namespace {

constexpr const char* kCutOff = "the archive ends in the middle";

}  // namespace

class TarReader::Member : public ByteSource {
 public:
  Member(ByteSource& archive, std::uint64_t size) : archive_(archive), left_(size) {}
  std::string problem() const override { return left_ > 0 && is_over_ ? kCutOff : ""; }
  std::uint64_t left() const noexcept { return left_; }

 protected:
  std::size_t fetch(char* to, std::size_t capacity) override {
    const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(capacity, left_));
    if (want == 0) return 0;
    const std::size_t got = archive_.read(to, want);
    left_ -= got;
    is_over_ = got == 0;
    return got;
  }

 private:
  ByteSource& archive_;
  std::uint64_t left_;
  bool is_over_ = false;
};

TarReader::TarReader(ByteSource& archive) : archive_(archive) {}
TarReader::~TarReader() = default;

namespace {

constexpr std::size_t kTarBlock = 512;

// ustar: name at 0 (100), size at 124 (12, octal or base 256), checksum at 148, type at 156, magic at 257, prefix at
// 345
std::optional<std::uint64_t> octal(std::string_view field) noexcept {
  if (!field.empty() && (static_cast<unsigned char>(field[0]) & 0x80U) != 0) {
    std::uint64_t value = static_cast<unsigned char>(field[0]) & 0x7fU;
    for (const char c : field.substr(1)) {
      if (value >> 55 != 0) return std::nullopt;
      value = value << 8 | static_cast<unsigned char>(c);
    }
    return value;
  }
  std::uint64_t value = 0;
  bool has_digit = false;
  for (const char c : field) {
    if (c == '\0' || (c == ' ' && has_digit)) break;
    if (c == ' ') continue;
    if (c < '0' || c > '7') return std::nullopt;
    value = value * 8 + static_cast<std::uint64_t>(c - '0');
    has_digit = true;
  }
  return has_digit ? std::optional(value) : std::nullopt;
}

// The value after "LENGTH key="; the length covers the whole line, including its end.
std::optional<std::string> pax_value(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    const auto length =
        space == std::string_view::npos ? std::nullopt : number_in<std::uint64_t>(text.substr(0, space));
    if (!length || *length <= space + 1 || *length > text.size()) return std::nullopt;
    std::string_view line = text.substr(space + 1, static_cast<std::size_t>(*length) - space - 2);
    text.remove_prefix(static_cast<std::size_t>(*length));
    if (line.size() <= key.size() || !line.starts_with(key) || line[key.size()] != '=') continue;
    return std::string(line.substr(key.size() + 1));
  }
  return std::nullopt;
}

std::string text_of(std::string_view field) { return std::string(field.substr(0, field.find('\0'))); }

bool has_checksum(std::string_view header) noexcept {
  const auto stated = octal(header.substr(148, 8));
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kTarBlock; ++i) sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(header[i]);
  return stated && *stated == sum;
}

}  // namespace

bool TarReader::sniff(std::string_view start) noexcept {
  return start.size() >= kTarBlock && start[0] != '\0' && has_checksum(start.substr(0, kTarBlock));
}

bool TarReader::skip(std::uint64_t count) {
  if (scratch_.empty()) scratch_.resize(65536);
  while (count > 0) {
    const std::size_t got =
        archive_.read(scratch_.data(), static_cast<std::size_t>(std::min<std::uint64_t>(count, scratch_.size())));
    if (got == 0) {
      problem_ = kCutOff;
      return false;
    }
    count -= got;
  }
  return true;
}

// A member that describes the next one; empty where the archive ends within it.
std::optional<std::string> TarReader::read_small(std::uint64_t size) {
  std::string text(static_cast<std::size_t>(size), '\0');
  for (std::size_t had = 0; had < text.size();) {
    const std::size_t got = archive_.read(text.data() + had, text.size() - had);
    if (got == 0) {
      problem_ = kCutOff;
      return std::nullopt;
    }
    had += got;
  }
  return text;
}

ByteSource* TarReader::next(std::string* name) {
  if (member_ != nullptr) {
    // The unread rest of the member (peeked bytes have already been read), and its padding.
    const std::uint64_t left = member_->left();
    member_.reset();
    if (!skip(left)) return nullptr;
  }
  std::string long_name;
  std::uint64_t long_size = UINT64_MAX;  // none
  while (true) {
    const std::uint64_t over = archive_.position() % kTarBlock;
    // Writers may omit the last padding.
    if (over != 0 && archive_.peek(1).empty()) return nullptr;
    if (over != 0 && !skip(kTarBlock - over)) return nullptr;
    const std::string_view header = archive_.peek(kTarBlock);
    if (header.size() < kTarBlock || header[0] == '\0') {
      if (!header.empty() && header.size() < kTarBlock) problem_ = kCutOff;
      return nullptr;
    }
    const auto size = octal(header.substr(124, 12));
    if (!has_checksum(header) || !size) {
      problem_ = fmt::format("the archive is damaged at byte {}", archive_.position());
      return nullptr;
    }
    const char type = header[156];
    *name = text_of(header.substr(0, 100));
    if (header.substr(257, 5) == "ustar" && header[345] != '\0' &&
        header.substr(257, 6) == std::string_view("ustar\0", 6))
      *name = text_of(header.substr(345, 155)) + "/" + *name;
    skip(kTarBlock);
    if ((type == 'L' || type == 'x') && *size < 65536) {
      const auto text = read_small(*size);
      if (!text) return nullptr;
      if (type == 'L') {  // GNU: the next member's name
        long_name = text_of(*text);
      } else {  // POSIX: "30 path=folder/rank0.json\n22 size=123456789012\n"
        if (const auto path = pax_value(*text, "path")) long_name = *path;
        if (const auto value = pax_value(*text, "size"))
          long_size = number_in<std::uint64_t>(*value).value_or(UINT64_MAX);
      }
      continue;
    }
    if (type == '0' || type == '\0') {
      if (!long_name.empty()) *name = long_name;
      member_ = std::make_unique<Member>(archive_, long_size == UINT64_MAX ? *size : long_size);
      return member_.get();
    }
    if (!skip(long_size == UINT64_MAX ? *size : long_size)) return nullptr;
    long_name.clear();
    long_size = UINT64_MAX;
  }
}

}  // namespace weir
