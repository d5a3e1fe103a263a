// weir.queues/2: the text of its experiment.
#include <array>

#include "report/text/documents.h"
#include "report/text/fields.h"

namespace weir {
namespace {

struct Experiment {
  std::string_view name;
  std::string (*describe)(const Json& document);
};
constexpr std::array kExperiments = {
    Experiment{"map", describe_queue_map},      Experiment{"limits", describe_limits},
    Experiment{"switch", describe_switch},      Experiment{"cost", describe_queue_cost},
    Experiment{"sweep", describe_queues_sweep}, Experiment{"convoy", describe_queues_convoy},
    Experiment{"fairness", describe_fairness}};

}  // namespace

DocumentText text_list::queues(const Json& document) {
  const std::string name = fields::text(document, {"experiment"});
  for (const Experiment& experiment : kExperiments)
    if (experiment.name == name) return experiment.describe(document);
  return std::string();
}

}  // namespace weir
