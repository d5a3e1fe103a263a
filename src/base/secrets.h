// What must never be written down: values of variables and of flags whose names speak of keys, tokens and passwords,
// and passwords in addresses. base/redact.h applies it to documents.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir {

inline constexpr std::string_view kRedacted = "(redacted)";

// True for names with KEY, TOKEN, JWT, SECRET, PASS, CREDENTIAL, AUTH, COOKIE and the like, in any case, of variables
// and of flags: NVIDIA_API_KEY, --hf-token.
bool is_secret_name(std::string_view name);

// One text that may be a command line or a part of one, as it may be written down.
std::string recorded_text(std::string_view text);

// The value of a variable, as it may be written down. A repeated call changes nothing.
std::string recorded_value(std::string_view name, std::string_view value);

// A command line, as it may be written down: --api-key X, --token=X, PASSWORD=x, "X-Auth: x", https://user:x@host, also
// inside of a word that is itself a command line (sh -c "..."). A repeated call changes nothing.
std::vector<std::string> recorded_command(std::vector<std::string> words);

}  // namespace weir
