// What a comparison found, case by case, for systems that run tests: GitHub's annotations and outputs, JUnit's files.
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

// From the worst to what needs nobody. `lone`: only one side has it, so nothing was compared.
enum class Finding { failed, slower, ambiguous, lone, faster, same };
const char* name_of(Finding finding);

struct Judgement {
  Finding finding = Finding::same;
  std::string label;   // may come from a file, as all texts here: whoever writes them out makes them safe
  std::string text;    // figures and reasons, a line each
  double badness = 0;  // among findings of one kind the largest comes first
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

  std::map<Finding, std::size_t> counts() const;
  // The worst that there is; `lone` points decide nothing.
  Finding verdict() const;
};

Judged judge(const Comparison& comparison, const std::string& tool, bool is_strict);
// A weir.bench/1: its cases, and where there was a baseline its regressions.
Judged judge_bench(const Json& summary, bool is_strict, int exit_code);

// JUnit XML, which most CI systems read.
// One testcase per case: slower is a failure, a failed run an error, ambiguous is skipped (with --strict a failure),
// and what only one side has is skipped. Characters that XML does not allow are left out.
std::string junit_xml(const Judged& judged);

// GitHub shows this many annotations of a kind per step, and takes this much text in a comment and in a step's summary.
inline constexpr std::size_t kMostAnnotations = 10;
inline constexpr std::size_t kMostComment = 65'536;
inline constexpr std::size_t kMostSummary = 1'048'576;

// ::error for what failed or is slower, ::warning for what is ambiguous (and one for all lone points), ::notice for
// what is faster; the worst first, and where there are more than GitHub shows the last one says how many.
std::string github_annotations(const Judged& judged);

// verdict=slower, slower=1, ... for $GITHUB_OUTPUT: our own words and numbers only.
std::string github_outputs(const Judged& judged);

// The first whole lines of a Markdown text that fit into `most` bytes, with a remark where that is not all.
std::string github_excerpt(const std::string& markdown, std::size_t most);

// The runner obeys lines that begin with "::" and anything in "##[...]", wherever they are printed: a name from a file
// must not become a command. Text that holds neither is unchanged; in JSON it still means the same.
std::string without_commands(std::string_view text, bool is_json = false);

}  // namespace weir
