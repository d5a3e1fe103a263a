// What a comparison found, case by case, in the words of systems that run tests: what GitHub's annotations and JUnit's
// files are made of. Knows the comparisons; knows neither of those formats.
#pragma once

#include <cstddef>
#include <map>
#include <string>
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

}  // namespace weir
