// Builds a step from a YAML definition: expands loops, evaluates sizes, launches. Everything that a builder or a
// kernel would trust is checked here first, so that messages can name the line.
#pragma once

#include "step/workload/yaml_definition.h"

namespace weir {

Step build_yaml_step(const YamlDefinition& definition, const Params& params, int stream_count);

}  // namespace weir
