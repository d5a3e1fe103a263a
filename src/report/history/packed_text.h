// Packs whole documents for a history: with zlib where this build has it. Knows no file.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weir::history {

std::string pack_text(std::string_view text);
// Empty where the bytes are not from pack_text(), hold more than `most` bytes, or need a zlib that this build lacks.
std::optional<std::string> unpack_text(std::string_view bytes, std::size_t most);

}  // namespace weir::history
