// Removes secrets from documents. base/json.cpp calls it for every document that is read or written, so that one that
// was made without this rule does not pass its secrets on. Knows which members hold command lines and variables, and no
// particular document.
#pragma once

#include <string_view>

#include "base/json_value.h"

namespace weir {

// Replaces secrets in all members of a document that hold a command line or variables.
void redact(Json& document);
// True if redact() would change something.
bool has_secrets(const Json& document);

// For a document that is given to others: redact(), and home folders become "~" in every text.
void make_shareable(Json& document, std::string_view home);

}  // namespace weir
