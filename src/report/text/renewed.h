// Documents of Weir 0.1 with the names and shares of today, so that those who show them know one spelling only.
#pragma once

#include "base/json.h"

namespace weir {

// weir.analysis/2: `exposed` meant "while no compute ran" in `times`; hops to `seen` were part of every way.
Json renewed_analysis(Json document);
// weir.profile/2: the hops.
Json renewed_profile(Json document);

}  // namespace weir
