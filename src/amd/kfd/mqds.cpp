// debugfs kfd/mqds: the memory images of every process's queues. Knows this one file.
#include <fmt/format.h>

#include <algorithm>

#include "amd/kfd/debugfs_parser.h"

namespace weir::kfd {
namespace {

constexpr std::size_t kMaxProcesses = 100'000;
constexpr std::size_t kMaxListedQueues = 100'000;  // KFD allows 1,024 per process
constexpr std::size_t kMaxImages = 64;             // per queue
constexpr std::size_t kComputeWords = 512;
constexpr std::size_t kLargestImage = 4096;  // words

// save_start_time 0x188, save_end_time 0x190, restore_start 0x198, restore_end 0x1a0: 64 bits each.
std::optional<std::uint64_t> ticks(const std::vector<std::uint32_t>& words, std::size_t start_byte) {
  const auto at = [&](std::size_t byte) { return std::uint64_t{words[byte / 4 + 1]} << 32 | words[byte / 4]; };
  const std::uint64_t start = at(start_byte), end = at(start_byte + 8);
  // All zeros: the firmware never saved or restored it.
  if (start == 0 || end == 0 || end < start) return std::nullopt;
  return end - start;
}

class MqdParser : public DebugfsParser<MqdFile> {
 public:
  using DebugfsParser::DebugfsParser;

  void line(std::string_view text) {
    HexRow row;
    if (parse_hex_row(text, 4, row))
      add_row(row);
    else if (!text.empty() && !is_process(text) && !is_queue(text))
      unread("not a line of mqds");
  }

  void finish() {
    close_queue();
    if (wrong_images_.count > 0)
      file_.problems.push_back(fmt::format(
          "{} images of compute queues are not of 2,048 bytes (the first, of the queue at line {}, has {}): "
          "this kernel or chip is not one that we know, and they were left out",
          wrong_images_.count, wrong_images_.line, wrong_images_.size));
  }

 private:
  // Process 94314 PASID 94314:
  // Process 94314 PASID 0x8001:
  bool is_process(std::string_view text) {
    Cursor cursor(text);
    MqdProcess process;
    if (!cursor.take_all("Process ", process.pid, " PASID ")) return false;
    if (cursor.take("0x")) {
      if (!cursor.take(process.pasid)) return false;
      process.is_pasid_real = true;
    } else {
      int pasid = 0;
      if (!cursor.take(pasid)) return false;
      process.pasid = static_cast<std::uint32_t>(pasid);
      process.is_pasid_real = pasid != process.pid;
    }
    if (!cursor.take(":") || !cursor.is_done()) return false;
    close_queue();
    is_full_ = file_.processes.size() == kMaxProcesses;
    if (is_full_)
      unread("process beyond the 100,000th");
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
    if (cursor.take("  Compute queue on device ")) {
      queue.kind = MqdKind::compute;
    } else if (cursor.take("  SDMA queue on device ")) {
      queue.kind = MqdKind::sdma;
    } else if (cursor.take("  DIQ on device ")) {
      queue.kind = MqdKind::diq;
    } else if (cursor.take("  Bad user queue type ") || cursor.take("  Bad kernel queue type ")) {
      queue.kind = MqdKind::other;
      if (!cursor.take_all(type, " on device ")) return false;
    } else if (text == "  Weird: Queue node with neither kernel nor user queue") {
      close_queue();
      unread("a queue that KFD itself calls weird");
      return true;
    } else {
      return false;
    }
    if (!cursor.take(queue.gpu_id) || !cursor.is_done()) return false;
    close_queue();
    if (file_.processes.empty()) {
      unread("a queue before the first 'Process'");
      return true;
    }
    if (is_full_ || ++queues_ > kMaxListedQueues) {
      unread("queue beyond the 100,000th");
      return true;
    }
    queue.line = number_;
    queue_ = std::move(queue);
    is_open_ = true;
    return true;
  }

  //     00000200: 017ba000 00000000 00000001 00000000 40005301 00000001 00000007 00000111
  void add_row(const HexRow& row) {
    if (!is_open_) return unread("a row that belongs to no queue");
    // The image of each XCC begins at 0 again. (Kernels also print an SDMA image once per XCC after a compute queue.)
    if (row.at == 0) close_image();
    if (row.at != words_.size() * 4 || words_.size() + static_cast<std::size_t>(row.count) > kLargestImage) {
      unread("a row that does not follow the one before");
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
    if (words_.size() != kComputeWords || is_broken_ || queue_.images.size() == kMaxImages) {
      wrong_images_.add(queue_.line, words_.size() * 4);
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

  MqdQueue queue_;
  bool is_open_ = false, is_full_ = false;
  std::size_t queues_ = 0;
  LeftOut wrong_images_;
};

}  // namespace

bool looks_like_mqds(std::string_view text) {
  return looks_like(text, [](std::string_view line) {
    return line.starts_with("Process ") && line.find(" PASID ") != std::string_view::npos;
  });
}

MqdFile parse_mqds(std::string_view text, const std::string& name) {
  return parse_file<MqdParser>(MqdFile(), text, name);
}

}  // namespace weir::kfd
