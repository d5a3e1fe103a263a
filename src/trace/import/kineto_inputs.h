// Inputs of a PyTorch operator: how Kineto writes them, and as the text of an operation's shapes. Knows no other part
// of an event.
#pragma once

#include <string>
#include <string_view>

#include "trace/import/json_reader.h"

namespace weir {

// Each with a line break after it; equally many types and dimensions.
struct KinetoInputs {
  std::string types;       // "bf16"; empty where it is no tensor
  std::string dimensions;  // "[8, 1024]"; "3 tensors of 5120 elements" for a list
  std::string values;      // of inputs that are none; only of operators whose cost depends on them
  void clear() {
    types.clear();
    dimensions.clear();
    values.clear();
  }
};

// Each function reads the value of one key.
class KinetoInputReader {
 public:
  KinetoInputReader(JsonReader& reader, KinetoInputs& to) : reader_(reader), to_(to) {}

  void dimensions();  // "Input Dims"
  void types();       // "Input type"
  void values();      // "Concrete Inputs"
  // Whether the cost of this operator depends on more than its shapes: strides, groups, causality.
  static bool needs_values(std::string_view operation) noexcept;

 private:
  template <class Read, class Other>
  void elements(Read&& read, Other&& other);
  template <class Use>
  void texts(Use&& use);

  JsonReader& reader_;
  KinetoInputs& to_;
};

// "bf16 [8, 1024], bf16 [1024, 4096]"; where the cost depends on other inputs, "...; [1, 1], [0, 0], False"
std::string shapes_of(const KinetoInputs& inputs);

}  // namespace weir
