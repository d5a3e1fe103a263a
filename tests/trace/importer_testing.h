// Traces from texts and from SQL, and what tests ask of them.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>
#include <weir_build.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "trace/import/import.h"

#if WEIR_HAVE_SQLITE
#include <sqlite3.h>
#endif

namespace weir {

inline Timeline import_as(const char* format, std::string_view text) {
  ImportOptions options;
  options.format = format;
  return import_memory(text, "test", options).timeline;
}

// The format found out.
inline ImportedTrace import_sniffed(std::string_view text) { return import_memory(text, "test", {}); }

inline std::string rejection_of(const char* format, std::string_view text) {
  try {
    import_as(format, text);
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::input);
    return std::string(error.what()) + "\n" + error.hint;
  }
  return "not rejected";
}

inline std::size_t count(const Timeline& timeline, SpanKind kind) {
  std::size_t found = 0;
  for (const Span& span : timeline.spans) found += span.kind == kind ? 1 : 0;
  return found;
}

inline std::uint64_t dropped(const Timeline& timeline, std::string_view reason) {
  for (const Dropped& drop : timeline.dropped)
    if (drop.reason.find(reason) != std::string::npos) return drop.count;
  return 0;
}

inline std::string first_dropped(const Timeline& timeline, std::string_view reason) {
  for (const Dropped& drop : timeline.dropped)
    if (drop.reason.find(reason) != std::string::npos) return drop.first;
  return "none";
}

inline bool has_note(const Timeline& timeline, std::string_view part) {
  for (const std::string& note : timeline.notes)
    if (note.find(part) != std::string::npos) return true;
  return false;
}

inline const std::string& name_of(const Timeline& timeline, const Span& span) { return timeline.names.at(span.name); }

inline std::uint64_t stream_id(const Timeline& timeline, const Span& span) {
  return timeline.streams.at(span.stream).id;
}

inline std::string queue_label(const Timeline& timeline, const Span& span) {
  for (const TraceQueue& queue : timeline.queues)
    if (queue.id == span.queue) return queue.label;
  return "none";
}

// A file of the real captures that tests use where WEIR_REAL_DATA names their folder.
inline std::optional<std::filesystem::path> real_file(const char* name) {
  const char* const folder = std::getenv("WEIR_REAL_DATA");
  if (folder == nullptr) return std::nullopt;
  const std::filesystem::path path = std::filesystem::path(folder) / name;
  return std::filesystem::exists(path) ? std::optional(path) : std::nullopt;
}

class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "weir-trace-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::filesystem::path operator/(const char* name) const { return path_ / name; }
  std::filesystem::path write(const char* name, std::string_view text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

#if WEIR_HAVE_SQLITE
// The bytes of the database that these statements make.
inline std::string database_of(const std::string& sql) {
  sqlite3* database = nullptr;
  sqlite3_open(":memory:", &database);
  char* message = nullptr;
  if (sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &message) != SQLITE_OK)
    throw std::runtime_error(message == nullptr ? "SQL failed" : message);
  sqlite3_int64 size = 0;
  unsigned char* const bytes = sqlite3_serialize(database, "main", &size, 0);
  std::string made(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  sqlite3_free(bytes);
  sqlite3_close(database);
  return made;
}
#endif

}  // namespace weir
