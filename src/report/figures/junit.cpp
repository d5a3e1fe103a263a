// A comparison as JUnit XML. Knows judgements; writes no file.
#include <fmt/format.h>

#include "base/plain_text.h"
#include "report/figures/judgement.h"
#include "report/text/escape.h"

namespace weir {
namespace {

// XML 1.0 allows no control characters except tab and line breaks, and neither U+FFFE nor U+FFFF, not even escaped.
std::string xml(const std::string& text) {
  std::string plain = without_controls(as_utf8(text), '\x01', "\n\t");
  std::erase(plain, '\x01');
  for (const char* unwanted : {"\xef\xbf\xbe", "\xef\xbf\xbf"})
    for (std::size_t at = 0; (at = plain.find(unwanted, at)) != std::string::npos;) plain.erase(at, 3);
  return replaced(markup_escaped(plain), {{'\n', "&#10;"}, {'\t', "&#9;"}});
}

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
  std::string text() const {
    return fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"", tests, failures, errors, skipped);
  }
};

std::string testcase(const Judgement& judgement, const std::string& tool, bool is_strict) {
  std::string text = fmt::format("    <testcase classname=\"{}\" name=\"{}\"", xml(tool), xml(judgement.label));
  const std::string message = xml(first_line(judgement.text)), type = name_of(judgement.finding);
  switch (outcome_of(judgement, is_strict)) {
    case Outcome::passed:
      return text + fmt::format(">\n      <system-out>{}</system-out>\n    </testcase>\n", xml(judgement.text));
    case Outcome::skipped:
      return text + fmt::format(">\n      <skipped message=\"{}: {}\"/>\n    </testcase>\n", type, message);
    case Outcome::failure:
      return text + fmt::format(">\n      <failure type=\"{}\" message=\"{}\">{}</failure>\n    </testcase>\n", type,
                                message, xml(judgement.text));
    case Outcome::error:
      break;
  }
  return text + fmt::format(">\n      <error type=\"{}\" message=\"{}\">{}</error>\n    </testcase>\n", type, message,
                            xml(judgement.text));
}

}  // namespace

std::string junit_xml(const Judged& judged) {
  Counts all;
  std::string suites;
  for (const JudgedSuite& suite : judged.suites) {
    Counts counts;
    std::string cases;
    for (const Judgement& judgement : suite.cases) {
      counts.add(outcome_of(judgement, judged.is_strict));
      all.add(outcome_of(judgement, judged.is_strict));
      cases += testcase(judgement, judged.tool, judged.is_strict);
    }
    suites += fmt::format("  <testsuite name=\"{}\" {}>\n{}  </testsuite>\n", xml(suite.name), counts.text(), cases);
  }
  return fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{}\" {}>\n{}</testsuites>\n",
                     xml(judged.tool), all.text(), suites);
}

}  // namespace weir
