// Writes Weir's own captures (trace/capture_format.h). Runs inside other people's programs, so it needs only the
// standard library, throws nothing, and counts lost records after a failed write. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/capture_format.h"

namespace weir {

class CaptureWriter {
 public:
  // Takes ownership of `descriptor`. Records beyond `limit_bytes` are counted as lost.
  explicit CaptureWriter(int descriptor, std::uint64_t limit_bytes = UINT64_MAX) noexcept;
  // Writes pending records and the end block.
  ~CaptureWriter();
  CaptureWriter(const CaptureWriter&) = delete;
  CaptureWriter& operator=(const CaptureWriter&) = delete;

  void process(const capture::ProcessFacts& facts, std::string_view clock,
               const std::vector<std::string>& words) noexcept;
  void device(std::uint32_t device, std::string_view name) noexcept;
  void message(std::string_view text) noexcept;
  void lost(std::uint64_t records, std::string_view reason) noexcept;
  // Gives equal texts the same number, for use in records; capture::kNone where there is no memory.
  std::uint32_t name(std::string_view text) noexcept;

  void add(const capture::KernelRecord& record) noexcept { put(kernels_, record); }
  void add(const capture::CopyRecord& record) noexcept { put(copies_, record); }
  void add(const capture::CallRecord& record) noexcept { put(calls_, record); }
  void add(const capture::SyncRecord& record) noexcept { put(syncs_, record); }
  void add(const capture::EventRecord& record) noexcept { put(events_, record); }
  void add(const capture::MarkerRecord& record) noexcept { put(markers_, record); }
  void add(const capture::ContextRecord& record) noexcept { put(contexts_, record); }

  // Writes all pending records.
  void flush() noexcept;
  // Like flush(), then writes the end block. Everything added later is lost.
  void finish(std::int64_t ended_ns) noexcept;
  // In a child after fork(): discards everything without writing, because the file belongs to the parent.
  void abandon() noexcept;

  std::uint64_t lost_records() const noexcept { return lost_; }
  // 0, or the errno of the write that failed.
  int error() const noexcept { return error_ != 0 ? error_ : failed_; }

 private:
  // Records of one kind, waiting to be written as one block.
  struct Pending {
    capture::Block type;
    std::uint32_t record_bytes;
    std::vector<char> bytes = {};
  };

  template <class Record>
  void put(Pending& to, const Record& record) noexcept {
    append(to, &record);
  }
  void append(Pending& to, const void* record) noexcept;
  void block(capture::Block type, const void* facts, std::size_t size, std::string_view text) noexcept;
  void write_pending(Pending& pending) noexcept;
  bool write_all(const void* bytes, std::size_t size) noexcept;
  void write_lost() noexcept;

  int descriptor_;
  std::uint64_t limit_;
  std::uint64_t written_ = 0;
  std::uint64_t whole_ = 0;       // part of these, up to the end of the last successful write
  std::uint64_t lost_ = 0;        // for any reason
  std::uint64_t unreported_ = 0;  // part of these: beyond the limit and not yet reported in the file
  std::uint64_t unwritten_ = 0;   // part of lost_: because a write had failed
  int error_ = 0;                 // of the failed write; nothing more is written after it
  int failed_ = 0;                // the same, after the end block was attempted in spite of it
  std::vector<char> texts_;       // whole blocks, written before any record that may need them
  std::unordered_map<std::string, std::uint32_t> names_;
  Pending kernels_{capture::Block::kernels, sizeof(capture::KernelRecord)};
  Pending copies_{capture::Block::copies, sizeof(capture::CopyRecord)};
  Pending calls_{capture::Block::calls, sizeof(capture::CallRecord)};
  Pending syncs_{capture::Block::syncs, sizeof(capture::SyncRecord)};
  Pending events_{capture::Block::events, sizeof(capture::EventRecord)};
  Pending markers_{capture::Block::markers, sizeof(capture::MarkerRecord)};
  Pending contexts_{capture::Block::contexts, sizeof(capture::ContextRecord)};
};

}  // namespace weir
