// What an Error says and advises; empty where nothing is thrown.
#pragma once

#include <string>

#include "base/error.h"

namespace weir {

template <class Body>
std::string message_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return std::string(error.what()) + " | " + error.hint;
  }
  return "";
}

}  // namespace weir
