#include "report/page/template.h"

#include "weir_build.h"

#if WEIR_HAVE_HTML
extern "C" const char weir_page[];
extern "C" const char weir_page_end[];
#endif

namespace weir::page {

std::string_view page_template() {
#if WEIR_HAVE_HTML
  return {weir_page, weir_page_end};
#else
  return {};
#endif
}

}  // namespace weir::page
