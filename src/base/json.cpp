#include "base/json.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/handle.h"
#include "base/redact.h"

namespace weir {
namespace {

namespace fs = std::filesystem;

struct CloseFile {
  void operator()(int stored) const noexcept { ::close(stored - 1); }
};
// Stored as descriptor + 1, because 0 is both a valid descriptor and the handle's empty value.
using File = Handle<int, CloseFile>;

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
  if (text.empty()) reject(fmt::format("{}: the file is empty", name));
  try {
    return Json::parse(text);
  } catch (const JsonError& error) {
    if (error.byte == 0) reject(fmt::format("{}: {}", name, error.what()));
    const bool is_cut = error.byte > text.size();
    const bool has_nan = text.find("NaN") != std::string_view::npos || text.find("Infinity") != std::string_view::npos;
    reject(fmt::format("{}: {} at {}", name, is_cut ? "the JSON ends too early (truncated file?)" : "not valid JSON",
                       position_of(text, error.byte)),
           has_nan ? "NaN and Infinity are not JSON; write null instead." : "");
  }
}

Json read_json(const fs::path& path) {
  std::error_code status;
  if (fs::is_directory(path, status)) reject(fmt::format("{}: is a folder, not a JSON file", path.string()));
  std::ifstream file(path, std::ios::binary);
  if (!file) reject(fmt::format("{}: {}", path.string(), std::strerror(errno)), "Check the path.");
  std::ostringstream content;
  content << file.rdbuf();
  Json json = parse_json(std::move(content).str(), path.string());
  redact(json);
  return json;
}

std::string to_text(const Json& json) {
  if (!has_secrets(json)) return json.dump(1) + "\n";
  Json clean = json;
  redact(clean);
  return clean.dump(1) + "\n";
}

void check_writable(const fs::path& path, bool overwrite) {
  std::error_code status;
  if (fs::is_directory(path, status)) reject(fmt::format("{}: is a folder", path.string()), "Name a file in it.");
  if (fs::exists(path, status) && !overwrite)
    reject(fmt::format("{}: exists already", path.string()), "Use --force to replace it, or choose another name.");
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (!fs::is_directory(folder, status))
    reject(fmt::format("{}: the folder {} does not exist", path.string(), folder.string()), "Create it first.");
  if (::access(folder.c_str(), W_OK) != 0)
    reject(fmt::format("{}: cannot write into {}: {}", path.string(), folder.string(), std::strerror(errno)));
}

void write_file(const fs::path& path, std::string_view text, bool overwrite) {
  check_writable(path, overwrite);
  const std::string temporary = fmt::format("{}.{}.tmp", path.string(), ::getpid());
  const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) reject(fmt::format("{}: {}", temporary, std::strerror(errno)));
  File file(descriptor + 1);
  const auto give_up = [&](const char* doing) {
    const int reason = errno;
    ::unlink(temporary.c_str());
    fail(fmt::format("{}: cannot {}: {}", path.string(), doing, std::strerror(reason)));
  };
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(descriptor, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) give_up("write");
    done += static_cast<std::size_t>(written);
  }
  // A result that survived `rename` must also survive a power failure.
  if (::fsync(descriptor) != 0) give_up("flush");
  file.reset();
  if (overwrite) {
    if (::rename(temporary.c_str(), path.c_str()) != 0) give_up("rename");
  } else {
    // link() refuses an existing name atomically, which rename() does not.
    if (::link(temporary.c_str(), path.c_str()) != 0) {
      if (errno == EEXIST) {
        ::unlink(temporary.c_str());
        reject(fmt::format("{}: exists already", path.string()), "Use --force to replace it, or choose another name.");
      }
      if (::rename(temporary.c_str(), path.c_str()) != 0) give_up("rename");
      return;
    }
    ::unlink(temporary.c_str());
  }
}

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
