// Documents of version 1 with the names of version 2, so that all other code knows one spelling only.
// Knows old and new names; judges nothing, and accepts any JSON.
#pragma once

#include "base/json.h"

namespace weir {

// Turns a document of version 1 whose names have changed since into one of version 2, and the results of a sweep with
// it. Leaves everything else as it is. Values of the wrong type move too: whoever reads the document rejects them.
void upgrade(Json& document);

// As read_json(), which upgrades what it reads, but with the names and the version that the file has.
Json read_json_as_written(const std::filesystem::path& path);

}  // namespace weir
