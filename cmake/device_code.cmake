# Device code, compiled ahead where there is a compiler for it and embedded in the program; no GPU library is linked. Each
# part goes on without its compiler and says why in WEIR_<BACKEND>_REASON.
set(WEIR_DEVICE_DIR ${PROJECT_BINARY_DIR}/device)
set(WEIR_EMBEDDED_SOURCES "")
set(device_source ${PROJECT_SOURCE_DIR}/src/kernel/device_code.cu)
file(GLOB device_parts CONFIGURE_DEPENDS src/kernel/*.cu src/kernel/*.cuh src/kernel/*.h)

# Puts a file into the program as `extern "C" const unsigned char symbol[]`, up to symbol_end.
function(weir_embed symbol file)
  set(source ${WEIR_DEVICE_DIR}/${symbol}.S)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/device_code.S.in ${source} @ONLY)
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS ${file} SKIP_PRECOMPILE_HEADERS ON)
  set(WEIR_EMBEDDED_SOURCES ${WEIR_EMBEDDED_SOURCES} ${source} PARENT_SCOPE)
endfunction()

if(DEFINED ENV{XDG_CACHE_HOME})
  set(cache_home $ENV{XDG_CACHE_HOME})
elseif(DEFINED ENV{HOME})
  set(cache_home $ENV{HOME}/.cache)
else()
  set(cache_home "")
endif()
if(cache_home)
  set(cache_home ${cache_home}/weir/device_code)
endif()
set(WEIR_DEVICE_CODE_CACHE "${cache_home}" CACHE PATH "Compiled device code is kept here from build to build; empty: nowhere")

# weir_compile_device_code(output version compiler ...): what device code is made of makes it anew.
function(weir_compile_device_code output version)
  set(inputs ${device_source} ${device_parts})
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${WEIR_DEVICE_DIR}
    COMMAND ${CMAKE_COMMAND} "-DOUTPUT=${output}" "-DINPUTS=${inputs}" "-DVERSION=${version}"
            "-DCACHE=${WEIR_DEVICE_CODE_CACHE}" "-DSOURCES=${PROJECT_SOURCE_DIR}"
            -P ${PROJECT_SOURCE_DIR}/cmake/compile_device_code.cmake -- ${ARGN}
    DEPENDS ${inputs}
    COMMENT "Compiling device code with ${version}"
    VERBATIM)
endfunction()

include(cuda_code)
include(hip_code)
include(opencl_code)
