# Compiles src/kernel/device_code.cu with hipcc into one bundle for several GPUs, packed with gzip where the program can
# unpack it. The runtime's headers are needed too: the host's side checks its table against them.
set(WEIR_HAVE_HIP 0)
set(WEIR_HIP_REASON "")
set(WEIR_HIPCC_VERSION "")
set(WEIR_HIP_IS_PACKED 0)
set(WEIR_HIP_INCLUDE_DIR "")
set(WEIR_HIP_BUILT "")
set(WEIR_HIP_ARCHITECTURES "gfx906;gfx908;gfx90a;gfx942;gfx1030;gfx1100" CACHE STRING
    "Device code is compiled for these AMD GPUs, as far as hipcc knows them")

if(WEIR_HIP STREQUAL "OFF")
  set(WEIR_HIP_REASON "switched off by WEIR_HIP=OFF")
else()
  find_program(WEIR_HIPCC hipcc HINTS ENV ROCM_PATH ENV HIP_PATH PATH_SUFFIXES bin PATHS /opt/rocm/bin)
  find_path(WEIR_HIP_H_DIR hip/hip_runtime_api.h HINTS ENV ROCM_PATH ENV HIP_PATH PATH_SUFFIXES include
            PATHS /opt/rocm/include)
  mark_as_advanced(WEIR_HIPCC WEIR_HIP_H_DIR)
  if(NOT WEIR_HIPCC)
    set(WEIR_HIP_REASON "hipcc was not found")
  elseif(NOT WEIR_HIP_H_DIR)
    set(WEIR_HIP_REASON "hipcc was found, but not hip/hip_runtime_api.h")
  else()
    # HIP version: 5.2.21153-0
    execute_process(COMMAND ${WEIR_HIPCC} --version OUTPUT_VARIABLE version_text ERROR_QUIET)
    string(REGEX MATCH "HIP version: ([0-9.]+)" ignored "${version_text}")
    set(WEIR_HIPCC_VERSION "${CMAKE_MATCH_1}")
    # Which GPUs this compiler knows, by asking it to compile nothing for each; remembered until it changes.
    if(NOT "${WEIR_HIPCC} ${WEIR_HIPCC_VERSION} ${WEIR_HIP_ARCHITECTURES}" STREQUAL "${WEIR_HIP_ASKED}")
      set(known "")
      file(MAKE_DIRECTORY ${WEIR_DEVICE_DIR})
      file(WRITE ${WEIR_DEVICE_DIR}/nothing.hip "__global__ void nothing() {}\n")
      foreach(architecture IN LISTS WEIR_HIP_ARCHITECTURES)
        execute_process(COMMAND ${WEIR_HIPCC} --genco --offload-arch=${architecture} -o ${WEIR_DEVICE_DIR}/nothing.hsaco
                                ${WEIR_DEVICE_DIR}/nothing.hip RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
        if(result EQUAL 0)
          list(APPEND known ${architecture})
        endif()
      endforeach()
      set(WEIR_HIP_KNOWN "${known}" CACHE INTERNAL "")
      set(WEIR_HIP_ASKED "${WEIR_HIPCC} ${WEIR_HIPCC_VERSION} ${WEIR_HIP_ARCHITECTURES}" CACHE INTERNAL "")
    endif()
    if(WEIR_HIP_KNOWN)
      set(WEIR_HAVE_HIP 1)
      set(WEIR_HIP_INCLUDE_DIR ${WEIR_HIP_H_DIR})
      string(REPLACE ";" " " WEIR_HIP_BUILT "${WEIR_HIP_KNOWN}")
    else()
      set(WEIR_HIP_REASON "hipcc ${WEIR_HIPCC_VERSION} compiles for none of ${WEIR_HIP_ARCHITECTURES}")
    endif()
  endif()
endif()

if(WEIR_HIP STREQUAL "ON" AND NOT WEIR_HAVE_HIP)
  message(FATAL_ERROR "WEIR_HIP=ON: ${WEIR_HIP_REASON}")
endif()

if(WEIR_HAVE_HIP)
  set(WEIR_HIP_SUMMARY "hipcc ${WEIR_HIPCC_VERSION}")
  set(targets "")
  foreach(architecture IN LISTS WEIR_HIP_KNOWN)
    list(APPEND targets --offload-arch=${architecture})
  endforeach()
  set(hip_binary ${WEIR_DEVICE_DIR}/hip_code.hsaco)
  add_custom_command(
    OUTPUT ${hip_binary}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${WEIR_DEVICE_DIR}
    COMMAND ${CMAKE_COMMAND} -P ${PROJECT_SOURCE_DIR}/cmake/run_hipcc.cmake -- ${WEIR_HIPCC} --genco ${targets} -O3
            -std=c++17 -Wall -Werror -I ${PROJECT_SOURCE_DIR}/src -x hip ${device_source} -o ${hip_binary}
    DEPENDS ${device_source} ${device_parts}
    COMMENT "Compiling device code with hipcc ${WEIR_HIPCC_VERSION}"
    VERBATIM)
  find_program(WEIR_GZIP gzip)
  mark_as_advanced(WEIR_GZIP)
  if(WEIR_HAVE_ZLIB AND WEIR_GZIP)
    set(WEIR_HIP_IS_PACKED 1)
    add_custom_command(OUTPUT ${hip_binary}.gz COMMAND ${WEIR_GZIP} -9 -n -k -f ${hip_binary} DEPENDS ${hip_binary}
                       COMMENT "Packing it" VERBATIM)
    weir_embed(weir_hip_code ${hip_binary}.gz)
  else()
    weir_embed(weir_hip_code ${hip_binary})
  endif()
else()
  set(WEIR_HIP_SUMMARY "none (${WEIR_HIP_REASON})")
endif()
