# fuzz/NAME.cpp -> executable fuzz_NAME, in the build with clang's AddressSanitizer: it links the folders that its source
# includes, as tests do. scripts/fuzz.sh runs them.
file(GLOB fuzz_sources CONFIGURE_DEPENDS fuzz/*.cpp)
file(GLOB fuzz_headers CONFIGURE_DEPENDS fuzz/*.h)
foreach(source IN LISTS fuzz_sources)
  cmake_path(GET source STEM name)
  add_executable(fuzz_${name} EXCLUDE_FROM_ALL ${source})
  weir_folders_of(below ${source} ${fuzz_headers})
  list(TRANSFORM below PREPEND weir_)
  target_link_libraries(fuzz_${name} PRIVATE ${below} weir_libraries)
  target_compile_options(fuzz_${name} PRIVATE ${WEIR_COVERAGE_FLAGS})
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
endforeach()
