// How long KFD's hqds takes to decode: 8 GPUs of 4 XCCs with 24 slots and 64 SDMA queues each, 10,504 lines, as an
// MI308X machine prints it. The bar is 10 ms. Counted by the thread's own clock.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "amd/kfd/document.h"
#include "amd/kfd/snapshot.h"
#include "measure/statistics.h"

namespace {

using namespace weir;

std::int64_t core_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// 56 words; of `queue` >= 0 those of a queue, otherwise those of a slot that was never used.
void put_slot(std::string& text, unsigned address, int queue) {
  for (int row = 0; row < 7; ++row) {
    fmt::format_to(std::back_inserter(text), "    {:08x}:", address + 32 * static_cast<unsigned>(row));
    for (int i = 0; i < 8; ++i) {
      unsigned word = 0;
      if (queue >= 0) {
        const int at = row * 8 + i;
        const auto number = static_cast<unsigned>(queue);
        word = at == 0    ? 0x1700000 + number * 0x20000
               : at == 2  ? 1
               : at == 4  ? 0x40005301
               : at == 8  ? 0x41b00000 + number * 0x2000
               : at == 9  ? 0x7f
               : at == 17 ? 0x14014511
               : at == 54 ? 64
                          : 0;
      }
      fmt::format_to(std::back_inserter(text), " {:08x}", word);
    }
    text += '\n';
  }
}

std::string machine_text() {
  constexpr unsigned kXccs[] = {0xc914, 0xcc914, 0x10c914, 0x1cc914};
  // Rows of an SDMA queue: where they begin and how many words they have.
  constexpr std::pair<unsigned, int> kSdmaRows[] = {{0, 8},    {0x20, 8},  {0x40, 3}, {0xa0, 6},
                                                    {0xbc, 7}, {0x100, 8}, {0x120, 4}};
  std::string text;
  for (int node = 2; node < 10; ++node) {
    fmt::format_to(std::back_inserter(text), "Node {}, gpu_id {:x}:\n", node, 0xc000 + node);
    for (int xcc = 0; xcc < 4; ++xcc) {
      fmt::format_to(std::back_inserter(text), "   Inst {}, HIQ on MEC 2 Pipe 0 Queue 0\n", xcc);
      put_slot(text, kXccs[xcc], 100);
      for (int slot = 0; slot < 24; ++slot) {
        fmt::format_to(std::back_inserter(text), " Inst {},  CP Pipe {}, Queue {}\n", xcc, slot / 6, 2 + slot % 6);
        put_slot(text, kXccs[xcc], slot < 5 ? slot : -1);
      }
    }
    for (int rlc = 0; rlc < 64; ++rlc) {
      fmt::format_to(std::back_inserter(text), "  SDMA Engine {}, RLC {}\n", rlc / 8, rlc % 8);
      for (const auto& [offset, words] : kSdmaRows) {
        fmt::format_to(std::back_inserter(text), "    {:08x}:", 0x4e40 + offset);
        for (int i = 0; i < words; ++i) text += " 00000000";
        text += '\n';
      }
    }
  }
  return text;
}

template <class Work>
void report(const char* name, Work&& work) {
  std::vector<double> samples;
  for (int round = 0; round < 21; ++round) {
    const std::int64_t begun = core_ns();
    work();
    samples.push_back(static_cast<double>(core_ns() - begun) / 1e6);
  }
  const auto [least, most] = std::minmax_element(samples.begin(), samples.end());
  fmt::print("{:<24}{:>8.2f} ms   [{:.2f} .. {:.2f}]\n", name, median(samples), *least, *most);
}

}  // namespace

int main() {
  const std::string text = machine_text();
  fmt::print("hqds: {} lines, {} bytes (bar: 10 ms)\n", std::count(text.begin(), text.end(), '\n'), text.size());
  std::size_t queues = 0;
  report("decoded", [&] { queues += kfd::parse_hqds(text, "hqds").nodes.size(); });
  report("queues and document", [&] {
    kfd::Snapshot snapshot;
    kfd::add_file(snapshot, text, "hqds");
    queues += kfd::hqd_document(snapshot)["queues"].size();
  });
  return queues == 0 ? 1 : 0;
}
