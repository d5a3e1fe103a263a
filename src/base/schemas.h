// The documents that Weir writes, by name: NAME has the schema "weir.NAME/1", which docs/schema/weir.NAME.1.json
// describes. A new one is its name here, its writer, report/text/NAME.cpp, which shows it, and its file in docs/schema.
#pragma once

#include <string_view>

// `weir report` shows these as text; text_list::NAME (report/text/documents.h) makes it.
#define WEIR_TEXT_DOCUMENTS(document)                                                                                  \
  document(analysis) document(overlap) document(overlap_tune) document(profile) document(queues) document(amd_capture) \
      document(amd_compare) document(amd_ftrace) document(amd_hqd) document(amd_join) document(amd_log)                \
          document(amd_queues) document(amd_roadmap) document(channel) document(conformance) document(sched_status)    \
              document(trace_comparison) document(trials)

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

}  // namespace weir::schemas
