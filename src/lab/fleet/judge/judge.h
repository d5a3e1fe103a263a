// Which devices and nodes of a fleet are slow, wrong or set differently, and why: reports of nodes in, the document
// weir.fleet/1 out. Reads no file and measures nothing. docs/fleet.md has the method.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "lab/fleet/node.h"

namespace weir::fleet {

struct JudgeOptions {
  double significance = 0.01;  // chance that a fleet without a slow device has any named, all figures together
  double threshold = 0.03;     // smaller effects do not matter, however clear
};

// A figure among devices of one model with the same settings.
struct PeerFigure {
  std::string name;
  std::size_t count = 0;  // devices that have it
  std::optional<double> p50, min, max;
  std::optional<double> spread;  // robust standard deviation between devices, relative to p50
};

struct PeerGroup {
  std::string model, settings;  // "" where all have the same
  std::size_t devices = 0;
  std::vector<PeerFigure> figures;
};

// What kind of thing is wrong with a device, a node or a link.
enum class FindingKind : std::uint8_t {
  wrong,      // it computed something that is not right
  slow,       // a figure is worse than its peers'
  fault,      // errors that its hardware counts: memory errors, retired pages
  different,  // a setting or a version that few have; alone it makes nobody unfit
  link,       // a link between two nodes is slow, and neither node is with others
  missing,    // a node or a device could not be examined
  changed,    // a device became slower than it was, though not clearly slower than its peers
};
std::string_view name_of(FindingKind kind);

struct Finding {
  FindingKind kind = FindingKind::slow;
  std::string node, device, serial;  // device and serial empty for a node; for a link `to` is the other node
  std::string figure, to;
  std::string place;  // "switch leaf3": all nodes there are slow; node and device are then empty
  std::optional<double> value, typical, effect;  // typical: the median of its peers; effect: value / typical - 1
  std::optional<double> p;                       // that a healthy fleet of this size shows as much anywhere
  std::size_t peers = 0;
  std::string cause;     // the likely one, in words: "PCIe width 8 where peers have 16"; empty: none is known
  std::string sentence;  // all of it, one line: "node7 cuda:3: GEMM bf16 6.1 % below its 1,023 peers: ..."
  bool is_unfit = true;  // whether it makes the node unfit
};

// A version or a setting that is not the same everywhere.
struct Difference {
  struct Holders {
    std::string value;
    std::size_t count = 0;           // nodes or devices
    std::vector<std::string> first;  // a few of their names
  };
  std::string name;
  bool is_of_device = false;
  std::vector<Holders> values;  // the most frequent first
};

struct NodeVerdict {
  std::string name;
  bool is_fit = true;
  std::string reason;  // one line; empty where it is fit
};

struct FleetReport {
  JudgeOptions options;
  std::size_t nodes = 0, devices = 0;
  std::vector<PeerGroup> groups;
  std::vector<std::size_t> group_of_device;  // in the order of the nodes and their devices: its place in `groups`
  std::vector<Finding> findings;             // the worst first
  std::vector<Difference> differences;
  std::vector<NodeVerdict> verdicts;  // by name
  std::vector<std::string> notes;     // what could not be judged, and why
};

// Judges `nodes` against each other and against `peers`, which are not judged themselves.
FleetReport judge(std::span<const NodeReport> nodes, std::span<const NodeReport> peers = {},
                  const JudgeOptions& options = {});

// weir.fleet/1. With the grid of all values (nodes, devices, figures) that the page draws.
Json fleet_document(const FleetReport& report, std::span<const NodeReport> nodes,
                    const std::vector<std::string>& command_line);

}  // namespace weir::fleet
