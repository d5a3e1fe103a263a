// The sections by name, for list.cpp and for the files that define them, one each.
#pragma once

#include "report/page/page.h"

namespace weir::page::section_list {

void comparison(Page& page, std::size_t source, const Json& document);
void analysis(Page& page, std::size_t source, const Json& document);
void bench(Page& page, std::size_t source, const Json& document);
void overlap(Page& page, std::size_t source, const Json& document);
void preempt(Page& page, std::size_t source, const Json& document);
void profile(Page& page, std::size_t source, const Json& document);
void queues(Page& page, std::size_t source, const Json& document);
void text(Page& page, std::size_t source, const Json& document);

}  // namespace weir::page::section_list
