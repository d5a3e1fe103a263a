#include "cli/trace_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/options.h"
#include "cli/document_output.h"
#include "trace/import/byte_source.h"
#include "trace/import/importer.h"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFolderFiles = 100'000;
constexpr std::size_t kMaxPassedOver = 3;  // named in a note

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The digits at the start of `text`, without leading zeros.
std::string_view take_number(std::string_view& text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  std::string_view digits = text.substr(0, end);
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  text.remove_prefix(end);
  return digits;
}

// rank2.json before rank10.json.
bool is_naturally_less(std::string_view a, std::string_view b) {
  const std::string_view whole_a = a, whole_b = b;
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      const std::string_view first = take_number(a), second = take_number(b);
      if (first.size() != second.size()) return first.size() < second.size();
      if (first != second) return first < second;
      continue;
    }
    if (a.front() != b.front()) return a.front() < b.front();
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  // rank01 and rank1 differ although their numbers do not.
  return a.empty() && b.empty() ? whole_a < whole_b : a.empty() && !b.empty();
}

bool is_trace(const fs::path& path, const ImportOptions& import) {
  std::error_code ignored;
  if (fs::file_size(path, ignored) == 0) return false;
  return !import.format.empty() || looks_like_trace(open_bytes(path)->peek(kSniffBytes));
}

std::vector<fs::path> trace_candidates(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code status;
  for (fs::directory_iterator at(folder, status); !status && at != fs::directory_iterator(); at.increment(status)) {
    std::error_code ignored;
    if (at->path().filename().string().starts_with(".") || !at->is_regular_file(ignored)) continue;
    files.push_back(at->path());
    if (files.size() > kMaxFolderFiles)
      reject(fmt::format("{}: has more than {} files", folder.string(), kMaxFolderFiles), "Name the traces in it.");
  }
  if (status) reject(fmt::format("{}: {}", folder.string(), status.message()));
  std::sort(files.begin(), files.end(), [](const fs::path& a, const fs::path& b) {
    return is_naturally_less(a.filename().string(), b.filename().string());
  });
  return files;
}

}  // namespace

std::vector<fs::path> trace_files(const std::vector<std::string>& typed, const ImportOptions& import,
                                  std::vector<std::string>& notes) {
  std::vector<fs::path> files;
  for (const std::string& each : typed) {
    std::error_code ignored;
    if (!fs::is_directory(each, ignored)) {
      files.emplace_back(input_path(each));
      continue;
    }
    std::size_t traces = 0, others = 0;
    std::string named;
    for (const fs::path& path : trace_candidates(each)) {
      if (import.progress) import.progress();
      if (is_trace(path, import)) {
        files.push_back(path);
        ++traces;
      } else if (++others <= kMaxPassedOver) {
        named += (named.empty() ? "" : ", ") + path.filename().string();
      }
    }
    if (traces == 0)
      reject(fmt::format("{}: there is no trace directly in this folder{}", each,
                         others > 0 ? fmt::format("; {} of its files are something else", others) : ""),
             "Name the folder that the traces lie in, or the traces.");
    if (others > 0)
      notes.push_back(fmt::format("{}: {} file{} passed over, not recognised as traces: {}{}", each, others,
                                  others == 1 ? " was" : "s were", named, others > kMaxPassedOver ? ", ..." : ""));
  }
  return files;
}

// No path has a zero byte in it: bytes, then the paths, then an empty text, each ended by one.
std::vector<CaptureFiles> broadcast_captures(Communicator& ranks, const std::vector<CaptureFiles>& found) {
  std::string text;
  for (const CaptureFiles& capture : found) {
    text += std::to_string(capture.bytes) + '\0';
    for (const fs::path& path : capture.paths) text += path.string() + '\0';
    text += '\0';
  }
  text = broadcast_text(ranks, std::move(text));
  std::vector<CaptureFiles> captures;
  bool is_new = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\0', at), text.size());
    const std::string part = text.substr(at, end - at);
    at = end + 1;
    if (is_new)
      captures.push_back({{}, static_cast<std::uint64_t>(parse_integer(part).value_or(0))});
    else if (!part.empty())
      captures.back().paths.emplace_back(part);
    is_new = !is_new && part.empty();
  }
  return captures;
}

}  // namespace weir::cli
