// A comparison as JUnit XML. Knows judgements; writes no file.
#include "base/text_gate.h"
#include "report/figures/judgement.h"

namespace weir {
namespace {

enum class Outcome { passed, failure, error, skipped };

Outcome outcome_of(const Judgement& judgement, bool is_strict) {
  switch (judgement.finding) {
    case CaseStatus::failed:
      return Outcome::error;
    case CaseStatus::slower:
      return Outcome::failure;
    case CaseStatus::ambiguous:
      return is_strict ? Outcome::failure : Outcome::skipped;
    case CaseStatus::lone:
      return Outcome::skipped;
    default:
      return Outcome::passed;
  }
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

struct Counts {
  std::size_t tests = 0, failures = 0, errors = 0, skipped = 0;
  void add(Outcome outcome) {
    ++tests;
    failures += outcome == Outcome::failure;
    errors += outcome == Outcome::error;
    skipped += outcome == Outcome::skipped;
  }
  Xml text() const {
    return Xml::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"", tests, failures, errors, skipped);
  }
};

Xml testcase(const Judgement& judgement, const std::string& tool, bool is_strict) {
  const Xml head = Xml::format("    <testcase classname=\"{}\" name=\"{}\">\n      ", tool, judgement.label);
  const Xml tail = Xml::format("\n    </testcase>\n");
  const std::string message = first_line(judgement.text), type = name_of(judgement.finding);
  switch (outcome_of(judgement, is_strict)) {
    case Outcome::passed:
      return head + Xml::format("<system-out>{}</system-out>", judgement.text) + tail;
    case Outcome::skipped:
      return head + Xml::format("<skipped message=\"{}: {}\"/>", type, message) + tail;
    case Outcome::failure:
      return head + Xml::format("<failure type=\"{}\" message=\"{}\">{}</failure>", type, message, judgement.text) +
             tail;
    case Outcome::error:
      break;
  }
  return head + Xml::format("<error type=\"{}\" message=\"{}\">{}</error>", type, message, judgement.text) + tail;
}

}  // namespace

std::string junit_xml(const Judged& judged) {
  Counts all;
  Xml suites;
  for (const JudgedSuite& suite : judged.suites) {
    Counts counts;
    Xml cases;
    for (const Judgement& judgement : suite.cases) {
      counts.add(outcome_of(judgement, judged.is_strict));
      all.add(outcome_of(judgement, judged.is_strict));
      cases += testcase(judgement, judged.tool, judged.is_strict);
    }
    suites += Xml::format("  <testsuite name=\"{}\" {}>\n{}  </testsuite>\n", suite.name, counts.text(), cases);
  }
  return Xml::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{}\" {}>\n{}</testsuites>\n",
                     judged.tool, all.text(), suites)
      .text();
}

}  // namespace weir
