// What one node says of itself and its devices: the document weir.fleet_probe/1, written and read. Measures nothing and
// judges nothing.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "measure/bootstrap.h"

namespace weir::fleet {

// A number of a device, or the reason why there is none.
struct Figure {
  std::string name;               // of figures.h
  std::string to;                 // the other device of a copy ("cuda:1"); empty for all other figures
  std::optional<double> value;    // the median of the samples; a state has none and is one reading
  std::optional<Interval> range;  // what a repetition on the same device may show: the stated spread of the value
  std::vector<double> samples;
  std::string reason;  // why there is no value
};

// One device of a node.
struct NodeDevice {
  std::string name;                          // cuda:0
  std::string model;                         // "NVIDIA H200"
  std::string serial;                        // of the board, else its UUID; empty where the device has neither
  std::string bus;                           // PCI address; empty where there is none
  std::map<std::string, std::string> facts;  // versions and settings: driver, firmware, persistence, mig, ecc, ...
  std::vector<Figure> figures;
  std::vector<std::string> throttle;  // active reasons under load, in words
  std::vector<std::string> wrong;     // outputs that were not right, a sentence each
  std::string failure;                // why it could not be examined to the end; empty: it was

  const Figure* figure(std::string_view figure_name) const;  // null where there is none
};

// A link between two nodes, as the node that is named sees it.
struct NodeLink {
  std::string to;  // the other node
  std::vector<double> bytes_per_s;
  std::string reason;  // why there are no samples
};

struct NodeReport {
  std::string name;  // the host's
  std::string created;
  std::vector<std::string> command_line;
  Json environment;  // as in results
  std::map<std::string, std::string>
      facts;  // governor, huge_pages, numa, variables that matter ("CUDA_..."), weir, ...
  std::map<std::string, std::string> place;  // where it stands, where known: "switch", "rack", "block"
  std::vector<NodeDevice> devices;
  std::vector<NodeLink> links;
  std::string failure;  // why there are no devices; empty: there are
  double duration_ns = 0;
};

Json to_json(const NodeReport& node);
// Rejects a document of another kind; what is missing or of another type inside it is empty.
NodeReport read_node(const Json& document, const std::string& file);

}  // namespace weir::fleet
