#include "trace/export/text_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/json.h"
#include "weir_build.h"

#if WEIR_HAVE_ZLIB
#include <zlib.h>
#endif

namespace weir {
namespace {

constexpr int kMaxNames = 100;  // tried for the incomplete file

}  // namespace

// Writes plain or compressed bytes to one descriptor.
class TextFile::Sink {
 public:
  Sink(int descriptor, bool is_packed) : descriptor_(descriptor) {
#if WEIR_HAVE_ZLIB
    if (!is_packed) return;
    // Level 3 took a third of the time of level 6 for 17 % more bytes (200 MB of a trace, one Neoverse-V1 core, Nov.
    // 2026).
    packed_ = gzdopen(descriptor, "wb3");
    if (packed_ != nullptr) gzbuffer(packed_, 1U << 18);
#else
    static_cast<void>(is_packed);
#endif
  }
  ~Sink() { close(); }
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  bool write(std::string_view text) {
#if WEIR_HAVE_ZLIB
    if (packed_ != nullptr)
      return text.empty() || gzwrite(packed_, text.data(), static_cast<unsigned>(text.size())) > 0;
#endif
    while (!text.empty()) {
      const ssize_t written = ::write(descriptor_, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
  }
  bool close() {
#if WEIR_HAVE_ZLIB
    if (packed_ != nullptr) {
      const bool is_good = gzclose(packed_) == Z_OK;
      packed_ = nullptr;
      descriptor_ = -1;
      return is_good;
    }
#endif
    if (descriptor_ < 0) return true;
    const bool is_good = ::close(descriptor_) == 0;
    descriptor_ = -1;
    return is_good;
  }

 private:
  int descriptor_;
#if WEIR_HAVE_ZLIB
  gzFile packed_ = nullptr;
#endif
};

TextFile::TextFile(const std::filesystem::path& path, bool overwrite, std::function<void()> progress)
    : path_(path), overwrites_(overwrite), progress_(std::move(progress)) {
  check_writable(path, overwrite);
  const bool is_packed = path.extension() == ".gz";
  if (is_packed && WEIR_HAVE_ZLIB == 0)
    reject(fmt::format("{}: this build has no zlib, so it cannot write .gz", path.string()), "Leave out .gz.");
  // Never opens an existing file or follows a link, because others can write to /tmp as well.
  int descriptor = -1;
  std::string name;
  for (int i = 0; i < kMaxNames && descriptor < 0; ++i) {
    name = fmt::format("{}.{}{}.tmp", path.string(), ::getpid(), i == 0 ? "" : fmt::format(".{}", i));
    descriptor = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (descriptor < 0 && errno != EEXIST) break;
  }
  if (descriptor < 0) reject(fmt::format("{}: {}", name, std::strerror(errno)));
  temporary_ = name;
  sink_ = std::make_unique<Sink>(descriptor, is_packed);
  buffer_.reserve(kFull + 4096);
}

TextFile::~TextFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void TextFile::number(std::int64_t value) { *this << fmt::format_int(value).c_str(); }
void TextFile::number(std::uint64_t value) { *this << fmt::format_int(value).c_str(); }

void TextFile::drain() {
  if (!sink_->write(buffer_)) fail(fmt::format("{}: cannot write: {}", path_.string(), std::strerror(errno)));
  buffer_.clear();
  if (progress_) progress_();
}

void TextFile::commit() {
  drain();
  if (!sink_->close()) fail(fmt::format("{}: cannot write: {}", path_.string(), std::strerror(errno)));
  // link() refuses an existing name atomically, unlike rename(); some file systems have no links.
  if (!overwrites_) {
    if (::link(temporary_.c_str(), path_.c_str()) == 0) return;  // the destructor removes the temporary name
    if (errno == EEXIST)
      reject(fmt::format("{}: exists already", path_.string()), "Use --force to replace it, or choose another name.");
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0)
    fail(fmt::format("{}: cannot rename: {}", path_.string(), std::strerror(errno)));
  temporary_.clear();
}

}  // namespace weir
