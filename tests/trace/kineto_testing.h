// Kineto traces made by hand.
#pragma once

#include <string>

#include "trace/import/import.h"

namespace weir {

inline Timeline import_kineto(const std::string& text) {
  return import_memory(text, "test.json", {.format = "kineto"}).timeline;
}

inline Timeline import_events(const std::string& events) {
  return import_kineto("{\"traceEvents\": [" + events + "]}");
}

inline std::string kineto_kernel(int at, const std::string& name = "k", const std::string& more = "") {
  return "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"" + name +
         "\", \"pid\": 0, \"tid\": 7, \"ts\": " + std::to_string(at) +
         ".25, \"dur\": 3.5, \"args\": {\"device\": 0, \"stream\": 7, \"correlation\": " + std::to_string(at) + more +
         "}}";
}

}  // namespace weir
