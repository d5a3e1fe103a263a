#include "trace/import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "base/error.h"
#include "trace/list.h"

namespace weir {
namespace {

const Importer& importer_of(const std::string& format) {
  std::vector<std::string_view> names;
  for (const Importer& importer : importers()) {
    if (format == importer.name) return importer;
    names.push_back(importer.name);
  }
  reject(fmt::format("--format {}: no such trace format", format), fmt::format("Known: {}.", fmt::join(names, ", ")));
}

const Importer* sniff(std::string_view start) {
  for (const Importer& importer : importers())
    if (importer.sniff(start)) return &importer;
  return nullptr;
}

[[noreturn]] void reject_unknown(const std::string& name, std::string_view start) {
  std::vector<std::string> formats;
  for (const Importer& importer : importers())
    formats.push_back(fmt::format("{} ({})", importer.name, importer.summary));
  std::string seen;
  for (const char c : start.substr(0, 24)) {
    const auto byte = static_cast<unsigned char>(c);
    seen += std::isprint(byte) != 0 ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
  }
  reject(fmt::format("{}: is no trace that weir knows; it begins with \"{}\"", name, seen),
         fmt::format("Formats: {}. --format names one where the file's beginning does not tell.",
                     fmt::join(formats, "; ")));
}

// Everything that goes into one builder.
class Capture {
 public:
  explicit Capture(const ImportOptions& options) : options_(options), builder_(options.limits) {}

  void read(const std::filesystem::path& path, ByteSource& bytes) {
    const std::string name = path.string();
    if (TarReader::sniff(bytes.peek(kSniffBytes))) return read_archive(name, bytes);
    // Importers that need the file itself (SQLite) get it where it is not packed.
    std::error_code ignored;
    const bool is_packed = path.extension() == ".gz" || path.extension() == ".tgz";
    read_one(name, is_packed || !std::filesystem::is_regular_file(path, ignored) ? std::filesystem::path() : path,
             bytes);
  }

  ImportedTrace finish() { return {std::move(files_), builder_.finish()}; }

  void read_one(const std::string& name, const std::filesystem::path& path, ByteSource& bytes) {
    const std::string_view start = bytes.peek(kSniffBytes);
    if (start.empty()) reject(fmt::format("{}: is empty", name));
    const Importer* const importer = options_.format.empty() ? sniff(start) : &importer_of(options_.format);
    if (importer == nullptr) reject_unknown(name, start);
    const bool is_part = importer->capture_of != nullptr && !files_.empty() && files_.back().format == importer->name;
    if (!is_part) process_ = builder_.add_process(static_cast<int>(files_.size()), name);
    builder_.begin_file(name);
    importer->read({name, path, &bytes, process_, options_.progress}, builder_);
    if (const std::string problem = bytes.problem(); !problem.empty()) builder_.drop(problem, bytes.position());
    std::error_code ignored;
    std::uint64_t size = bytes.position();
    if (!path.empty()) size = std::max<std::uint64_t>(size, std::filesystem::file_size(path, ignored));
    files_.push_back({name, importer->name, size});
  }

 private:
  void read_archive(const std::string& name, ByteSource& bytes) {
    TarReader archive(bytes);
    std::string member;
    std::size_t read = 0;
    while (ByteSource* const found = archive.next(&member)) {
      const std::string full = name + "/" + member;
      const std::string_view start = found->peek(kSniffBytes);
      // Archives hold notes and scripts too; a format that was asked for is taken at its word.
      if (start.empty() || (options_.format.empty() && sniff(start) == nullptr)) {
        builder_.begin_file(full);
        builder_.drop("member of the archive that is no trace", 0);
        continue;
      }
      read_one(full, {}, *found);
      ++read;
    }
    if (!archive.problem().empty()) builder_.drop(archive.problem(), bytes.position());
    if (read == 0) reject(fmt::format("{}: the archive has no trace in it", name));
  }

  const ImportOptions& options_;
  TimelineBuilder builder_;
  std::vector<ImportedFile> files_;
  std::uint16_t process_ = 0;
};

}  // namespace

std::vector<ImportedTrace> import_traces(const std::vector<std::filesystem::path>& paths,
                                         const ImportOptions& options) {
  // Parts of one capture go into one builder, in the order in which they were named.
  std::vector<std::unique_ptr<Capture>> captures;
  std::map<std::string, Capture*> parts;
  for (const std::filesystem::path& path : paths) {
    const auto bytes = open_bytes(path);
    const Importer* const importer =
        options.format.empty() ? sniff(bytes->peek(kSniffBytes)) : &importer_of(options.format);
    Capture* capture = nullptr;
    std::string key;
    if (importer != nullptr && importer->capture_of != nullptr) {
      key = std::string(importer->name) + "\n" + importer->capture_of(path);
      if (const auto found = parts.find(key); found != parts.end()) capture = found->second;
    }
    if (capture == nullptr) {
      captures.push_back(std::make_unique<Capture>(options));
      capture = captures.back().get();
      if (!key.empty()) parts.emplace(key, capture);
    }
    capture->read(path, *bytes);
  }
  std::vector<ImportedTrace> traces;
  for (const auto& capture : captures) traces.push_back(capture->finish());
  return traces;
}

ImportedTrace import_memory(std::string_view text, const std::string& name, const ImportOptions& options) {
  Capture capture(options);
  const auto bytes = bytes_of(text);
  capture.read_one(name, {}, *bytes);
  return capture.finish();
}

}  // namespace weir
