#include "base/redact.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/secrets.h"

namespace weir {
namespace {

bool is_path_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

// Rewrites the texts of a document, or only finds out whether it would, if the document is const.
template <class Document>
class Visit {
 public:
  // True if something differs.
  bool all(Document& json) {
    bool is_changed = false;
    for (auto& member : json.items()) {
      auto& value = member.value;
      const std::string_view name = member.name;
      if (name == "command_line" || name == "command" || name == "commands" || name == "arguments")
        is_changed |= command(value);
      else if (name == "variables" || name == "environment")
        is_changed |= variables(value);
      if (is_done(is_changed)) return true;
      is_changed |= all(value);
      if (is_done(is_changed)) return true;
    }
    is_changed |= named_value(json);
    if (json.is_array())
      for (auto& element : json) {
        is_changed |= all(element);
        if (is_done(is_changed)) return true;
      }
    return is_changed;
  }

 private:
  static bool is_done(bool is_changed) { return is_changed && std::is_const_v<Document>; }

  bool put(Document& json, std::string text) {
    if (json.string() == text) return false;
    if constexpr (!std::is_const_v<Document>) json = Json(std::move(text));
    return true;
  }

  // "weir run x", ["weir", "run"], or a list of either.
  bool command(Document& json) {
    if (json.is_string()) return put(json, recorded_text(json.string()));
    if (!json.is_array() || json.empty() || !(json[0].is_string() || json[0].is_array())) return false;
    bool is_changed = false;
    std::vector<std::string> words;
    for (auto& element : json) {
      if (element.is_array()) is_changed |= command(element);
      words.push_back(element.is_string() ? element.string() : std::string());
    }
    words = recorded_command(std::move(words));
    std::size_t i = 0;
    for (auto& element : json) {
      if (element.is_string()) is_changed |= put(element, words[i]);
      ++i;
    }
    return is_changed;
  }

  // {"NAME": "value"}, or [["NAME", "value"]]; lists of {"name", "value"} are found anywhere.
  bool variables(Document& json) {
    bool is_changed = false;
    for (auto& member : json.items())
      if (member.value.is_string()) is_changed |= put(member.value, recorded_value(member.name, member.value.string()));
    if (json.is_array())
      for (auto& element : json)
        if (element.is_array() && element.size() == 2 && element[0].is_string() && element[1].is_string())
          is_changed |= put(element[1], recorded_value(element[0].string(), element[1].string()));
    return is_changed;
  }

  // {"name": "NAME", "value": "x", "values": ["x"]}
  bool named_value(Document& json) {
    if (!json.is_object()) return false;
    const Json& name = std::as_const(json)["name"];
    // A factor of `weir try` may be the command itself.
    if (!name.is_string() || !(is_secret_name(name.string()) || name.string() == "command")) return false;
    bool is_changed = false;
    for (auto& member : json.items()) {
      if (member.name != "value" && member.name != "first_value" && member.name != "values") continue;
      if (member.value.is_string())
        is_changed |= put(member.value, recorded_value(name.string(), member.value.string()));
      if (member.value.is_array())
        for (auto& element : member.value)
          if (element.is_string()) is_changed |= put(element, recorded_value(name.string(), element.string()));
    }
    return is_changed;
  }
};

// /home/NAME, /Users/NAME, /root, and `home`, where a path begins.
std::string without_homes(std::string_view text, std::string_view home) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    // -I/home/ann and file:///home/ann begin one, x/home/ann does not.
    const std::string_view before = text.substr(at < 2 ? 0 : at - 2, std::min<std::size_t>(at, 2));
    const bool is_begin = at == 0 || before == "-I" || before == "-L" || before == "//" ||
                          (!is_path_name(text[at - 1]) && text[at - 1] != '/' && text[at - 1] != '~');
    const std::string_view rest = text.substr(at);
    std::size_t size = 0;
    if (is_begin && text[at] == '/') {
      if (home.size() > 1 && home.front() == '/' && rest.starts_with(home)) size = home.size();
      for (const std::string_view parent : {"/home/", "/Users/"})
        if (size == 0 && rest.starts_with(parent) &&
            is_path_name(rest.size() > parent.size() ? rest[parent.size()] : ' '))
          for (size = parent.size(); size < rest.size() && is_path_name(rest[size]);) ++size;
      if (size == 0 && rest.starts_with("/root")) size = 5;
      if (size < rest.size() && is_path_name(rest[size])) size = 0;
    }
    result += size > 0 ? '~' : text[at];
    at += std::max<std::size_t>(size, 1);
  }
  return result;
}

void shorten_homes(Json& json, std::string_view home) {
  if (json.is_string() && json.string().find('/') != std::string::npos) {
    json.string() = without_homes(json.string(), home);
  } else if (json.is_structured()) {
    for (Json& each : json) shorten_homes(each, home);
  }
}

}  // namespace

void redact(Json& document) { Visit<Json>().all(document); }

bool has_secrets(const Json& document) { return Visit<const Json>().all(document); }

void make_shareable(Json& document, std::string_view home) {
  redact(document);
  shorten_homes(document, home);
}

}  // namespace weir
