#include "base/json.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "base/redact.h"
#include "base/upgrade.h"

namespace weir {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWriteAnew =
    "The program that wrote it was killed, or still runs. Run it again: `weir run WORKLOAD -o FILE --force` and others "
    "write files whole or not at all.";

std::string position_of(std::string_view text, std::size_t byte) {
  std::size_t line = 1;
  std::size_t column = 1;
  for (std::size_t i = 0; i + 1 < byte && i < text.size(); ++i) {
    if (text[i] == '\n') {
      ++line;
      column = 1;
    } else {
      ++column;
    }
  }
  return fmt::format("line {}, column {}", line, column);
}

}  // namespace

Json parse_json(std::string_view text, const std::string& name) {
  if (text.empty()) reject(fmt::format("{}: the file is empty", name), kWriteAnew);
  try {
    return Json::parse(text);
  } catch (const JsonError& error) {
    if (error.byte == 0) reject(fmt::format("{}: {}", name, error.what()));
    const bool is_cut = error.byte > text.size();
    const bool has_nan = text.find("NaN") != std::string_view::npos || text.find("Infinity") != std::string_view::npos;
    reject(fmt::format("{}: {} at {}", name, is_cut ? "the JSON ends too early (truncated file?)" : "not valid JSON",
                       position_of(text, error.byte)),
           has_nan  ? "NaN and Infinity are not JSON; write null instead."
           : is_cut ? kWriteAnew
                    : "Name a document that weir wrote, for example with `weir run WORKLOAD -o result.json`.");
  }
}

Json read_json(const fs::path& path) {
  Json json = read_json_as_written(path);
  upgrade(json);
  return json;
}

Json read_json_as_written(const fs::path& path) {
  Json json = parse_json(read_file(path), path.string());
  redact(json);
  return json;
}

namespace {

std::string written(const Json& json, int indent) {
  if (!has_secrets(json)) return json.dump(indent) + "\n";
  Json clean = json;
  redact(clean);
  return clean.dump(indent) + "\n";
}

}  // namespace

std::string to_text(const Json& json) { return written(json, 1); }
std::string to_line(const Json& json) { return written(json, -1); }

Json number_or_null(std::optional<double> value) {
  if (!value || !std::isfinite(*value)) return nullptr;
  return *value;
}

Json text_or_null(std::string_view text) { return text.empty() ? Json() : Json(text); }

Json time_or_null(std::int64_t ns) { return ns == INT64_MIN ? Json() : Json(ns); }

const Json& member(const Json& json, std::string_view name) {
  static const Json kNull;
  return json.is_object() ? json[name] : kNull;
}

const Json& at_path(const Json& json, JsonPath path) {
  const Json* here = &json;
  for (const char* name : path) here = &member(*here, name);
  return *here;
}

}  // namespace weir
