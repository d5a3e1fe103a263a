// The text of a document beside its picture. Knows text.cpp by its name only.
#pragma once

#include <fmt/format.h>

#include <new>
#include <stdexcept>

#include "report/page/list.h"

namespace weir::page {

// Adds the document as the terminal tells it, where there are words for it. The tellers take well-formed documents for
// granted: one that is not costs its text, never its picture.
inline void add_told(Page& page, std::size_t source, const Json& document, const std::string& title) {
  std::string why;
  try {
    section_list::text(page, source, document);
    return;
  } catch (const JsonError& error) {
    why = error.what();
  } catch (const std::length_error&) {
    why = "a number is absurd";
  } catch (const std::bad_alloc&) {
    why = "a number is absurd";
  }
  page.find({Tone::warning, 0,
             fmt::format("{}: its text cannot be told: the document is not what its schema says ({}).", title, why),
             "Write it again with the `weir` that reads it.", ""});
}

}  // namespace weir::page
