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

// A place in a file that a message can name: "my.yaml:12: commands[3].kernel".
struct YamlPlace {
  std::shared_ptr<const std::string> file;
  int line = 0;
  std::string path;

  std::string text() const;
  // "my.yaml:12: commands[3].kernel: WHAT"
  [[noreturn]] void refuse(const std::string& what, std::string hint = {}) const;
  // Calls `body`; what it rejects, or fails at, is rejected in the name of this place.
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
  std::string key;              // where it is in a map
  std::string text;             // of a scalar
  std::vector<YamlNode> items;  // of a list, or of a map in the order of the file

  // The value of a key; null where there is none.
  const YamlNode* find(std::string_view name) const;
  // Rejects a map that lacks it, or a node that is no map.
  const YamlNode& at(std::string_view name) const;

  // Each rejects a node of another kind, in words that show what is wanted.
  const std::string& scalar(std::string_view wanted) const;
  std::span<const YamlNode> list(std::string_view wanted) const;
  std::span<const YamlNode> map(std::string_view wanted) const;

  // Rejects every key of a map that is not among `known`, with a suggestion.
  void allow(std::initializer_list<std::string_view> known) const;
};

struct YamlBounds {
  std::size_t file_bytes = 1 << 20;
  std::size_t nodes = 200'000;  // as visited: an alias counts as often as it is used
  int depth = 40;
};

// Rejects text that is no YAML, or beyond the bounds. `name` stands for the file in messages.
YamlNode parse_yaml(std::string_view text, const std::string& name, const YamlBounds& bounds);

// A word of the user's for a message: at most 40 characters, without line breaks.
std::string shown(std::string_view text);

}  // namespace weir
