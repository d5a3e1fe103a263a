# How our own code is compiled. Libraries are SYSTEM includes, so the warnings below are about Weir alone.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
# -g1: function names and lines in back traces for a third of the size that -g costs.
# -O2, and -O3 only for the CPU bodies of kernels, which gain from it: the rest would only take longer to compile.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG -g1")

if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(WEIR_CCACHE ccache)
  if(WEIR_CCACHE)
    # ccache refuses to cache users of a precompiled header unless told that these two are harmless. They are: we use
    # neither __TIME__ nor macros that change what the header means.
    # Paths count relative to the checkout, so that another clone finds what this one compiled.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
                                    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${WEIR_CCACHE})
  endif()
endif()

add_library(weir_options INTERFACE)
# Functions that nobody calls stay out of the program.
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  target_compile_options(weir_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-ffunction-sections;-fdata-sections>)
  target_link_options(weir_options INTERFACE -Wl,--gc-sections)
endif()
# -Wundef: "#if WEIR_HAVE_CUDA" without weir_build.h would silently be 0.
# -Wno-missing-field-initializers: gcc 12 complains of {.reason = "..."}, where the other fields are meant to be empty.
target_compile_options(weir_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wconversion;-Wundef;-Wno-missing-field-initializers>)
# gcc 12 sees overflows in "text" + std::string that are not there (gcc.gnu.org/PR105329, PR105651; gone in 13).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(weir_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overflow;-Wno-restrict>)
endif()
if(WEIR_WERROR)
  target_compile_options(weir_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
  # gcc 12 and 13 see overflows inside std::string where it comes from a precompiled header, and not where it does not.
  # They stay visible; clang 19 (make lint) uses no precompiled headers and fails on real ones.
  if(WEIR_PCH AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(weir_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-error=array-bounds>)
  endif()
  # clang 19 complains of what gcc 12's own std::stable_sort calls.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(weir_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-deprecated-declarations>)
  endif()
endif()
# Without this, compilers fuse a*b+c where the machine has FMA (arm64) and not where it lacks it (baseline x86_64), and
# generated inputs and CPU references would differ in the last bit from machine to machine.
target_compile_options(weir_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
# std::source_location says src/base/json.cpp, wherever the checkout lies.
# ccache makes paths relative to the build folder.
file(RELATIVE_PATH source_from_build ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
target_compile_options(weir_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=;-fmacro-prefix-map=${source_from_build}=>)

set(WEIR_BUILD_TYPE ${CMAKE_BUILD_TYPE})
set(WEIR_COVERAGE_FLAGS "")
if(WEIR_SANITIZE)
  if(WEIR_SANITIZE STREQUAL "address")
    set(WEIR_SANITIZER_FLAGS -fsanitize=address,undefined -fno-sanitize-recover=all)
    set(macro __SANITIZE_ADDRESS__)
  elseif(WEIR_SANITIZE STREQUAL "thread")
    set(WEIR_SANITIZER_FLAGS -fsanitize=thread)
    set(macro __SANITIZE_THREAD__)
  else()
    message(FATAL_ERROR "WEIR_SANITIZE=${WEIR_SANITIZE}: use address or thread")
  endif()
  # Not among the options of targets: these come last on the command line, and src/cli overrides the level.
  set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")
  target_compile_options(weir_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:${WEIR_SANITIZER_FLAGS};-fno-omit-frame-pointer>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # Sources ask for gcc's macros, which clang has from version 21.
    target_compile_options(weir_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-D${macro}>)
    # What libFuzzer wants to see of the code that it runs (cmake/fuzz.cmake).
    if(WEIR_SANITIZE STREQUAL "address")
      set(WEIR_COVERAGE_FLAGS -fsanitize-coverage=inline-8bit-counters,indirect-calls,trace-cmp,pc-table)
    endif()
  else()
    # gcc 12 reports uninitialised and null uses inside its own instrumentation; the sanitizers find the real ones.
    target_compile_options(weir_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
  endif()
  target_link_options(weir_options INTERFACE ${WEIR_SANITIZER_FLAGS})
  string(APPEND WEIR_BUILD_TYPE "+${WEIR_SANITIZE}")
endif()

# Headers of libraries, never our own, which must compile alone: make lint builds without any of this.
set(WEIR_PRECOMPILED <algorithm> <array> <chrono> <cstdint> <filesystem> <functional> <map> <memory> <optional> <span>
                     <string> <string_view> <unordered_map> <variant> <vector> <fmt/format.h>)

# Gives `target` a precompiled header of the standard library, fmt and what follows. One is compiled per kind and
# optimisation level, since a compiler takes it only with the options that it was made with.
function(weir_reuse_precompiled target kind level libraries)
  if(NOT WEIR_PCH)
    return()
  endif()
  set(owner weir_precompiled_${kind}${level})
  if(NOT TARGET ${owner})
    set(source ${PROJECT_BINARY_DIR}/generated/${owner}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "// Has to exist: a precompiled header needs a target with a source.\n")
    add_library(${owner} OBJECT ${source})
    target_link_libraries(${owner} PRIVATE ${libraries})
    target_compile_options(${owner} PRIVATE ${level})
    target_precompile_headers(${owner} PRIVATE ${WEIR_PRECOMPILED} ${ARGN})
    weir_show_precompiled(${owner})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${owner})
  weir_show_precompiled(${target})
endfunction()

# Compiles sources of a target ten at a time, so that the headers and templates which they share are compiled once
# (docs/adr/0031-unity-builds.md). More at a time gain little, and keep many cores idle.
function(weir_join_sources target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${WEIR_UNITY} UNITY_BUILD_BATCH_SIZE 10)
endfunction()

# ccache needs the header's name to stay visible in preprocessed output.
function(weir_show_precompiled target)
  target_compile_options(${target} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-fpch-preprocess>)
endfunction()
