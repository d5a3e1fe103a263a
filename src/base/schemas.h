// The documents that Weir writes, by name: NAME has the schema "weir.NAME/1", which docs/schema/weir.NAME.1.json
// describes. A new one is its name here, its writer, report/text/NAME.cpp, which shows it, and its file in docs/schema.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

// `weir report` shows these as text; text_list::NAME (report/text/documents.h) makes it.
#define WEIR_TEXT_DOCUMENTS(document)                                                                                  \
  document(analysis) document(overlap) document(overlap_tune) document(profile) document(queues) document(amd_capture) \
      document(amd_compare) document(amd_ftrace) document(amd_hqd) document(amd_join) document(amd_log)                \
          document(channel) document(conformance) document(sched_status) document(trace_comparison) document(trials)

// It shows these as pictures only (report/page/list.h), as measurements, or not at all.
#define WEIR_OTHER_DOCUMENTS(document)                                                                          \
  document(result) document(sweep) document(comparison) document(bench) document(bench_kernel)                  \
      document(bench_environment) document(kernel_manifest) document(preempt) document(watch) document(history) \
          document(report) document(calibration)

// schemas::result is "weir.result/1".
namespace weir::schemas {

#define WEIR_SCHEMA(name) inline constexpr const char* name = "weir." #name "/1";
WEIR_TEXT_DOCUMENTS(WEIR_SCHEMA)
WEIR_OTHER_DOCUMENTS(WEIR_SCHEMA)
#undef WEIR_SCHEMA

// "weir.result/" for "weir.result/2": what all versions of a schema begin with. Empty where there is no version.
constexpr std::string_view kind_of(std::string_view schema) { return schema.substr(0, schema.rfind('/') + 1); }

// "weir.result/1" of a file that begins with {"schema": "weir.result/1", as all documents of Weir do; else empty.
constexpr std::string_view at_start(std::string_view start) {
  const std::size_t key = start.substr(0, 64).find("\"schema\"");
  const std::size_t begin = key == std::string_view::npos ? key : start.find("\"weir.", key);
  if (begin == std::string_view::npos || begin > key + 20) return {};
  const std::string_view rest = start.substr(begin + 1);
  return rest.substr(0, std::min(rest.find_first_not_of("abcdefghijklmnopqrstuvwxyz_./0123456789"), rest.size()));
}

// For messages: the commands that take such a document.
inline std::string takers_of(std::string_view schema) {
  for (const std::string_view each : {result, sweep, bench, overlap, channel, amd_log})
    if (kind_of(schema) == kind_of(each))
      return "`weir report FILE` shows it on a page, `weir compare A B` compares two of them.";
  return "`weir report FILE` shows it on a page.";
}

}  // namespace weir::schemas
