// Builds a step from a YAML definition: expands loops, evaluates sizes, launches. Checks everything that a builder or a
// kernel would trust, so that messages can name the line.
#pragma once

#include "step/workload/yaml_definition.h"

namespace weir {

Step build_yaml_step(const YamlDefinition& definition, const Params& params, int stream_count);

}  // namespace weir
