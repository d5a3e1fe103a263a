// The sections of one device in a weir.analysis/2 document. They judge nothing themselves; lists have at most `most`
// rows.
#pragma once

#include <cstddef>
#include <string>

#include "base/json.h"
#include "report/text/sections.h"

namespace weir::analysis {

// Of the whole document: which rank is slowest in each phase, and why.
ReportSection rank_phases_section(const Json& document, std::size_t most);
// One of its phases as a sentence; empty where the ranks are alike. `ranks` are those of "rank_phases".
std::string slow_rank_sentence(const Json& phase, const Json& ranks);
// "backward"
std::string phase_words(const std::string& phase);
// "3"; of several devices of one rank the device, too: "3 (GPU 1)".
std::string rank_words(const Json& each, const Json& ranks);
ReportSection times_section(const Json& device);
ReportSection work_section(const Json& device);
ReportSection modules_section(const Json& device, std::size_t most);
ReportSection phases_section(const Json& device, std::size_t most);
ReportSection shapes_section(const Json& device, std::size_t most);
ReportSection launching_section(const Json& device, std::size_t most);
ReportSection copies_section(const Json& device, std::size_t most);
ReportSection memory_section(const Json& device, std::size_t most);
// What ran when memory was at its peak: "aten::mm, in Linear_3, forward, ProfilerStep#2"; empty where unknown.
std::string peak_words(const Json& peak);
// Of "steps" of "memory": that each step ends with more, as a sentence; empty where that is not so.
std::string growth_sentence(const Json& steps);
ReportSection efficiency_section(const Json& device, std::size_t most);
ReportSection iterations_section(const Json& device, std::size_t most);
ReportSection queues_section(const Json& device, std::size_t most);
ReportSection serialisation_section(const Json& device, std::size_t most);
ReportSection host_section(const Json& device);
ReportSection path_section(const Json& device, std::size_t most);
ReportSection exposed_section(const Json& device);
ReportSection collectives_section(const Json& device, std::size_t most);
ReportSection top_section(const Json& device, std::size_t most);
ReportSection gaps_section(const Json& device);

}  // namespace weir::analysis
