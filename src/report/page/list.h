// The sections of a report: documents with pictures, a file each (NAME.cpp for the schema weir.NAME), and the text of
// all others that have one.
#pragma once

#include "report/page/page.h"

#define WEIR_PICTURES(picture)                                                                                     \
  picture(comparison) picture(trace_comparison) picture(analysis) picture(bench) picture(overlap) picture(preempt) \
      picture(profile) picture(queues) picture(fleet) picture(fleet_probe)

namespace weir::page::section_list {

#define WEIR_DECLARE(name) void name(Page& page, std::size_t source, const Json& document);
WEIR_PICTURES(WEIR_DECLARE)
WEIR_DECLARE(text)
#undef WEIR_DECLARE

}  // namespace weir::page::section_list
