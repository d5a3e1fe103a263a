# Device code, compiled ahead where there is a compiler for it and embedded in the program; no GPU library is linked. Each
# part goes on without its compiler and says why in WEIR_<BACKEND>_REASON.
set(WEIR_DEVICE_DIR ${PROJECT_BINARY_DIR}/device)
set(WEIR_DEVICE_CODE_SOURCES "")
set(device_source ${PROJECT_SOURCE_DIR}/src/kernel/device_code.cu)
file(GLOB device_parts CONFIGURE_DEPENDS src/kernel/*.cu src/kernel/*.cuh src/kernel/*.h)

# Puts a file into the program as `extern "C" const unsigned char symbol[]`, up to symbol_end.
function(weir_embed symbol file)
  set(source ${WEIR_DEVICE_DIR}/${symbol}.S)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/device_code.S.in ${source} @ONLY)
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS ${file} SKIP_PRECOMPILE_HEADERS ON)
  set(WEIR_DEVICE_CODE_SOURCES ${WEIR_DEVICE_CODE_SOURCES} ${source} PARENT_SCOPE)
endfunction()

include(cuda_code)
include(hip_code)
include(opencl_code)
