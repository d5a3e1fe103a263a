// The table itself: every kernel in every type is in it, names are unique, filters find what they should.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>

#include "base/error.h"
#include "lab/conformance/conformance.h"
#include "lab/conformance/examined.h"
#include "lab/conformance/steps.h"

namespace weir::conformance {
namespace {

using Status = CaseOutcome::Status;

TEST(ConformanceTable, has_every_kernel_in_every_type) {
  std::map<std::string_view, std::set<ElementType>> types;
  for (const ConformanceCase& each : cases())
    if (!each.kernel.empty()) types[each.kernel].insert(each.type.value());
  using enum ElementType;
  const std::set<ElementType> kFloats = {f32, f16, bf16}, kAll = {f32, f16, bf16, i32};
  const std::set<std::string_view> movers = {"gather", "scatter", "copy", "fill", "transpose", "graph_break"};
  for (const Kernel& kernel : weir::kernels()) {
    ASSERT_TRUE(types.contains(kernel.name)) << "there is no case for the kernel " << kernel.name;
    const bool is_integer = kernel.is_probe || kernel.types.find_first_not_of('i') == std::string_view::npos;
    const bool is_single = kernel.name == "spin" || kernel.name == "clip";  // all of its operands are f32
    const std::set<ElementType> expected = movers.contains(kernel.name)                               ? kAll
                                           : is_single                                                ? std::set{f32}
                                           : is_integer && (kernel.is_probe || !kernel.types.empty()) ? std::set{i32}
                                                                                                      : kFloats;
    EXPECT_EQ(types[kernel.name], expected) << kernel.name;
  }
}

TEST(ConformanceTable, names_are_unique) {
  std::set<std::string> names;
  for (const ConformanceCase& each : cases()) {
    EXPECT_TRUE(names.insert(each.full_name()).second) << each.full_name();
    EXPECT_TRUE(each.examine) << each.full_name();
  }
  const std::vector<std::string> groups = group_names();
  EXPECT_EQ(std::set(groups.begin(), groups.end()).size(), groups.size()) << "a group is in two pieces";
}

TEST(ConformanceTable, filters_by_part_and_by_pattern) {
  const auto count = [](const std::vector<std::string>& filters) { return matching(cases(), filters).size(); };
  EXPECT_EQ(count({}), cases().size());
  EXPECT_EQ(count({"no such case"}), 0u);
  EXPECT_EQ(count({"buffers/memory use"}), 1u);
  EXPECT_EQ(count({"copies/*", "buffers/*"}), count({"copies/*"}) + count({"buffers/*"}));
  EXPECT_LT(count({"kernels/gelu/*"}), count({"gelu"}));
  EXPECT_EQ(count({"copies"}), count({"copies", "copies/*"}));
}

ConformanceCase case_of(std::string name, std::function<CaseOutcome(Subject&)> examine) {
  return {"planted", std::move(name), {}, std::move(examine)};
}

std::vector<const ConformanceCase*> pointers(const std::vector<ConformanceCase>& all) {
  std::vector<const ConformanceCase*> chosen;
  for (const ConformanceCase& each : all) chosen.push_back(&each);
  return chosen;
}

TEST(ConformanceTable, a_case_that_throws_has_failed_and_the_rest_is_run) {
  const auto device = open_device("cpu", {});
  Subject subject{*device, device->info(), nullptr, {}};
  const std::vector<ConformanceCase> all = {
      case_of("error", [](Subject&) -> CaseOutcome { fail("it broke", "Mend it."); }),
      case_of("other", [](Subject&) -> CaseOutcome { throw std::runtime_error("it also broke"); }),
      case_of("fine", [](Subject&) { return passed(); })};
  const ConformanceResults report = examine(subject, pointers(all));
  ASSERT_EQ(report.results.size(), 3u);
  EXPECT_EQ(report.results[0].outcome.status, Status::failed);
  EXPECT_EQ(report.results[0].outcome.text, "it throws: it broke (Mend it.)");
  EXPECT_EQ(report.results[1].outcome.text, "it throws: it also broke");
  EXPECT_EQ(report.results[2].outcome.status, Status::passed);
  EXPECT_EQ(report.lost, "");
  EXPECT_FALSE(report.has_passed());
}

TEST(ConformanceTable, what_a_device_lacks_is_skipped_with_its_reason) {
  const auto device = open_device("cpu", {});
  Subject subject{*device, device->info(), nullptr, {}};
  subject.info.graphs = lacking("it is old");
  ConformanceCase each = case_of("graph", [](Subject&) { return failed("it was run"); });
  each.needs.graphs = true;
  const std::vector<ConformanceCase> all = {each};
  const ConformanceResults report = examine(subject, pointers(all));
  EXPECT_EQ(report.results[0].outcome.status, Status::skipped);
  EXPECT_EQ(report.results[0].outcome.text, "no graphs: it is old");
  EXPECT_TRUE(report.has_passed());
}

TEST(ConformanceTable, an_interruption_leaves_the_rest_unrun) {
  const auto device = open_device("null", {});
  Subject subject{*device, device->info(), nullptr, {}};
  std::atomic<bool> stop = false;
  const std::vector<ConformanceCase> all = {case_of("first",
                                                    [&](Subject&) {
                                                      stop = true;
                                                      return passed();
                                                    }),
                                            case_of("second", [](Subject&) { return failed("it was run"); })};
  const ConformanceResults report = examine(subject, pointers(all), {.stop = &stop, .progress = {}});
  EXPECT_TRUE(report.is_interrupted);
  EXPECT_EQ(report.results[0].outcome.status, Status::passed);
  EXPECT_EQ(report.results[1].outcome.status, Status::not_run);
  EXPECT_FALSE(report.has_passed());
}

}  // namespace
}  // namespace weir::conformance
