// The embedded device code for AMD GPUs.
#include "device/gpu/libraries.h"
#include "weir_build.h"

#if WEIR_HAVE_HIP

#if WEIR_HIP_IS_PACKED
#include <fmt/format.h>
#include <zlib.h>

#include <vector>
#endif

extern "C" const unsigned char weir_hip_code[];
extern "C" const unsigned char weir_hip_code_end[];

namespace weir {

#if WEIR_HIP_IS_PACKED

namespace {

// Code for several GPUs is very similar: 2.2 MB for four of them compress to 0.7 MB. A gzip file ends with its unpacked
// size, as 32 bits, little-endian.
std::string unpack(std::vector<unsigned char>& code) {
  const auto packed = static_cast<std::size_t>(weir_hip_code_end - weir_hip_code);
  std::size_t size = 0;
  for (int i = 3; i >= 0; --i) size = size << 8 | weir_hip_code[packed - 4 + static_cast<std::size_t>(i)];
  code.resize(size);
  z_stream stream{};
  stream.next_in = const_cast<unsigned char*>(weir_hip_code);
  stream.avail_in = static_cast<uInt>(packed);
  stream.next_out = code.data();
  stream.avail_out = static_cast<uInt>(size);
  constexpr int kGzip = 16;
  int result = inflateInit2(&stream, MAX_WBITS + kGzip);
  if (result == Z_OK) {
    result = inflate(&stream, Z_FINISH);
    inflateEnd(&stream);
  }
  if (result == Z_STREAM_END && stream.avail_out == 0) return "";
  return fmt::format("it cannot be unpacked (zlib says {})", result);
}

}  // namespace

const void* hip_code(std::string* reason) {
  static const Opened<std::vector<unsigned char>> kCode(unpack);
  const std::vector<unsigned char>* const code = kCode.get(reason);
  return code == nullptr ? nullptr : code->data();
}

#else

const void* hip_code(std::string*) { return weir_hip_code; }

#endif

}  // namespace weir

#else

namespace weir {

const void* hip_code(std::string* reason) {
  if (reason != nullptr) *reason = "left out of this build: " WEIR_HIP_REASON;
  return nullptr;
}

}  // namespace weir

#endif
