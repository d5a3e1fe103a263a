#include "amd/log/log_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "amd/log/log_blocks.h"
#include "amd/log/log_digest.h"
#include "amd/log/log_settings.h"
#include "base/error.h"
#include "trace/import/byte_source.h"

namespace weir::amd {
namespace {

constexpr std::uint64_t kSniffedBytes = 64 << 20;  // stop here if a binary file has had no record so far

// Text contains color codes, but few other control characters.
bool looks_binary(std::string_view text) {
  text = text.substr(0, 65'536);
  const auto odd = std::count_if(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\x1b';
  });
  return static_cast<std::size_t>(odd) * 20 > text.size();
}

[[noreturn]] void reject_file(const std::string& name, bool is_binary) {
  reject(fmt::format("{}: {}", name,
                     is_binary ? "a binary file, not a log of ROCm's runtime"
                               : "no line of it is a line of ROCm's runtime log"),
         fmt::format("Run the program with {} AMD_LOG_LEVEL_FILE=FILE and read FILE; `weir amd capture` does that.",
                     kQueueLogSettings));
}

// The last stage for all blocks, in file order.
class Intake {
 public:
  Intake(const std::string& name, LogSink& sink) : name_(name), digest_(sink) {}

  void take(const LogBlock& block) {
    sniff(block.text);
    digest_.digest(block.text, block.scanned);
    if (block.has_long_line || block.has_cut_line) sniff(block.unread);
    if (block.has_long_line) take_long_line(block.unread.starts_with('\0'));
    if (block.has_cut_line) lose_line("the last line has no end: it was not read");
    if (is_binary_ && bytes_ > kSniffedBytes && digest_.reading().records == 0) reject_file(name_, true);
  }
  void sniff(std::string_view text) {
    if (bytes_ == 0) is_binary_ = looks_binary(text);
    bytes_ += text.size();
  }
  void take_long_line(bool is_hole) {
    lose_line(is_hole ? "NUL bytes: the file was truncated while it was written" : "a line is longer than 64 KiB");
  }
  LogReading finish(std::uint64_t bytes, const std::string& problem, bool is_whole) {
    LogReading reading = digest_.finish();
    reading.bytes = bytes;
    reading.problem = problem;
    if (reading.records == 0 && is_whole) reject_file(name_, is_binary_);
    return reading;
  }

 private:
  std::string name_;
  LogDigest digest_;
  std::uint64_t bytes_ = 0;
  bool is_binary_ = false;

  void lose_line(const std::string& reason) {
    ScannedBlock lost;
    lost.lines = 1;
    digest_.unread(reason, 1, digest_.reading().lines + 1);
    digest_.digest({}, lost);
  }
};

// Blocks of a file, scanned by several threads and consumed in order by the caller's thread, which also scans while the
// next block is not ready. A ring of blocks bounds the work in flight.
class BlockRing {
 public:
  BlockRing(const LogFile& file, bool wants_calls, unsigned threads)
      : file_(file), wants_calls_(wants_calls), scanner_(wants_calls), slots_(2 * threads + 2) {
    try {
      for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      // With fewer threads, or none, the caller's thread scans the rest.
    }
  }
  ~BlockRing() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  // The block is valid until release().
  const LogBlock& next() {
    std::unique_lock lock(mutex_);
    for (;;) {
      Slot& slot = slots_[taken_ % slots_.size()];
      if (claimed_ > taken_ && slot.is_ready) {
        if (slot.failure) std::rethrow_exception(slot.failure);
        return slot.block;
      }
      if (can_claim())
        scan_one(lock, scanner_);
      else
        changed_.wait(lock);
    }
  }
  void release() {
    {
      const std::lock_guard lock(mutex_);
      slots_[taken_ % slots_.size()].is_ready = false;
      ++taken_;
    }
    changed_.notify_all();
  }

 private:
  struct Slot {
    LogBlock block;
    bool is_ready = false;
    std::exception_ptr failure;
  };

  const LogFile& file_;
  const bool wants_calls_;
  LineScanner scanner_;  // of the caller's thread
  std::mutex mutex_;     // guards everything below except the blocks, which belong to the thread that claimed them
  std::condition_variable changed_;
  std::vector<Slot> slots_;
  std::uint64_t claimed_ = 0, taken_ = 0;
  bool is_over_ = false;
  // Scanners must outlive the blocks, which point to their names.
  std::vector<std::unique_ptr<LineScanner>> scanners_;
  std::vector<std::thread> threads_;

  bool can_claim() const { return claimed_ < file_.blocks() && claimed_ < taken_ + slots_.size(); }

  void scan_one(std::unique_lock<std::mutex>& lock, LineScanner& scanner) {
    const std::uint64_t index = claimed_++;
    Slot& slot = slots_[index % slots_.size()];
    lock.unlock();
    std::exception_ptr failure;
    try {
      file_.read(index, slot.block);
      scanner.scan(slot.block.text, slot.block.scanned);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    slot.failure = failure;
    slot.is_ready = true;
    changed_.notify_all();
  }

  void work() {
    std::unique_lock lock(mutex_);
    LineScanner& scanner = *scanners_.emplace_back(std::make_unique<LineScanner>(wants_calls_));
    while (!is_over_) {
      if (can_claim())
        scan_one(lock, scanner);
      else
        changed_.wait(lock);
    }
  }
};

// More than three threads beside the caller would wait for it: it consumes blocks about three times as fast as one
// scanner produces them.
unsigned threads_for(const LogFile& file, const LogOptions& options) {
  if (options.threads != 0) return options.threads - 1;
  if (file.blocks() < 32) return 0;
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  return std::min(cores - 1, 3u);
}

LogReading read_blocks(const LogFile& file, const std::string& name, LogSink& sink, const LogOptions& options) {
  Intake intake(name, sink);
  BlockRing ring(file, sink.wants_calls(), threads_for(file, options));
  std::uint64_t block = 0;
  for (; block < file.blocks() && !is_stopped(options.stop); ++block) {
    intake.take(ring.next());
    ring.release();
  }
  return intake.finish(file.size(), {}, block == file.blocks());
}

LogReading read_stream(ByteSource& source, const std::string& name, LogSink& sink, const LogOptions& options) {
  Intake intake(name, sink);
  LineScanner scanner(sink.wants_calls());
  LogBlock block;
  block.bytes.resize(kMargin + LogFile::kBlock + kMargin);
  char* const data = block.bytes.data() + kMargin;
  std::size_t held = 0;  // bytes of a line whose end has not been read yet
  bool is_long = false, is_hole = false, is_whole = true;
  for (;;) {
    if (is_stopped(options.stop)) {
      is_whole = false;
      break;
    }
    const std::size_t got = source.read(data + held, LogFile::kBlock - held);
    if (got == 0) break;
    std::size_t begin = 0, size = held + got;
    held = 0;
    if (is_long) {
      const void* const end = std::memchr(data, '\n', size);
      if (end == nullptr) continue;
      begin = static_cast<std::size_t>(static_cast<const char*>(end) - data) + 1;
      intake.take_long_line(is_hole);
      is_long = false;
    }
    std::size_t end = size;
    while (end > begin && data[end - 1] != '\n') --end;
    block.text = {data + begin, end - begin};
    scanner.scan(block.text, block.scanned);
    intake.take(block);
    held = size - end;
    if (held > kLongestLine) {
      is_long = true;
      is_hole = data[end] == '\0';
      intake.sniff({data + end, held});
      held = 0;
    } else {
      std::memmove(data, data + end, held);
    }
  }
  if (is_whole && is_long) intake.take_long_line(is_hole);
  if (is_whole && held > 0) {
    block.text = {};
    block.unread = {data, held};
    block.scanned.clear();
    block.has_cut_line = true;
    intake.take(block);
  }
  return intake.finish(source.position(), source.problem(), is_whole);
}

}  // namespace

LogReading read_log(const std::filesystem::path& path, LogSink& sink, const LogOptions& options) {
  // Rejects a file that is missing, empty, a folder or unreadable, and decompresses.
  const auto source = open_bytes(path);
  const LogFile file(path);
  return file.is_open() ? read_blocks(file, path.string(), sink, options)
                        : read_stream(*source, path.string(), sink, options);
}

LogReading read_log_text(std::string_view text, const std::string& name, LogSink& sink, const LogOptions& options) {
  const auto source = bytes_of(text);
  return read_stream(*source, name, sink, options);
}

}  // namespace weir::amd
