// Holds launches at the gate, and nothing else: what has been launched runs to its end.
#include "submit/sched/mechanism/list.h"

namespace weir::scheduler {

Mechanism mechanism_list::gate() {
  return {
      .name = "gate", .summary = "launches are held; what has been launched runs to its end", .notice = {}, .open = {}};
}

}  // namespace weir::scheduler
