#include "lab/conformance/examined.h"

#include <algorithm>

namespace weir::conformance {

ConformanceResults examined(Device& device, const std::vector<std::string>& filters,
                            std::function<std::unique_ptr<Device>(const DeviceOptions&)> open_again) {
  const auto cpu = open_device("cpu", {});
  Subject subject{device, device.info(), nullptr, std::move(open_again)};
  if (subject.info.backend != "cpu") subject.cpu = cpu.get();
  return examine(subject, matching(cases(), filters));
}

void expect_conforming(Device& device, const std::vector<std::string>& filters,
                       std::function<std::unique_ptr<Device>(const DeviceOptions&)> open_again) {
  const ConformanceResults report = examined(device, filters, std::move(open_again));
  EXPECT_FALSE(report.results.empty()) << "no case is called like that";
  EXPECT_EQ(report.lost, "");
  for (const auto& [which, outcome, seconds] : report.results) {
    EXPECT_TRUE(outcome.is_passed() || outcome.status == CaseOutcome::Status::skipped)
        << which->full_name() << ": " << outcome.text;
    EXPECT_TRUE(outcome.status != CaseOutcome::Status::skipped || !outcome.text.empty())
        << which->full_name() << " was skipped without a reason";
  }
}

std::vector<std::string> group_names() {
  std::vector<std::string> names;
  for (const ConformanceCase& each : cases())
    if (names.empty() || names.back() != each.group) names.push_back(each.group);
  return names;
}

}  // namespace weir::conformance
