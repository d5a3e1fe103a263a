#include "amd/kfd/mqds.h"

#include <fmt/format.h>

#include <algorithm>

#include "amd/kfd/debugfs_file.h"

namespace weir::kfd {
namespace {

constexpr std::size_t kMostProcesses = 100'000;
constexpr std::size_t kMostQueues = 100'000;  // KFD allows 1,024 of a process
constexpr std::size_t kMostImages = 64;       // of one queue
constexpr std::size_t kComputeWords = 512;
constexpr std::size_t kLargestImage = 4096;  // words

// save_start_time 0x188, save_end_time 0x190, restore_start 0x198, restore_end 0x1a0: 64 bits each.
std::optional<std::uint64_t> ticks(const std::vector<std::uint32_t>& words, std::size_t start_byte) {
  const auto at = [&](std::size_t byte) { return std::uint64_t{words[byte / 4 + 1]} << 32 | words[byte / 4]; };
  const std::uint64_t start = at(start_byte), end = at(start_byte + 8);
  // Zeros: the firmware never saved or restored it.
  if (start == 0 || end == 0 || end < start) return std::nullopt;
  return end - start;
}

class MqdParser {
 public:
  explicit MqdParser(MqdFile& file) : file_(file) {}

  void line(std::string_view text, std::size_t number) {
    HexRow row;
    number_ = number;
    if (parse_hex_row(text, 4, row)) {
      add_row(row);
    } else if (!text.empty() && !is_process(text) && !is_queue(text)) {
      unread_.add("not a line of mqds", number);
    }
  }

  void finish() {
    close_queue();
    file_.unread = unread_.all();
    if (wrong_images_ > 0)
      file_.problems.push_back(fmt::format(
          "{} images of compute queues are not of 2,048 bytes (the first, of the queue at line {}, has {}): "
          "this kernel or chip is not one that we know, and they were left out",
          wrong_images_, wrong_line_, wrong_bytes_));
  }

 private:
  // Process 94314 PASID 94314:
  // Process 94314 PASID 0x8001:
  bool is_process(std::string_view text) {
    Cursor cursor(text);
    MqdProcess process;
    if (!cursor.word("Process ") || !cursor.decimal(process.pid) || !cursor.word(" PASID ")) return false;
    if (cursor.word("0x")) {
      if (!cursor.hex(process.pasid)) return false;
      process.is_pasid_real = true;
    } else {
      int pasid = 0;
      if (!cursor.decimal(pasid)) return false;
      process.pasid = static_cast<std::uint32_t>(pasid);
      process.is_pasid_real = pasid != process.pid;
    }
    if (!cursor.word(":") || !cursor.is_done()) return false;
    close_queue();
    is_full_ = file_.processes.size() == kMostProcesses;
    if (is_full_)
      unread_.add("process beyond the 100,000th", number_);
    else
      file_.processes.push_back(std::move(process));
    return true;
  }

  //   Compute queue on device f7bc
  //   SDMA queue on device f7bc
  //   DIQ on device f7bc
  //   Bad user queue type 7 on device f7bc
  //   Weird: Queue node with neither kernel nor user queue
  bool is_queue(std::string_view text) {
    Cursor cursor(text);
    MqdQueue queue;
    int type = 0;
    if (cursor.word("  Compute queue on device ")) {
      queue.kind = MqdKind::compute;
    } else if (cursor.word("  SDMA queue on device ")) {
      queue.kind = MqdKind::sdma;
    } else if (cursor.word("  DIQ on device ")) {
      queue.kind = MqdKind::diq;
    } else if (cursor.word("  Bad user queue type ") || cursor.word("  Bad kernel queue type ")) {
      queue.kind = MqdKind::other;
      if (!cursor.decimal(type) || !cursor.word(" on device ")) return false;
    } else if (text == "  Weird: Queue node with neither kernel nor user queue") {
      close_queue();
      unread_.add("a queue that KFD itself calls weird", number_);
      return true;
    } else {
      return false;
    }
    if (!cursor.hex(queue.gpu_id) || !cursor.is_done()) return false;
    close_queue();
    if (file_.processes.empty()) {
      unread_.add("a queue before the first 'Process'", number_);
      return true;
    }
    if (is_full_ || ++queues_ > kMostQueues) {
      unread_.add("queue beyond the 100,000th", number_);
      return true;
    }
    queue.line = number_;
    queue_ = std::move(queue);
    is_open_ = true;
    return true;
  }

  //     00000200: 017ba000 00000000 00000001 00000000 40005301 00000001 00000007 00000111
  void add_row(const HexRow& row) {
    if (!is_open_) {
      unread_.add("a row that belongs to no queue", number_);
      return;
    }
    // Each XCC's image begins at 0 again. (Kernels print an SDMA image once per XCC, too, after a compute queue.)
    if (row.at == 0) close_image();
    if (row.at != words_.size() * 4 || words_.size() + static_cast<std::size_t>(row.count) > kLargestImage) {
      unread_.add("a row that does not follow the one before", number_);
      is_broken_ = true;
      return;
    }
    words_.insert(words_.end(), row.words, row.words + row.count);
  }

  void close_image() {
    if (words_.empty() && !is_broken_) return;
    if (queue_.kind == MqdKind::sdma) {
      if (!queue_.sdma && !is_broken_) queue_.sdma = decode_sdma(words_, Generation::unknown);
    } else if (queue_.kind == MqdKind::compute || queue_.kind == MqdKind::diq) {
      close_compute_image();
    }
    words_.clear();
    is_broken_ = false;
  }

  void close_compute_image() {
    if (words_.size() != kComputeWords || is_broken_ || queue_.images.size() == kMostImages) {
      if (++wrong_images_ == 1) {
        wrong_line_ = queue_.line;
        wrong_bytes_ = words_.size() * 4;
      }
      unread_.add("image that is not of 2,048 bytes", queue_.line);
      return;
    }
    MqdImage image;
    image.queue =
        decode_queue(std::span<const std::uint32_t, kQueueRegisters>(words_.data() + kMqdOffset, kQueueRegisters));
    image.save_ticks = ticks(words_, 0x188);
    image.restore_ticks = ticks(words_, 0x198);
    queue_.images.push_back(image);
  }

  void close_queue() {
    if (!is_open_) return;
    close_image();
    is_open_ = false;
    file_.processes.back().queues.push_back(std::move(queue_));
    queue_ = {};
  }

  MqdFile& file_;
  UnreadCounts unread_;
  MqdQueue queue_;
  bool is_open_ = false, is_broken_ = false, is_full_ = false;
  std::vector<std::uint32_t> words_;
  std::size_t number_ = 0, queues_ = 0;
  std::size_t wrong_images_ = 0, wrong_line_ = 0, wrong_bytes_ = 0;
};

}  // namespace

bool looks_like_mqds(std::string_view text) {
  Lines lines(text);
  std::string_view line;
  while (lines.number() < 1000 && lines.next(line)) {
    if (line.starts_with("Process ") && line.find(" PASID ") != std::string_view::npos) return true;
  }
  return false;
}

MqdFile parse_mqds(std::string_view text, const std::string& name) {
  return parse_file<MqdFile, MqdParser>(text, name);
}

}  // namespace weir::kfd
