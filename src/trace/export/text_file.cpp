#include "trace/export/text_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "weir_build.h"

#if WEIR_HAVE_ZLIB
#include <zlib.h>
#endif

namespace weir {

// Writes plain or compressed bytes to one descriptor, which stays open.
class TextFile::Sink {
 public:
  Sink(int descriptor, bool is_packed) : descriptor_(descriptor) {
#if WEIR_HAVE_ZLIB
    if (!is_packed) return;
    // Level 3 took a third of the time of level 6 for 17 % more bytes (200 MB of a trace, one Neoverse-V1 core, Nov.
    // 2026).
    const int own = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);  // gzclose() closes it
    packed_ = own < 0 ? nullptr : gzdopen(own, "wb3");
    if (packed_ == nullptr) fail(fmt::format("cannot write .gz: {}", std::strerror(errno)));
    gzbuffer(packed_, 1U << 18);
#else
    static_cast<void>(is_packed);
#endif
  }
  ~Sink() { close(); }
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  // On failure false, with errno.
  bool write(std::string_view text) {
#if WEIR_HAVE_ZLIB
    if (packed_ != nullptr)
      return text.empty() || gzwrite(packed_, text.data(), static_cast<unsigned>(text.size())) > 0;
#endif
    return write_all(descriptor_, text);
  }
  bool close() {
#if WEIR_HAVE_ZLIB
    if (packed_ != nullptr) return gzclose(std::exchange(packed_, nullptr)) == Z_OK;
#endif
    return true;
  }

 private:
  int descriptor_;
#if WEIR_HAVE_ZLIB
  gzFile packed_ = nullptr;
#endif
};

TextFile::TextFile(const std::filesystem::path& path, bool overwrite, std::function<void()> progress)
    : file_(path, overwrite), progress_(std::move(progress)) {
  const bool is_packed = path.extension() == ".gz";
  if (is_packed && WEIR_HAVE_ZLIB == 0)
    reject(fmt::format("{}: this build has no zlib, so it cannot write .gz", path.string()), "Leave out .gz.");
  sink_ = std::make_unique<Sink>(file_.descriptor(), is_packed);
  buffer_.reserve(kFull + 4096);
}

TextFile::~TextFile() = default;

void TextFile::number(std::int64_t value) { *this << fmt::format_int(value).c_str(); }
void TextFile::number(std::uint64_t value) { *this << fmt::format_int(value).c_str(); }

void TextFile::drain() {
  if (!sink_->write(buffer_)) file_.give_up("write");
  buffer_.clear();
  if (progress_) progress_();
}

void TextFile::commit() {
  drain();
  if (!sink_->close()) file_.give_up("write");
  file_.commit();
}

}  // namespace weir
