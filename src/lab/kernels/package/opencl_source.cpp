#include "lab/kernels/package/opencl_source.h"

#include <fmt/format.h>

namespace weir::package {
namespace {

// #include "weir/device.h"
//   # include <weir/kernel.h>  // comment
bool includes_ours(std::string_view line) {
  const auto skip = [&](std::string_view what) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (!line.starts_with(what)) return false;
    line.remove_prefix(what.size());
    return true;
  };
  return skip("#") && skip("include") && (skip("\"weir/") || skip("<weir/"));
}

void append(std::string& to, std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!includes_ours(line)) to += line;
    to += '\n';
  }
}

}  // namespace

std::string opencl_text(std::span<const EmbeddedHeader> headers, std::string_view name, std::string_view source) {
  std::string text;
  for (const std::string_view wanted : {"kernel.h", "device.h"}) {
    for (const EmbeddedHeader& header : headers) {
      if (!header.name.ends_with(wanted)) continue;
      text += fmt::format("#line 1 \"weir/{}\"\n", wanted);
      append(text, header.text);
    }
  }
  // The name is quoted there; characters that would end the quote or begin an escape are dropped.
  std::string plain;
  for (const char each : name)
    if (each != '"' && each != '\\' && static_cast<unsigned char>(each) >= ' ') plain += each;
  text += fmt::format("#line 1 \"{}\"\n", plain);
  append(text, source);
  return text;
}

}  // namespace weir::package
