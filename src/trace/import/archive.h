// Files that are packed by something else than gzip, and archives other than tar: zstd, xz, bzip2, lz4 and zip, by
// libarchive. Says what to install where this build has none.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "trace/import/byte_source.h"

namespace weir {

// Whether a file that begins like this is one packed stream (.zst, .xz, .bz2, .lz4); whether it is a .zip.
bool is_packed_stream(std::string_view start) noexcept;
bool is_zip(std::string_view start) noexcept;

// Decompresses a stream. Rejects it where this build has no libarchive.
std::unique_ptr<ByteSource> unpack_stream(std::unique_ptr<ByteSource> packed);

// A zip archive within a source, which must outlive it. Rejects it where this build has no libarchive.
std::unique_ptr<ArchiveMembers> zip_members(ByteSource& archive);

}  // namespace weir
