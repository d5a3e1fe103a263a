// Packed streams and archives of any origin: whatever comes out ends, and within the limits that archive.cpp states.
#include "trace/import/archive.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.h"

namespace {

std::uint64_t drained(weir::ByteSource& source) {
  std::array<char, 4096> part;
  std::uint64_t sum = 0;
  while (const std::size_t got = source.read(part.data(), part.size())) sum += got;
  return sum;
}

void walk(weir::ArchiveMembers& members) {
  std::string name;
  for (int i = 0; weir::ByteSource* const member = members.next(&name); ++i)
    if (i % 3 != 0) drained(*member);  // what is not read is passed over
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const auto source = weir::bytes_of(bytes);
    const std::string_view start = source->peek(512);
    if (weir::is_zip(start)) {
      walk(*weir::zip_members(*source));
    } else if (weir::TarReader::sniff(start)) {
      weir::TarReader tar(*source);
      walk(tar);
    } else if (drained(*source) > (std::uint64_t{257} << 20) && source->problem().empty()) {
      __builtin_trap();  // 16 KiB held as much
    }
  } catch (const weir::Error& error) {
    if (error.fault != weir::Fault::input) __builtin_trap();
  }
  return 0;
}
