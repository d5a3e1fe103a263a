// Documents of nodes: whatever the bytes, reading one either gives a node that can be judged beside others and written
// down again, or throws our own error.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "lab/fleet/judge/judge.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const weir::fleet::NodeReport node = weir::fleet::read_node(weir::parse_json(text, "fuzz"), "fuzz");
    // The same bytes twice are two nodes with the same devices: peers of each other.
    weir::fleet::NodeReport other = node;
    other.name += "2";
    const std::vector<weir::fleet::NodeReport> nodes{node, other};
    const weir::fleet::FleetReport report = judge(nodes);
    for (const weir::fleet::Finding& finding : report.findings) {
      for (const char c : finding.sentence)
        if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) __builtin_trap();
    }
    if (report.verdicts.empty() || report.group_of_device.size() != report.devices) __builtin_trap();
    weir::to_text(fleet_document(report, nodes, {}));
    const weir::Json written = to_json(node);
    if (weir::fleet::read_node(written, "again").devices.size() != node.devices.size()) __builtin_trap();
  } catch (const weir::Error& error) {
    if (error.fault != weir::Fault::input) __builtin_trap();
  }
  return 0;
}
