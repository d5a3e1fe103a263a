# Finds the libraries that scripts/setup.sh installs; each miss ends with what to do about it.
find_package(Threads REQUIRED)

function(weir_require package)
  find_package(${package} CONFIG QUIET)
  if(NOT ${package}_FOUND)
    message(FATAL_ERROR "${package} is missing: run scripts/setup.sh, or install it and set CMAKE_PREFIX_PATH")
  endif()
endfunction()

# Libraries without a dependable package config become an imported target from a header and a library file.
function(weir_import target)
  cmake_parse_arguments(arg "" "HEADER;LIBRARY" "SUFFIXES" ${ARGN})
  find_path(${target}_INCLUDE_DIR ${arg_HEADER} PATH_SUFFIXES ${arg_SUFFIXES})
  find_library(${target}_LIBRARY ${arg_LIBRARY} PATH_SUFFIXES ${arg_SUFFIXES})
  mark_as_advanced(${target}_INCLUDE_DIR ${target}_LIBRARY)
  if(${target}_INCLUDE_DIR AND ${target}_LIBRARY)
    add_library(${target} INTERFACE IMPORTED GLOBAL)
    target_include_directories(${target} INTERFACE ${${target}_INCLUDE_DIR})
    target_link_libraries(${target} INTERFACE ${${target}_LIBRARY})
  endif()
endfunction()

weir_require(fmt)
weir_require(nlohmann_json)
weir_require(CLI11)
weir_require(yaml-cpp)
# yaml-cpp 0.8 renamed its target.
add_library(weir_yaml INTERFACE)
if(TARGET yaml-cpp::yaml-cpp)
  target_link_libraries(weir_yaml INTERFACE yaml-cpp::yaml-cpp)
else()
  target_link_libraries(weir_yaml INTERFACE yaml-cpp)
endif()

# OpenBLAS by files: vendor trees often lack its package config, and the plain cblas.h of Debian is an alternative that
# may belong to another BLAS, so the folders that only OpenBLAS uses are asked first.
set(WEIR_BLAS_SUFFIXES openblas-pthread openblas)
if(CMAKE_LIBRARY_ARCHITECTURE)
  list(PREPEND WEIR_BLAS_SUFFIXES ${CMAKE_LIBRARY_ARCHITECTURE}/openblas-pthread ${CMAKE_LIBRARY_ARCHITECTURE}/openblas)
endif()
weir_import(weir_blas HEADER cblas.h LIBRARY openblas SUFFIXES ${WEIR_BLAS_SUFFIXES})
if(NOT TARGET weir_blas)
  message(FATAL_ERROR "OpenBLAS (cblas.h, libopenblas) is missing: run scripts/setup.sh, or set CMAKE_PREFIX_PATH")
endif()
# Opened when a product needs it (src/kernel/blas.cpp), not linked: at load it starts threads.
set_property(TARGET weir_blas PROPERTY INTERFACE_LINK_LIBRARIES "")
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/kernel/blas.cpp PROPERTIES
                            COMPILE_DEFINITIONS WEIR_OPENBLAS="${weir_blas_LIBRARY}")

weir_import(weir_hwloc HEADER hwloc.h LIBRARY hwloc)
if(TARGET weir_hwloc)
  set(WEIR_HAVE_HWLOC 1)
else()
  set(WEIR_HAVE_HWLOC 0)
endif()

# Without the C++ bindings, which MPI dropped long ago.
set(MPI_CXX_SKIP_MPICXX ON)
find_package(MPI QUIET COMPONENTS CXX)
if(MPI_CXX_FOUND)
  set(WEIR_HAVE_MPI 1)
else()
  set(WEIR_HAVE_MPI 0)
endif()

# Readers of other people's traces: .gz needs the one, Nsight Systems and rocmProfileData the other.
find_package(ZLIB QUIET)
find_package(SQLite3 QUIET)
foreach(library ZLIB SQLite3)
  string(REPLACE "3" "" name ${library})
  string(TOUPPER ${name} name)
  if(${library}_FOUND)
    set(WEIR_HAVE_${name} 1)
  else()
    set(WEIR_HAVE_${name} 0)
  endif()
endforeach()

# Packed traces other than .gz, and .zip.
find_package(LibArchive QUIET)
if(LibArchive_FOUND)
  set(WEIR_HAVE_LIBARCHIVE 1)
else()
  set(WEIR_HAVE_LIBARCHIVE 0)
endif()

# The live view of `weir watch`; its other forms do without.
weir_import(weir_ncurses HEADER ncurses.h LIBRARY ncursesw SUFFIXES ncursesw)
if(TARGET weir_ncurses)
  set(WEIR_HAVE_NCURSES 1)
else()
  set(WEIR_HAVE_NCURSES 0)
endif()

# Other people's queues, for `weir channel` to be measured against; headers only.
find_path(WEIR_BOOST_LOCKFREE_DIR boost/lockfree/spsc_queue.hpp)
find_path(WEIR_CONCURRENTQUEUE_DIR concurrentqueue.h PATH_SUFFIXES concurrentqueue concurrentqueue/moodycamel moodycamel)
find_path(WEIR_READERWRITERQUEUE_DIR readerwriterqueue.h PATH_SUFFIXES readerwriterqueue)
find_path(WEIR_ATOMIC_QUEUE_DIR atomic_queue/atomic_queue.h)
mark_as_advanced(WEIR_BOOST_LOCKFREE_DIR WEIR_CONCURRENTQUEUE_DIR WEIR_READERWRITERQUEUE_DIR WEIR_ATOMIC_QUEUE_DIR)
# Not under TSan, which knows no fences: gcc refuses to compile theirs.
foreach(queue BOOST_LOCKFREE CONCURRENTQUEUE READERWRITERQUEUE ATOMIC_QUEUE)
  if(WEIR_${queue}_DIR AND NOT "${WEIR_SANITIZE}" STREQUAL "thread")
    set(WEIR_HAVE_${queue} 1)
  else()
    set(WEIR_HAVE_${queue} 0)
  endif()
endforeach()
