#include "trace/import/import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <new>
#include <stdexcept>

#include "base/error.h"
#include "base/options.h"
#include "base/schemas.h"
#include "trace/import/archive.h"
#include "trace/import/list.h"

namespace weir {
namespace {

const Importer& importer_of(const std::string& format) {
  std::vector<std::string> names;
  for (const Importer& importer : importers()) {
    if (format == importer.name) return importer;
    names.emplace_back(importer.name);
  }
  reject_setting("input_format", format, "unknown trace format", suggestion(format, names));
}

const Importer* importer_for(std::string_view start) {
  for (const Importer& importer : importers())
    if (importer.sniff(start)) return &importer;
  return nullptr;
}

[[noreturn]] void reject_unknown(const std::string& name, std::string_view start) {
  if (const std::string_view schema = schemas::at_start(start); !schema.empty())
    reject(fmt::format("{}: is a document of weir ({}) and not a trace", name, schema), schemas::takers_of(schema));
  std::string seen;
  for (const char c : start.substr(0, 24)) {
    const auto byte = static_cast<unsigned char>(c);
    seen += std::isprint(byte) != 0 ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
  }
  reject(fmt::format("{}: not a recognised trace; it begins with \"{}\"", name, seen),
         "Name a trace of PyTorch's profiler, rocprofv3, JAX, Nsight Systems (nsys export --type sqlite) or `weir "
         "profile`. "
         "`weir analyze --help` lists the formats; --input-format NAME reads the file as one of them.");
}

[[noreturn]] void reject_memory(const std::string& name) {
  reject(fmt::format("{}: this machine does not have enough memory left to read it", name),
         "Trace a shorter stretch, or lower --memory to find out earlier.");
}

constexpr std::size_t kMaxNameInNote = 80;

// Says which kernels count as compute although their names speak of communication, and which patterns found nothing.
void note_names(const ImportOptions& options, Timeline& timeline) {
  std::vector<bool> is_kernel(timeline.names.size(), false), is_command(timeline.names.size(), false);
  for (const Span& span : timeline.spans) {
    if (span.name >= is_command.size()) continue;
    is_command[span.name] = true;
    if (span.kind == SpanKind::kernel) is_kernel[span.name] = true;
  }
  std::size_t count = 0;
  std::string first;
  for (std::size_t i = 0; i < timeline.names.size(); ++i)
    if (is_kernel[i] && looks_like_collective(timeline.names[i]) && ++count == 1) first = timeline.names[i];
  if (count > 0)
    timeline.notes.push_back(
        fmt::format("{} of the kernels' names look like communication but count as compute, for example '{}'. If they "
                    "communicate, add --collective with a part of the name.",
                    count, first.size() > kMaxNameInNote ? first.substr(0, kMaxNameInNote) + "..." : first));
  for (const std::string& pattern : options.collectives) {
    bool is_found = false;
    for (std::size_t i = 0; i < timeline.names.size() && !is_found; ++i)
      is_found = is_command[i] && matches_pattern(pattern, timeline.names[i]);
    if (!is_found) timeline.notes.push_back(fmt::format("--collective {}: no command has such a name.", pattern));
  }
}

// Everything that goes into one builder.
class Capture {
 public:
  explicit Capture(const ImportOptions& options)
      : options_(options), builder_(options.limits, options.collectives, options.has_operations) {}

  void read(const std::filesystem::path& path, ByteSource& bytes) {
    const std::string name = path.string();
    const std::string_view start = bytes.peek(kSniffBytes);
    if (TarReader::sniff(start)) {
      TarReader archive(bytes);
      return read_archive(name, archive, bytes);
    }
    if (is_zip(start)) return read_archive(name, *zip_members(bytes), bytes);
    // Importers that need the file itself (SQLite) get its path unless it is compressed.
    std::error_code ignored;
    const bool has_file = !bytes.is_unpacked() && std::filesystem::is_regular_file(path, ignored);
    read_one(name, has_file ? path : std::filesystem::path(), bytes);
  }

  std::uint64_t used_bytes() const noexcept { return builder_.used_bytes() - options_.limits.used_bytes; }
  ImportedTrace finish() {
    ImportedTrace made{std::move(files_), builder_.finish()};
    note_names(options_, made.timeline);
    return made;
  }

  void read_one(const std::string& name, const std::filesystem::path& path, ByteSource& bytes) {
    const std::string_view start = bytes.peek(kSniffBytes);
    if (start.empty() && !bytes.problem().empty())
      reject(fmt::format("{}: nothing of it can be read: {}", name, bytes.problem()), "Copy or download it again.");
    if (start.empty()) reject(fmt::format("{}: is empty", name));
    const Importer* const importer = options_.format.empty() ? importer_for(start) : &importer_of(options_.format);
    if (importer == nullptr) reject_unknown(name, start);
    const std::uint16_t process = process_for(*importer, name);
    builder_.begin_file(name);
    importer->read({name, path, &bytes, process, options_.progress}, builder_);
    if (const std::string problem = bytes.problem(); !problem.empty()) builder_.drop(problem, bytes.position());
    std::error_code ignored;
    std::uint64_t size = bytes.position();
    if (!path.empty()) {
      const std::uint64_t whole = std::filesystem::file_size(path, ignored);
      if (!ignored) size = std::max(size, whole);
    }
    files_.push_back({name, importer->name, size});
  }

 private:
  // Files that are parts of one capture belong to one process; an archive may hold several captures.
  std::uint16_t process_for(const Importer& importer, const std::string& name) {
    const auto add = [&] { return builder_.add_process(static_cast<int>(files_.size()), name); };
    if (importer.capture_of == nullptr) return add();
    const std::string key = std::string(importer.name) + "\n" + importer.capture_of(name);
    const auto found = process_of_.find(key);
    return found != process_of_.end() ? found->second : process_of_.emplace(key, add()).first->second;
  }

  void read_archive(const std::string& name, ArchiveMembers& archive, ByteSource& bytes) {
    std::string member;
    std::size_t read = 0, other_files = 0;
    while (ByteSource* const packed = archive.next(&member)) {
      if (options_.progress) options_.progress();
      const std::string full = name + "/" + member;
      const std::unique_ptr<ByteSource> unpacked = unpack(*packed);
      ByteSource& found = unpacked != nullptr ? *unpacked : *packed;
      const std::string_view start = found.peek(kSniffBytes);
      // Archives also hold notes and scripts; if the user named a format, every member is read as that.
      if (start.empty() || (options_.format.empty() && importer_for(start) == nullptr)) {
        if (++other_files == 1) builder_.begin_file(full);
        builder_.drop("member of the archive that is not a trace", 0);
        continue;
      }
      read_one(full, {}, found);
      ++read;
    }
    if (read == 0)
      reject(fmt::format("{}: the archive has no trace in it ({} other files{}{})", name, other_files,
                         archive.problem().empty() ? "" : "; ", archive.problem()),
             "Unpack it and name the trace files.");
    builder_.begin_file(name);
    if (!archive.problem().empty()) builder_.drop(archive.problem(), bytes.position());
    if (!bytes.problem().empty()) builder_.drop(bytes.problem(), bytes.position());
  }

  const ImportOptions options_;
  TimelineBuilder builder_;
  std::vector<ImportedFile> files_;
  std::map<std::string, std::uint16_t> process_of_;  // by what the parts of a capture have in common
};

// Which files are parts of one capture. Captures are numbered in the order of their first files.
class CaptureNumbers {
 public:
  explicit CaptureNumbers(const ImportOptions& options) : options_(options) {}

  std::size_t of(const std::filesystem::path& path, std::string_view start) {
    const Importer* const importer = options_.format.empty() ? importer_for(start) : &importer_of(options_.format);
    if (importer == nullptr || importer->capture_of == nullptr) return count_++;
    Known& known = known_[std::string(importer->name) + "\n" + importer->capture_of(path)];
    // A file that is listed twice is not a second part.
    if (known.paths.empty() || std::find(known.paths.begin(), known.paths.end(), path) != known.paths.end())
      known = {count_++, {}};
    known.paths.push_back(path);
    return known.number;
  }

 private:
  struct Known {
    std::size_t number = 0;
    std::vector<std::filesystem::path> paths;
  };

  const ImportOptions& options_;
  std::size_t count_ = 0;
  std::map<std::string, Known> known_;  // by what the parts of a capture have in common
};

}  // namespace

bool looks_like_trace(std::string_view start) {
  return importer_for(start) != nullptr || TarReader::sniff(start) || is_zip(start);
}

std::vector<CaptureFiles> captures_of(const std::vector<std::filesystem::path>& paths, const ImportOptions& options) {
  CaptureNumbers numbers(options);
  std::vector<CaptureFiles> captures;
  for (const std::filesystem::path& path : paths) {
    const std::size_t number = numbers.of(path, open_bytes(path)->peek(kSniffBytes));
    if (number == captures.size()) captures.emplace_back();
    captures[number].paths.push_back(path);
    std::error_code ignored;
    if (const std::uintmax_t size = std::filesystem::file_size(path, ignored); !ignored) captures[number].bytes += size;
  }
  return captures;
}

std::vector<ImportedTrace> import_traces(const std::vector<std::filesystem::path>& paths,
                                         const ImportOptions& options) {
  // Parts of one capture go into one builder, in the order given.
  CaptureNumbers numbers(options);
  std::vector<std::unique_ptr<Capture>> captures;
  for (const std::filesystem::path& path : paths) {
    const auto bytes = open_bytes(path);
    const std::size_t number = numbers.of(path, bytes->peek(kSniffBytes));
    if (number == captures.size()) {
      ImportOptions own = options;  // the limit applies to all of them together
      for (const auto& other : captures) own.limits.used_bytes += other->used_bytes();
      captures.push_back(std::make_unique<Capture>(own));
    }
    try {
      captures[number]->read(path, *bytes);
    } catch (const std::bad_alloc&) {
      reject_memory(path.string());
    } catch (const std::length_error&) {
      reject_memory(path.string());
    }
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
