// The results of a comparison, case by case, for systems that run tests: GitHub's annotations and outputs, JUnit files.
// Touches no file and no environment.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "run/compare.h"

namespace weir {

// From the worst to those that need no attention. `lone`: only one side has it, so nothing was compared.
enum class CaseStatus { failed, slower, ambiguous, lone, faster, same };
const char* name_of(CaseStatus finding);

struct Judgement {
  CaseStatus finding = CaseStatus::same;
  std::string label;    // may come from a file, like all texts here: the code that writes them out must escape them
  std::string text;     // figures and reasons, a line each
  double severity = 0;  // among findings of one kind, the largest comes first
};

struct JudgedSuite {
  std::string name;
  std::vector<Judgement> cases;
};

struct Judged {
  std::string tool;     // "weir compare"
  std::string summary;  // "1 slower, 3 same"
  bool is_strict = false;
  int exit_code = 0;
  std::vector<JudgedSuite> suites;

  std::map<CaseStatus, std::size_t> counts() const;
  // The worst finding; `lone` points do not count.
  CaseStatus verdict() const;
};

Judged judge(const Comparison& comparison, const std::string& tool, bool is_strict);
// A weir.bench/2: its cases, and its regressions where there was a baseline.
Judged judge_bench(const Json& summary, bool is_strict, int exit_code);

// A weir.channel/2: its benchmarks, and how they compare where there was a baseline.
Judged judge_channel(const Json& document, const std::string& tool, bool is_strict, int exit_code);

// JUnit XML, which most CI systems read.
// One testcase per case: slower is a failure, a failed run an error, ambiguous is skipped (with --strict a failure),
// and cases that only one side has are skipped. Characters that XML does not allow are left out.
std::string junit_xml(const Judged& judged);

// GitHub shows this many annotations of a kind per step, and accepts this much text in a comment and in a step's
// summary.
inline constexpr std::size_t kMaxAnnotations = 10;
inline constexpr std::size_t kMaxComment = 65'536;
inline constexpr std::size_t kMaxSummary = 1'048'576;

// ::error for failed or slower, ::warning for ambiguous (and one for all lone points), ::notice for faster; the worst
// first, and if there are more than GitHub shows, the last one reports how many.
std::string github_annotations(const Judged& judged);

// verdict=slower, slower=1, ... for $GITHUB_OUTPUT: only Weir's own words and numbers.
std::string github_outputs(const Judged& judged);

// The first whole lines of a Markdown text that fit into `most` bytes, with a remark if some are left out.
std::string github_excerpt(const std::string& markdown, std::size_t most);

}  // namespace weir
