#include "lab/advise/replay_links.h"

namespace weir::advise {

ReplayLinks::ReplayLinks(const ReplayModel& model)
    : followers(model.commands.size(),
                [&](auto add) {
                  for (std::uint32_t i = 0; i < model.commands.size(); ++i)
                    for (std::uint32_t e = 0; e < model.commands[i].edges; ++e)
                      add(model.edges[model.commands[i].first_edge + e], i);
                }),
      awaiting(model.commands.size(),
               [&](auto add) {
                 for (std::uint32_t i = 0; i < model.actions.size(); ++i)
                   for (std::uint32_t w = 0; w < model.actions[i].waits; ++w)
                     add(model.awaited[model.actions[i].first_wait + w], i);
               }),
      woken(model.actions.size(), [&](auto add) {
        for (std::uint32_t i = 0; i < model.actions.size(); ++i)
          if (model.actions[i].after != kNone) add(model.actions[i].after, i);
      }) {}

}  // namespace weir::advise
