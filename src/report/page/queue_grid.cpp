#include "report/page/queue_grid.h"

#include <fmt/format.h>

#include "report/page/values.h"

namespace weir::page {
namespace {

// Beyond these a picture of cells is no picture, and a hostile file no reason for millions of them.
constexpr std::size_t kMostStreams = 1024, kMostQueues = 256, kMostCells = 65'536;

std::string label_of(const Json& json) { return json.is_string() ? json.get<std::string>() : json.dump(); }

}  // namespace

std::size_t QueueGrid::index_of(const std::string& label, std::vector<std::string>& all, Numbers& numbers) {
  const auto [at, is_new] = numbers.try_emplace(label, all.size());
  if (is_new) all.push_back(label);
  return at->second;
}

void QueueGrid::set(std::size_t stream, std::size_t queue, std::optional<std::uint64_t> commands) {
  cells_.try_emplace({stream, queue}, commands);
}

std::string QueueGrid::add_to(Page& page, std::size_t source, const std::string& title, const std::string& basis,
                              const std::string& mapping, std::vector<std::string> notes) const {
  if (is_empty()) return {};
  const auto first = [](const std::vector<std::string>& all, std::size_t most) {
    return std::vector<std::string>(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), most)));
  };
  Json item = page.item("queue_maps", title, source, page.environment_of(source));
  item["basis"] = basis;
  item["mapping"] = mapping;
  item["queues"] = first(queues_, kMostQueues);
  item["streams"] = first(streams_, kMostStreams);
  item["cells"] = Json::array();
  std::size_t left_out = 0;
  for (const auto& [place, commands] : cells_) {
    if (place.first >= kMostStreams || place.second >= kMostQueues || item["cells"].size() == kMostCells) {
      ++left_out;
      continue;
    }
    item["cells"].push_back(
        {{"stream", place.first}, {"queue", place.second}, {"commands", commands ? Json(*commands) : Json(nullptr)}});
  }
  if (left_out > 0)
    notes.push_back(fmt::format("{} streams on {} queues are more than can be drawn: {} cells are left out.",
                                streams_.size(), queues_.size(), left_out));
  item["notes"] = std::move(notes);
  return page.add("queue_maps", std::move(item));
}

std::string add_queue_map(Page& page, std::size_t source, const std::string& where, const Json& map, QueueGrid grid) {
  // Streams that moved are told with their commands; the others only by the queue's sum, which is theirs where it has
  // no other stream.
  for (const Json& queue : values::list(map, {"queues"})) grid.queue(label_of(values::at(queue, {"queue"})));
  for (const Json& stream : values::list(map, {"moving"}))
    for (const Json& queue : values::list(stream, {"queues"}))
      grid.set(grid.stream(label_of(values::at(stream, {"stream"}))),
               grid.queue(label_of(values::at(queue, {"queue"}))), values::count(queue, {"commands"}));
  for (const Json& queue : values::list(map, {"queues"})) {
    const Json& streams = values::list(queue, {"streams"});
    for (const Json& stream : streams)
      grid.set(grid.stream(label_of(stream)), grid.queue(label_of(values::at(queue, {"queue"}))),
               streams.size() == 1 ? std::optional(values::count(queue, {"commands"})) : std::nullopt);
  }
  const Json& is_fixed = values::at(map, {"is_fixed"});
  const auto changes = values::count(map, {"change_count"});
  const std::string mapping = !is_fixed.is_boolean() ? "whether streams keep their queues is not known"
                              : is_fixed.get<bool>() ? "fixed: every stream kept its queue"
                                                     : fmt::format("dynamic: streams changed queues {} times", changes);
  std::vector<std::string> notes;
  if (const auto shared = values::count(map, {"shared_queues"}); shared > 0)
    notes.push_back(fmt::format("{} queue{} shared, by {} streams: commands of one wait behind those of another.",
                                shared, shared == 1 ? " is" : "s are", values::count(map, {"sharing_streams"})));
  return grid.add_to(page, source, where + ": streams on hardware queues", "timeline", mapping, std::move(notes));
}

}  // namespace weir::page
