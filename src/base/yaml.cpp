#include "base/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <exception>
#include <unordered_set>

#include "base/options.h"
#include "base/plain_text.h"
#include "base/schemas.h"

namespace weir {
namespace {

constexpr const char* kQuoteHint =
    "Indent by spaces. Quote what holds ': ' or ' #', and slices in a [list]: [\"a[0:n]\", b].";

std::string_view name_of(YamlNode::Kind kind) {
  constexpr std::string_view kNames[] = {"nothing", "a plain value", "a list", "a map"};
  return kNames[static_cast<int>(kind)];
}

// Copies the tree from yaml-cpp, within limits: aliases can make a small text large, or even endless.
class Reader {
 public:
  Reader(const std::string& name, const YamlBounds& bounds)
      : file_(std::make_shared<const std::string>(name)), bounds_(bounds) {}

  YamlNode read(const YAML::Node& from, std::string path, int parent_line, int depth) {
    YamlNode node;
    const int line = from.Mark().line >= 0 ? from.Mark().line + 1 : parent_line;
    node.place = {file_, line, std::move(path)};
    if (++visited_ > bounds_.nodes)
      node.place.refuse(fmt::format("more than {} values", bounds_.nodes), "Aliases count as often as they are used.");
    if (depth > bounds_.depth) node.place.refuse(fmt::format("nested more than {} levels deep", bounds_.depth));
    if (from.IsScalar()) {
      node.kind = YamlNode::Kind::scalar;
      node.text = from.Scalar();
    } else if (from.IsSequence()) {
      node.kind = YamlNode::Kind::list;
      std::size_t index = 0;
      for (const YAML::Node& item : from)
        node.items.push_back(read(item, fmt::format("{}[{}]", node.place.path, index++), line, depth + 1));
    } else if (from.IsMap()) {
      node.kind = YamlNode::Kind::map;
      std::unordered_set<std::string> names;  // a search of the list for each would take quadratic time
      for (const auto& entry : from) {
        const YAML::Node& name = entry.first;
        const int line_of_key = name.Mark().line >= 0 ? name.Mark().line + 1 : line;
        if (!name.IsScalar()) place_at(line_of_key).refuse("a key must be a plain word");
        std::string key_path = (node.place.path.empty() ? "" : node.place.path + ".") + shown(name.Scalar());
        if (!names.insert(name.Scalar()).second) YamlPlace{file_, line_of_key, key_path}.refuse("given twice");
        YamlNode child = read(entry.second, std::move(key_path), line_of_key, depth + 1);
        // A list or map below its key begins a line later, but people look for the key.
        child.place.line = line_of_key;
        child.key = name.Scalar();
        node.items.push_back(std::move(child));
      }
    }
    return node;
  }

  YamlPlace place_at(int line) const { return {file_, line, ""}; }

 private:
  std::shared_ptr<const std::string> file_;
  const YamlBounds& bounds_;
  std::size_t visited_ = 0;
};

}  // namespace

std::string shown(std::string_view text) {
  const std::string line = without_controls(whole_characters(text, 40), '?');
  return text.size() > 40 ? line + "..." : line;
}

std::string YamlPlace::text() const {
  std::string where = line > 0 ? fmt::format("{}:{}", *file, line) : *file;
  if (!path.empty()) where += ": " + path;
  return where;
}

void YamlPlace::refuse(const std::string& what, std::string hint) const {
  reject(fmt::format("{}: {}", text(), what), std::move(hint));
}

const YamlNode* YamlNode::find(std::string_view name) const {
  if (kind != Kind::map) return nullptr;
  const auto found =
      std::find_if(items.begin(), items.end(), [name](const YamlNode& item) { return item.key == name; });
  return found == items.end() ? nullptr : &*found;
}

const YamlNode& YamlNode::at(std::string_view name) const {
  if (const YamlNode* const node = find(name)) return *node;
  place.refuse(fmt::format("the key '{}' is missing", name));
}

const std::string& YamlNode::scalar(std::string_view wanted) const {
  if (kind != Kind::scalar) place.refuse(fmt::format("{} is needed, this is {}", wanted, name_of(kind)));
  return text;
}
std::span<const YamlNode> YamlNode::list(std::string_view wanted) const {
  if (kind != Kind::list) place.refuse(fmt::format("{} is needed, this is {}", wanted, name_of(kind)));
  return items;
}
std::span<const YamlNode> YamlNode::map(std::string_view wanted) const {
  if (kind != Kind::map) place.refuse(fmt::format("{} is needed, this is {}", wanted, name_of(kind)));
  return items;
}

void YamlNode::allow(std::initializer_list<std::string_view> known) const {
  for (const YamlNode& item : items) {
    if (std::find(known.begin(), known.end(), item.key) != known.end()) continue;
    const std::vector<std::string> names(known.begin(), known.end());
    item.place.refuse(fmt::format("unknown key '{}'", shown(item.key)), suggestion(shown(item.key), names));
  }
}

YamlNode parse_yaml(std::string_view text, const std::string& name, const YamlBounds& bounds) {
  if (const std::string_view schema = schemas::at_start(text); !schema.empty())
    reject(fmt::format("{}: is a document of weir ({}) and not a file of settings", name, schema),
           schemas::takers_of(schema));
  Reader reader(name, bounds);
  if (text.size() > bounds.file_bytes)
    reader.place_at(0).refuse(fmt::format("{} bytes; {} at most are read", text.size(), bounds.file_bytes));
  if (text.find('\0') != std::string_view::npos) reader.place_at(0).refuse("not a text file: it holds a zero byte");
  YAML::Node document;
  try {
    document = YAML::Load(std::string(text));
  } catch (const YAML::Exception& error) {
    reader.place_at(error.mark.line + 1).refuse(fmt::format("not YAML: {}", error.msg), kQuoteHint);
  } catch (const std::exception& error) {
    reader.place_at(0).refuse(fmt::format("not YAML: {}", error.what()), kQuoteHint);
  }
  try {
    YamlNode root = reader.read(document, "", 1, 0);
    if (root.kind == YamlNode::Kind::null) reader.place_at(0).refuse("empty");
    return root;
  } catch (const YAML::Exception& error) {
    reader.place_at(error.mark.line + 1).refuse(fmt::format("not YAML: {}", error.msg), kQuoteHint);
  }
}

}  // namespace weir
