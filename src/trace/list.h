// The trace formats that can be read, in the order in which they are tried.
#pragma once

#include <span>

#include "trace/importer.h"

namespace weir {

std::span<const Importer> importers();

namespace importer_list {

Importer weir_capture();
Importer nsys();
Importer rpd();
Importer rocprof_json();
Importer kineto();
Importer rocprof_csv();
Importer cupti_text();

}  // namespace importer_list

}  // namespace weir
