// The state of a scheduler's daemon (weir.sched_status/1) for people: who has a seat, who waits for whom, what each
// used.
#pragma once

#include "base/json.h"
#include "report/text/sections.h"

namespace weir {

// `before`: an earlier status, of the same daemon or another: where a client was there already, its columns say what
// happened since then instead of since it came. Null: there is none.
Report sched_status_report(const Json& status, const Json& before = nullptr);

}  // namespace weir
