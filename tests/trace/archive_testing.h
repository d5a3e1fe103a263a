// Packed files and archives, made in memory.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>

namespace weir {

inline std::string gzip(std::string_view text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, static_cast<uLong>(text.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

// One member of a tar archive, as `tar --format=ustar` writes it.
inline std::string tar_member(const std::string& name, std::string_view contents, char type = '0') {
  std::array<char, 512> header{};
  const auto put = [&](std::size_t at, std::string_view text) {
    std::copy_n(text.begin(), std::min(text.size(), header.size() - at),
                header.begin() + static_cast<std::ptrdiff_t>(at));
  };
  put(0, name);
  char size[12];
  std::snprintf(size, sizeof size, "%011o", static_cast<unsigned>(contents.size()));
  put(124, size);
  header[156] = type;
  put(257, std::string_view("ustar\0"
                            "00",
                            8));
  put(148, "        ");
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  char checksum[8];
  std::snprintf(checksum, sizeof checksum, "%06o", sum);
  put(148, std::string_view(checksum, 7));
  std::string made(header.begin(), header.end());
  made += contents;
  made.resize((made.size() + 511) / 512 * 512, '\0');
  return made;
}

}  // namespace weir
