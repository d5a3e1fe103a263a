#include "report/history/libpq.h"

namespace weir::history {

const LibPq* libpq(std::string* reason) {
  static const Opened<LibPq> library([](LibPq& table) { return table.shortfall("libpq"); });
  return library.get(reason);
}

}  // namespace weir::history
