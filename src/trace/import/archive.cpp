#include "trace/import/archive.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <exception>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "weir_build.h"
#if WEIR_HAVE_LIBARCHIVE
#include <archive.h>
#include <archive_entry.h>
#include <dlfcn.h>
#endif

namespace weir {
namespace {

struct Packing {
  std::string_view start;
  const char* extension;
  const char* command;  // that unpacks it
};
constexpr std::array kStreams = {Packing{"\x28\xb5\x2f\xfd", ".zst", "unzstd"},
                                 Packing{std::string_view("\xfd\x37zXZ\0", 6), ".xz", "unxz"},
                                 Packing{"BZh", ".bz2", "bunzip2"}, Packing{"\x04\x22\x4d\x18", ".lz4", "unlz4"}};
constexpr Packing kZip = {"PK\x03\x04", ".zip", "unzip"};
constexpr Packing kEmptyZip = {"PK\x05\x06", ".zip", "unzip"};

const Packing* packing_of(std::string_view start) noexcept {
  for (const Packing& packing : kStreams) {
    if (!start.starts_with(packing.start)) continue;
    // Three letters are little: a block of bzip2's begins with the digits of pi.
    if (packing.start == "BZh" && (start.size() < 10 || start.substr(4, 6) != "\x31\x41\x59\x26\x53\x59")) continue;
    return &packing;
  }
  return nullptr;
}

#if WEIR_HAVE_LIBARCHIVE

constexpr const char* kLibrary = "libarchive.so.13";

// Opened with the first archive: it and the libraries that it needs take 40 MiB of address space.
struct Library {
#define WEIR_ARCHIVE_FUNCTIONS(function)                                                                            \
  function(archive_read_new) function(archive_read_free) function(archive_read_open)                                \
      function(archive_read_support_format_zip_streamable) function(archive_read_support_format_raw)                \
          function(archive_read_support_filter_zstd) function(archive_read_support_filter_xz)                       \
              function(archive_read_support_filter_bzip2) function(archive_read_support_filter_lz4)                 \
                  function(archive_read_next_header) function(archive_read_data) function(archive_error_string)     \
                      function(archive_set_error) function(archive_entry_filetype) function(archive_entry_pathname) \
                          function(archive_entry_pathname_utf8)
#define WEIR_ARCHIVE_MEMBER(name) decltype(&::name) name = nullptr;
  WEIR_ARCHIVE_FUNCTIONS(WEIR_ARCHIVE_MEMBER)
#undef WEIR_ARCHIVE_MEMBER

  Library() {
    void* const handle = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return;
    is_complete = true;
#define WEIR_ARCHIVE_TAKE(name)                                    \
  name = reinterpret_cast<decltype(name)>(::dlsym(handle, #name)); \
  is_complete = is_complete && name != nullptr;
    WEIR_ARCHIVE_FUNCTIONS(WEIR_ARCHIVE_TAKE)
#undef WEIR_ARCHIVE_TAKE
#undef WEIR_ARCHIVE_FUNCTIONS
  }

  bool is_complete = false;
};

const Library& library(const Packing& packing) {
  static const Library found;
  if (!found.is_complete)
    reject(fmt::format("{} files need {}, which is not installed here", packing.extension, kLibrary),
           fmt::format("Install libarchive, or unpack the file with {} first.", packing.command));
  return found;
}

// Deflate packs to a thousandth at best, so what exceeds that is made to fill memory or time.
constexpr std::uint64_t kMostRatio = 1000;
constexpr std::uint64_t kFreeBytes = std::uint64_t{256} << 20;

// One archive that libarchive reads: the members of a zip, or the only one of a packed stream.
class ArchiveReader : public ArchiveMembers {
 public:
  ArchiveReader(ByteSource& packed, const Packing& packing)
      : packed_(packed),
        packing_(packing),
        library_(library(packing)),
        handle_(library_.archive_read_new(), library_.archive_read_free),
        member_(*this) {
    if (handle_ == nullptr) fail("libarchive cannot be started");
    const bool is_stream = packing.start != kZip.start;
    // A library that lacks a method would start a program of that name for it, and says so by a warning.
    const int known = is_stream ? support_stream() : library_.archive_read_support_format_zip_streamable(handle_.get());
    if (known != ARCHIVE_OK)
      reject(fmt::format("libarchive on this machine cannot unpack {} files", packing.extension),
             fmt::format("Unpack the file with {} first.", packing.command));
    input_.resize(kInputBytes);
    if (library_.archive_read_open(handle_.get(), this, nullptr, feed, nullptr) != ARCHIVE_OK) note_problem();
  }
  ArchiveReader(const ArchiveReader&) = delete;
  ArchiveReader& operator=(const ArchiveReader&) = delete;

  ByteSource* next(std::string* name) override {
    // What is left of the last member is read here rather than by libarchive, which knows no limit.
    while (is_open_ && take(scratch_.data(), scratch_.size()) > 0) continue;
    is_open_ = false;
    while (problem_.empty()) {
      archive_entry* entry = nullptr;
      const int result = library_.archive_read_next_header(handle_.get(), &entry);
      if (result == ARCHIVE_EOF) return nullptr;
      if (result == ARCHIVE_RETRY) continue;
      if (result != ARCHIVE_OK && result != ARCHIVE_WARN) {
        note_problem();
        return nullptr;
      }
      // Folders have no contents; a stream's only member has no type.
      if (library_.archive_entry_filetype(entry) == AE_IFDIR) continue;
      const char* text = library_.archive_entry_pathname_utf8(entry);
      if (text == nullptr) text = library_.archive_entry_pathname(entry);
      *name = text != nullptr ? text : "a member whose name cannot be read";
      is_open_ = true;
      member_ = Member(*this);
      return &member_;
    }
    return nullptr;
  }
  std::string problem() const override { return problem_; }

 private:
  static constexpr std::size_t kInputBytes = 65536;

  class Member : public ByteSource {
   public:
    explicit Member(ArchiveReader& archive) : archive_(&archive) {}
    std::string problem() const override { return archive_->problem_; }
    bool is_unpacked() const noexcept override { return true; }

   protected:
    std::size_t fetch(char* to, std::size_t capacity) override { return archive_->take(to, capacity); }

   private:
    ArchiveReader* archive_;
  };

  int support_stream() {
    library_.archive_read_support_format_raw(handle_.get());
    if (packing_.start == kStreams[0].start) return library_.archive_read_support_filter_zstd(handle_.get());
    if (packing_.start == kStreams[1].start) return library_.archive_read_support_filter_xz(handle_.get());
    if (packing_.start == kStreams[2].start) return library_.archive_read_support_filter_bzip2(handle_.get());
    return library_.archive_read_support_filter_lz4(handle_.get());
  }

  // libarchive wants more. What the source throws must not pass through C, and is thrown once that has returned.
  static la_ssize_t feed(archive* handle, void* self, const void** bytes) {
    auto& reader = *static_cast<ArchiveReader*>(self);
    try {
      const std::size_t got = reader.packed_.read(reader.input_.data(), reader.input_.size());
      reader.in_ += got;
      *bytes = reader.input_.data();
      return static_cast<la_ssize_t>(got);
    } catch (...) {
      reader.thrown_ = std::current_exception();
      reader.library_.archive_set_error(handle, EIO, "the file cannot be read");
      return ARCHIVE_FATAL;
    }
  }

  std::size_t take(char* to, std::size_t capacity) {
    if (!is_open_ || !problem_.empty()) return 0;
    const la_ssize_t got = library_.archive_read_data(handle_.get(), to, capacity);
    if (got < 0) note_problem();
    if (got <= 0) is_open_ = false;
    if (got <= 0) return 0;
    out_ += static_cast<std::uint64_t>(got);
    if (out_ > kFreeBytes && out_ / kMostRatio > in_) {
      problem_ = fmt::format("the {} file unpacks to more than {} times its size, as no trace does: stopped after {}",
                             packing_.extension, kMostRatio, format_bytes(out_));
      is_open_ = false;
    }
    return static_cast<std::size_t>(got);
  }

  void note_problem() {
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
    const char* const text = library_.archive_error_string(handle_.get());
    problem_ = fmt::format("the {} data is damaged: {}", packing_.extension, text != nullptr ? text : "bad data");
  }

  ByteSource& packed_;
  const Packing& packing_;
  const Library& library_;
  std::unique_ptr<archive, decltype(&::archive_read_free)> handle_;
  std::vector<char> input_;
  std::array<char, 65536> scratch_{};
  std::uint64_t in_ = 0, out_ = 0;
  bool is_open_ = false;
  std::string problem_;
  std::exception_ptr thrown_;
  Member member_;
};

class StreamSource : public ByteSource {
 public:
  StreamSource(std::unique_ptr<ByteSource> packed, const Packing& packing)
      : packed_(std::move(packed)), archive_(*packed_, packing) {
    std::string name;
    contents_ = archive_.next(&name);
  }
  std::string problem() const override { return archive_.problem(); }
  bool is_unpacked() const noexcept override { return true; }

 protected:
  std::size_t fetch(char* to, std::size_t capacity) override {
    return contents_ != nullptr ? contents_->read(to, capacity) : 0;
  }

 private:
  std::unique_ptr<ByteSource> packed_;
  ArchiveReader archive_;
  ByteSource* contents_ = nullptr;
};

#else

[[noreturn]] void reject_packing(const Packing& packing) {
  reject(fmt::format("this build cannot unpack {} files: libarchive was not found when it was made", packing.extension),
         fmt::format("Unpack the file with {} first, or build with libarchive (libarchive-dev).", packing.command));
}

#endif

}  // namespace

bool is_packed_stream(std::string_view start) noexcept { return packing_of(start) != nullptr; }

bool is_zip(std::string_view start) noexcept {
  return start.starts_with(kZip.start) || start.starts_with(kEmptyZip.start);
}

std::unique_ptr<ByteSource> unpack_stream(std::unique_ptr<ByteSource> packed) {
  const Packing* const packing = packing_of(packed->peek(16));
  if (packing == nullptr) return packed;
#if WEIR_HAVE_LIBARCHIVE
  return std::make_unique<StreamSource>(std::move(packed), *packing);
#else
  reject_packing(*packing);
#endif
}

std::unique_ptr<ArchiveMembers> zip_members([[maybe_unused]] ByteSource& archive) {
#if WEIR_HAVE_LIBARCHIVE
  return std::make_unique<ArchiveReader>(archive, kZip);
#else
  reject_packing(kZip);
#endif
}

}  // namespace weir
