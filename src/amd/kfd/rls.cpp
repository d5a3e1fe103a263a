// debugfs kfd/rls: the run list of each GPU. Knows this one file.
#include <fmt/format.h>

#include "amd/kfd/debugfs_parser.h"

namespace weir::kfd {
namespace {

constexpr std::size_t kMaxRunlistNodes = 4'096;
constexpr std::size_t kMaxWords = std::size_t{1} << 22;  // per list: 16 MiB, a thousand times what KFD builds

enum Opcode : std::uint32_t { kMapProcess = 0xa1, kMapQueues = 0xa2, kRunList = 0xa5 };

class RunlistParser : public DebugfsParser<RunlistFile> {
 public:
  using DebugfsParser::DebugfsParser;

  void line(std::string_view text) {
    HexRow row;
    //   00000000: c00fa100 14008001 00000000
    if (parse_hex_row(text, 2, row)) {
      add_row(row);
    } else if (text == "  No active runlist") {
      if (!list_) unread("a line before the first 'Node'");
    } else if (!text.empty() && !is_node(text)) {
      if (list_) list_->is_whole = false;
      unread("not a line of rls");
    }
  }

  void finish() { close_list(); }

 private:
  // Node 2, gpu_id f7bc:
  bool is_node(std::string_view text) {
    Runlist list;
    if (!parse_node(text, list.node, list.gpu_id)) return false;
    close_list();
    if (file_.lists.size() == kMaxRunlistNodes) {
      unread("node beyond the 4,096th");
      return true;
    }
    list_ = &file_.lists.emplace_back(list);
    return true;
  }

  void add_row(const HexRow& row) {
    if (!list_) return unread("a row that belongs to no node");
    if (row.at != words_.size() * 4 || words_.size() >= kMaxWords) {
      unread("a row that does not follow the one before");
      list_->is_whole = false;
      return;
    }
    list_->is_there = true;
    words_.insert(words_.end(), row.words, row.words + row.count);
  }

  // Packets of type 3: header = 3 << 30 | (words - 2) << 16 | opcode << 8.
  void close_list() {
    if (!list_) return;
    Runlist& list = *list_;
    std::size_t at = 0;
    while (at < words_.size()) {
      const std::uint32_t header = words_[at];
      if (header == 0) {  // the rest of the buffer is empty
        ++at;
        continue;
      }
      const std::size_t size = (header >> 16 & 0x3fff) + 2;
      if (header >> 30 != 3 || size > words_.size() - at) {
        file_.problems.push_back(
            fmt::format("node {}: the run list's word {} (0x{:08x}) begins no packet; what follows was left out",
                        list.node, at, header));
        list.is_whole = false;
        break;
      }
      add_packet(list, header >> 8 & 0xff, words_.data() + at, size);
      at += size;
    }
    for (const RunlistProcess& process : list.processes) {
      if (static_cast<std::size_t>(process.promised_queues) != process.queues.size()) ++list.broken_promises;
    }
    words_.clear();
    list_ = nullptr;
  }

  void add_packet(Runlist& list, std::uint32_t opcode, const std::uint32_t* words, std::size_t size) {
    const auto join = [&](std::size_t low) { return std::uint64_t{words[low + 1]} << 32 | words[low]; };
    if (opcode == kMapProcess && size >= 14) {
      RunlistProcess process;
      process.pasid = words[1] & 0xffff;
      process.quantum = static_cast<int>(words[1] >> 25);
      process.promised_queues = static_cast<int>(words[13] >> 22);
      list.processes.push_back(std::move(process));
    } else if (opcode == kMapQueues && size >= 7 && !list.processes.empty()) {
      RunlistQueue queue;
      queue.queue_type = static_cast<int>(words[1] >> 21 & 7);
      queue.engine = static_cast<int>(words[1] >> 26 & 7);
      queue.doorbell = (words[2] & 0x0ffffffc) >> 2;
      queue.mqd_base = join(3);
      list.processes.back().queues.push_back(queue);
    } else if (opcode == kRunList && size >= 4) {
      list.is_chained = list.is_chained || (words[3] >> 20 & 1) != 0;
    } else {
      ++list.other_packets;
    }
  }

  Runlist* list_ = nullptr;
};

}  // namespace

bool looks_like_rls(std::string_view text) {
  return looks_like(text, [row = HexRow()](std::string_view line) mutable {
    return line == "  No active runlist" || parse_hex_row(line, 2, row);
  });
}

RunlistFile parse_rls(std::string_view text, const std::string& name) {
  return parse_file<RunlistParser>(RunlistFile(), text, name);
}

}  // namespace weir::kfd
