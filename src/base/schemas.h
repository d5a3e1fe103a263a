// The documents that Weir writes, by name and version: NAME, 2 has the schema "weir.NAME/2", which
// docs/schema/weir.NAME.2.json describes. A new one is its name here, its writer, report/text/NAME.cpp, which shows it,
// and its file in docs/schema. A new version also is its moves in base/upgrade.cpp.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

// `weir report` shows these as text; text_list::NAME (report/text/documents.h) makes it.
#define WEIR_TEXT_DOCUMENTS(document)                                                                              \
  document(analysis, 2) document(overlap, 2) document(overlap_tune, 2) document(profile, 2) document(queues, 2)    \
      document(amd_capture, 1) document(amd_compare, 1) document(amd_ftrace, 2) document(amd_hqd, 2)               \
          document(amd_join, 1) document(amd_log, 2) document(amd_queues, 1) document(amd_roadmap, 1)              \
              document(channel, 2) document(conformance, 2) document(probe_priority, 1) document(sched_status, 1)  \
                  document(trace_comparison, 2) document(trials, 2) document(overlap_sweep, 1) document(advice, 1) \
                      document(fleet, 1) document(fleet_probe, 1) document(race, 1)

// It shows these as pictures only (report/page/list.h), as measurements, or not at all.
#define WEIR_OTHER_DOCUMENTS(document)                                                                        \
  document(result, 2) document(sweep, 1) document(comparison, 2) document(bench, 2) document(bench_kernel, 2) \
      document(bench_environment, 1) document(kernel_manifest, 1) document(preempt, 2) document(watch, 1)     \
          document(history, 2) document(report, 2) document(calibration, 1) document(info, 1) document(list, 1)

// schemas::result is "weir.result/2".
namespace weir::schemas {

#define WEIR_SCHEMA(name, version) inline constexpr const char* name = "weir." #name "/" #version;
WEIR_TEXT_DOCUMENTS(WEIR_SCHEMA)
WEIR_OTHER_DOCUMENTS(WEIR_SCHEMA)
#undef WEIR_SCHEMA

// "weir.result/" for "weir.result/2": what all versions of a schema begin with. Empty where there is no version.
constexpr std::string_view kind_of(std::string_view schema) { return schema.substr(0, schema.rfind('/') + 1); }

// Whether both are the same document, in any version.
constexpr bool are_alike(std::string_view one, std::string_view other) {
  return !kind_of(one).empty() && kind_of(one) == kind_of(other);
}

// "weir.result/2" for "weir.result/7": the version that this program writes. Empty for an unknown document.
constexpr std::string_view current(std::string_view schema) {
#define WEIR_SCHEMA(name, version) \
  if (are_alike(schema, schemas::name)) return schemas::name;
  WEIR_TEXT_DOCUMENTS(WEIR_SCHEMA)
  WEIR_OTHER_DOCUMENTS(WEIR_SCHEMA)
#undef WEIR_SCHEMA
  return {};
}

// "2" for "weir.result/2".
constexpr std::string_view version_of(std::string_view schema) { return schema.substr(kind_of(schema).size()); }

// Whether a later Weir wrote this document: its version is a number above the one that this program writes.
constexpr bool is_newer(std::string_view schema) {
  const std::string_view version = version_of(schema), known = version_of(current(schema));
  if (known.empty() || version.empty() || version.front() == '0') return false;
  if (version.find_first_not_of("0123456789") != std::string_view::npos) return false;
  return version.size() != known.size() ? version.size() > known.size() : version > known;
}

// "weir.result/2" of a file that begins with {"schema": "weir.result/2", as all documents of Weir do; else empty.
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
