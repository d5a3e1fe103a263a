#include "stream/submitter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/options.h"

namespace weir {

SubmitChoice parse_submit(std::string_view text, int streams) {
  const std::size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  if (text == "inline") return {"inline", SubmitMode::eager, 0};
  if (text == "graph") return {"graph", SubmitMode::graph, 0};
  if (kind == "threads") {
    int threads = std::min(8, std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
    if (colon != std::string_view::npos) {
      const auto asked = parse_integer(text.substr(colon + 1));
      if (!asked || *asked < 1 || *asked > kMaxStreams)
        reject(fmt::format("--submit {}: '{}' is not a number of threads", text, text.substr(colon + 1)),
               fmt::format("Use threads:1 to threads:{}.", kMaxStreams));
      threads = static_cast<int>(*asked);
    }
    threads = std::min(threads, streams);
    return {fmt::format("threads:{}", threads), SubmitMode::eager, threads};
  }
  const std::array<std::string, 3> names = {"inline", "threads", "graph"};
  reject(fmt::format("--submit {}: there is no such way to submit", text), suggestion(kind, names));
}

std::unique_ptr<Submitter> make_submitter(const SubmitChoice& choice, const Step& step, const Placement& placement,
                                          Session& session) {
  if (choice.threads == 0) return inline_submitter(step, session);
  return threads_submitter(choice.threads, step, placement, session);
}

}  // namespace weir
