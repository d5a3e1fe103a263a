#include "report/history/packed_text.h"

#include <weir_build.h>

#include <algorithm>

#if WEIR_HAVE_ZLIB
#include <zlib.h>
#endif

namespace weir::history {
namespace {

constexpr char kPlain = 't', kDeflated = 'z';

#if WEIR_HAVE_ZLIB
constexpr int kLevel = 3;  // 40 KB of JSON: 0.4 ms and 6.5 KB; level 6 takes three times as long for 8 % less
constexpr std::size_t kStep = 64 << 10;

std::optional<std::string> inflated(std::string_view bytes, std::size_t most) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) return std::nullopt;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string text;
  int code = Z_OK;
  while (code == Z_OK && text.size() <= most) {
    const std::size_t filled = text.size();
    text.resize(filled + std::max(kStep, filled));
    stream.next_out = reinterpret_cast<Bytef*>(text.data() + filled);
    stream.avail_out = static_cast<uInt>(text.size() - filled);
    code = inflate(&stream, Z_NO_FLUSH);
    text.resize(text.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (code != Z_STREAM_END || text.size() > most) return std::nullopt;
  return text;
}
#endif

}  // namespace

std::string pack_text(std::string_view text) {
#if WEIR_HAVE_ZLIB
  uLongf size = compressBound(static_cast<uLong>(text.size()));
  std::string bytes(1 + size, kDeflated);
  if (compress2(reinterpret_cast<Bytef*>(bytes.data() + 1), &size, reinterpret_cast<const Bytef*>(text.data()),
                static_cast<uLong>(text.size()), kLevel) == Z_OK) {
    bytes.resize(1 + size);
    return bytes;
  }
#endif
  return kPlain + std::string(text);
}

std::optional<std::string> unpack_text(std::string_view bytes, std::size_t most) {
  if (bytes.empty() || bytes.size() > most + 1) return std::nullopt;
  const char form = bytes[0];
  bytes.remove_prefix(1);
  if (form == kPlain) return std::string(bytes);
#if WEIR_HAVE_ZLIB
  if (form == kDeflated) return inflated(bytes, most);
#endif
  return std::nullopt;
}

}  // namespace weir::history
