// debugfs kfd/hqds: every hardware slot of every GPU. Knows this one file.
#include <fmt/format.h>

#include <algorithm>

#include "amd/kfd/debugfs_parser.h"

namespace weir::kfd {
namespace {

// Far more than any machine has: 16 nodes with 8 XCCs of 32 slots are 4,096.
constexpr std::size_t kMaxSlots = 100'000;
constexpr std::size_t kMaxHqdNodes = 4'096;
constexpr std::size_t kMaxSdmaRegisters = 256;

enum class Block { none, hiq, slot, sdma, ignored };

class HqdParser : public DebugfsParser<HqdFile> {
 public:
  using DebugfsParser::DebugfsParser;

  void line(std::string_view text) {
    HexRow row;
    if (parse_hex_row(text, 4, row))
      add_row(row);
    else if (!text.empty() && !is_node(text) && !is_slot(text) && !is_hiq(text) && !is_sdma(text) && !is_stopped(text))
      unread("not a line of hqds");
  }

  void finish() {
    close_block();
    close_node();
    if (wrong_slots_.count > 0)
      file_.problems.push_back(fmt::format(
          "{} compute slots do not have 56 registers (the first, at line {}, has {}): this kernel or chip is "
          "not one that we know, and they were left out",
          wrong_slots_.count, wrong_slots_.line, wrong_slots_.size));
    if (wrong_sdma_.count > 0)
      file_.problems.push_back(fmt::format(
          "{} SDMA slots have a layout that we do not know (the first, at line {}, has {} registers; gfx9 and "
          "10 have 42 or 44, gfx11 43, gfx12 49): whether they are in use is not judged",
          wrong_sdma_.count, wrong_sdma_.line, wrong_sdma_.size));
  }

 private:
  // Node 2, gpu_id f7bc:
  bool is_node(std::string_view text) {
    int node = 0;
    std::uint32_t gpu_id = 0;
    if (!parse_node(text, node, gpu_id)) return false;
    close_block();
    close_node();
    if (file_.nodes.size() == kMaxHqdNodes) {
      unread("node beyond the 4,096th");
      node_ = nullptr;
      return true;
    }
    node_ = &file_.nodes.emplace_back();
    node_->node = node;
    node_->gpu_id = gpu_id;
    return true;
  }

  //    Inst 0, HIQ on MEC 2 Pipe 0 Queue 0
  //   HIQ on MEC 2 Pipe 0 Queue 0                 (before 6.5)
  bool is_hiq(std::string_view text) {
    Cursor cursor(text);
    HqdSlot slot;
    const bool has_instance = cursor.take("   Inst ");
    if (has_instance ? !cursor.take_all(slot.xcc, ", ") : !cursor.take("  ")) return false;
    if (!cursor.take_all("HIQ on MEC ", slot.mec, " Pipe ", slot.pipe, " Queue ", slot.queue) || !cursor.is_done())
      return false;
    open_slot(slot, Block::hiq, has_instance);
    return true;
  }

  //  Inst 0,  CP Pipe 0, Queue 2
  //   CP Pipe 0, Queue 2                          (before 6.5)
  bool is_slot(std::string_view text) {
    Cursor cursor(text);
    HqdSlot slot;
    const bool has_instance = cursor.take(" Inst ");
    if (has_instance && !cursor.take_all(slot.xcc, ",")) return false;
    if (!cursor.take_all("  CP Pipe ", slot.pipe, ", Queue ", slot.queue) || !cursor.is_done()) return false;
    open_slot(slot, Block::slot, has_instance);
    return true;
  }

  //   SDMA Engine 0, RLC 0
  bool is_sdma(std::string_view text) {
    Cursor cursor(text);
    SdmaSlot slot;
    if (!cursor.take_all("  SDMA Engine ", slot.engine, ", RLC ", slot.rlc) || !cursor.is_done()) return false;
    close_block();
    slot.line = number_;
    sdma_ = slot;
    block_ = can_open() ? Block::sdma : Block::ignored;
    return true;
  }

  //  Device is stopped
  bool is_stopped(std::string_view text) {
    if (text != " Device is stopped") return false;
    close_block();
    if (node_)
      node_->is_stopped = true;
    else
      unread("a line before the first 'Node'");
    return true;
  }

  bool can_open() {
    if (!node_) {
      unread("a line before the first 'Node'");
      return false;
    }
    if (++slots_ > kMaxSlots) {
      unread("slot beyond the 100,000th");
      ++node_->left_out;
      ++node_->left_out_sdma;
      return false;
    }
    return true;
  }

  void open_slot(HqdSlot slot, Block block, bool has_instance) {
    close_block();
    slot.line = number_;
    slot_ = slot;
    block_ = can_open() ? block : Block::ignored;
    if (block_ == Block::ignored) return;
    node_->has_instances = has_instance;
    if (std::find(node_->xccs.begin(), node_->xccs.end(), slot.xcc) == node_->xccs.end()) {
      if (node_->xccs.size() < 64) node_->xccs.push_back(slot.xcc);
    }
  }

  //     0000c914: 006e3000 00000000 00000001 00000000 00005300 00000000 00000001 00000111
  void add_row(const HexRow& row) {
    if (block_ == Block::ignored) return;
    if (block_ == Block::none) return unread("a row of registers that belongs to no slot");
    // Rows of a compute queue are contiguous; those of SDMA have gaps.
    const bool is_first = words_.empty();
    if (!is_first && (block_ == Block::sdma ? row.at < next_address_ : row.at != next_address_)) is_broken_ = true;
    if (is_first) address_ = row.at;
    next_address_ = row.at + 4 * static_cast<std::uint32_t>(row.count);
    for (int i = 0; i < row.count; ++i) {
      if (words_.size() < kMaxSdmaRegisters) words_.push_back(row.words[i]);
    }
  }

  void close_block() {
    const Block block = block_;
    block_ = Block::none;
    if (block == Block::hiq || block == Block::slot) close_slot(block);
    if (block == Block::sdma) close_sdma();
    words_.clear();
    is_broken_ = false;
  }

  void close_slot(Block block) {
    if (words_.size() != kQueueRegisters || is_broken_) {
      wrong_slots_.add(slot_.line, words_.size());
      unread_.add("slot without its 56 registers", slot_.line);
      if (block == Block::slot) ++node_->left_out;
      return;
    }
    slot_.address = address_;
    slot_.image = decode_queue(std::span<const std::uint32_t, kQueueRegisters>(words_.data(), kQueueRegisters));
    slot_.state = slot_.image.is_active    ? SlotState::active
                  : slot_.image.is_blank() ? SlotState::unused
                                           : SlotState::stale;
    (block == Block::hiq ? node_->hiqs : node_->slots).push_back(slot_);
  }

  void close_sdma() {
    const std::size_t count = words_.size();
    const Generation layout = sdma_layout(count);
    const auto image = decode_sdma(words_, layout);
    if (!image || layout == Generation::unknown || is_broken_) {
      wrong_sdma_.add(sdma_.line, count);
      unread_.add("SDMA slot of an unknown layout", sdma_.line);
      ++node_->left_out_sdma;
      return;
    }
    sdma_.registers = count;
    sdma_.image = *image;
    // RB_ENABLE alone proves little: slots keep it, with the ring of a queue that is gone.
    const bool is_mapped = image->is_enabled && image->is_doorbell_enabled.value_or(false);
    sdma_.state = is_mapped ? SlotState::active : image->is_blank() ? SlotState::unused : SlotState::stale;
    node_->sdma.push_back(sdma_);
  }

  void close_node() {
    if (!node_) return;
    const HqdSlot* const first = !node_->slots.empty()  ? &node_->slots.front()
                                 : !node_->hiqs.empty() ? &node_->hiqs.front()
                                                        : nullptr;
    const std::size_t sdma = node_->sdma.empty() ? 0 : node_->sdma.front().registers;
    const std::uint32_t address = first ? first->address : 0;
    const auto set = [&](Generation generation, std::string from) {
      node_->generation = generation;
      node_->generation_from = std::move(from);
    };
    // 9.4.3 has one range per XCC: 0xc914, 0xcc914, 0x10c914, 0x1cc914.
    if (first && (address & 0xffff) == 0xc914) {
      if (sdma == 42 && node_->xccs.size() == 1)
        set(Generation::gfx9, "registers at 0xc914 and 42 of an SDMA queue");
      else if (node_->xccs.size() > 1 || address != 0xc914)
        set(Generation::gfx9_4_3, "registers at 0xc914 and the like, one range per XCC");
      else if (sdma == 44)
        set(Generation::gfx9_4_3, "registers at 0xc914 and 44 of an SDMA queue");
      else
        set(Generation::unknown, "registers at 0xc914: gfx9 or gfx9.4.3");
    } else if (sdma == 49) {
      set(Generation::gfx12, "49 registers of an SDMA queue");
    } else if (sdma == 43) {
      set(Generation::gfx11, "43 registers of an SDMA queue");
    } else if (first && address == 0xc824 && sdma != 0) {
      set(Generation::gfx10, fmt::format("registers at 0xc824 and {} of an SDMA queue", sdma));
    } else if (first && address == 0xc824) {
      set(Generation::unknown, "registers at 0xc824: gfx10, gfx11 or gfx12");
    } else if (first) {
      set(Generation::unknown, fmt::format("registers at 0x{:x}, which no chip that we know has", address));
    } else {
      set(Generation::unknown, "no registers were printed");
    }
    if (!node_->xccs.empty() && node_->slots.size() % node_->xccs.size() != 0)
      file_.problems.push_back(fmt::format("node {}: its {} XCCs do not have the same number of slots ({} in all)",
                                           node_->node, node_->xccs.size(), node_->slots.size()));
    node_ = nullptr;
  }

  HqdNode* node_ = nullptr;
  Block block_ = Block::none;
  HqdSlot slot_;
  SdmaSlot sdma_;
  std::uint32_t address_ = 0, next_address_ = 0;
  std::size_t slots_ = 0;
  LeftOut wrong_slots_, wrong_sdma_;
};

}  // namespace

bool looks_like_hqds(std::string_view text) {
  return looks_like(text, [](std::string_view line) {
    return line == " Device is stopped" || line.find("  CP Pipe ") != std::string_view::npos ||
           line.find(" HIQ on MEC ") != std::string_view::npos || line.starts_with("  SDMA Engine ");
  });
}

HqdFile parse_hqds(std::string_view text, const std::string& name) {
  return parse_file<HqdParser>(HqdFile(), text, name);
}

}  // namespace weir::kfd
