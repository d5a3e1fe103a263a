// A YAML document as a plain tree in which every node knows its line and its path. Knows YAML, and no workload.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace weir {

// A place in a file, for messages: "my.yaml:12: commands[3].kernel".
struct YamlPlace {
  std::shared_ptr<const std::string> file;
  int line = 0;
  std::string path;

  std::string text() const;
  // "my.yaml:12: commands[3].kernel: WHAT"
  [[noreturn]] void refuse(const std::string& what, std::string hint = {}) const;
  // Calls `body`; if it throws, the error names this place.
  template <class Body>
  decltype(auto) guard(Body&& body) const {
    try {
      return body();
    } catch (const Error& error) {
      refuse(error.what(), error.hint);
    }
  }
};

class YamlNode {
 public:
  enum class Kind : std::uint8_t { null, scalar, list, map };

  Kind kind = Kind::null;
  YamlPlace place;
  std::string key;              // its key, if in a map
  std::string text;             // if a scalar
  std::vector<YamlNode> items;  // of a list, or of a map in file order

  // The value of a key; null if there is none.
  const YamlNode* find(std::string_view name) const;
  // Rejects a map that lacks it, or a node that is not a map.
  const YamlNode& at(std::string_view name) const;

  // Each rejects a node of another kind, with an example of what is wanted.
  const std::string& scalar(std::string_view wanted) const;
  std::span<const YamlNode> list(std::string_view wanted) const;
  std::span<const YamlNode> map(std::string_view wanted) const;

  // Rejects every key of a map that is not among `known`, with a suggestion.
  void allow(std::initializer_list<std::string_view> known) const;
};

struct YamlBounds {
  std::size_t file_bytes = 1 << 20;
  std::size_t nodes = 200'000;  // as visited: an alias counts each time it is used
  int depth = 40;
};

// Rejects text that is not YAML or exceeds the limits. `name` stands for the file in messages.
YamlNode parse_yaml(std::string_view text, const std::string& name, const YamlBounds& bounds);

// A user's word for a message: at most 40 characters, without line breaks.
std::string shown(std::string_view text);

}  // namespace weir
