# One static library per folder of src/, weir_<room> or weir_<room>_<folder>, which links those whose headers its sources
# include: tests and sanitizers build what they need and nothing above it. weir_core is all of them but the command line.

# What every source may include and link. GPU libraries are opened at run time: only their headers are here.
add_library(weir_libraries INTERFACE)
target_include_directories(weir_libraries INTERFACE src include ${WEIR_GENERATED_DIR})
target_include_directories(weir_libraries SYSTEM INTERFACE ${WEIR_CUDA_INCLUDE_DIR} ${WEIR_HIP_INCLUDE_DIR}
                                                           ${WEIR_OPENCL_INCLUDE_DIR})
target_link_libraries(weir_libraries INTERFACE weir_options fmt::fmt nlohmann_json::nlohmann_json weir_yaml weir_blas
                                               Threads::Threads ${CMAKE_DL_LIBS})
foreach(queue BOOST_LOCKFREE CONCURRENTQUEUE READERWRITERQUEUE ATOMIC_QUEUE)
  if(WEIR_HAVE_${queue})
    target_include_directories(weir_libraries SYSTEM INTERFACE ${WEIR_${queue}_DIR})
  endif()
endforeach()
foreach(library HWLOC:weir_hwloc ZLIB:ZLIB::ZLIB SQLITE:SQLite::SQLite3)
  string(REGEX MATCH "^([A-Z]+):(.*)$" matched ${library})
  if(WEIR_HAVE_${CMAKE_MATCH_1})
    target_link_libraries(weir_libraries INTERFACE ${CMAKE_MATCH_2})
  endif()
endforeach()

# Written by CMake or embedded: data, and the commit.
add_library(weir_generated STATIC ${WEIR_BUILD_INFO_SOURCE} ${WEIR_PROFILES_SOURCE} ${WEIR_CASES_SOURCE}
                                  ${WEIR_KERNEL_HEADERS_SOURCE} ${WEIR_PROBE_SCRIPT_SOURCE} ${WEIR_DEVICE_SOURCE}
                                  ${WEIR_EMBEDDED_SOURCES})
target_link_libraries(weir_generated PRIVATE weir_libraries)
set_target_properties(weir_generated PROPERTIES POSITION_INDEPENDENT_CODE ON)
add_dependencies(weir_generated weir_commit)

# Documents, texts and recipes: nothing in them is hot. Small in a release (the program is copied from node to node), and
# instrumented code takes half as long to compile without optimisation.
set(WEIR_COLD_FOLDERS amd_capture amd_compare amd_join lab_channels lab_conformance lab_overlap report_figures report_history
                      report_page report_text run step_workload)
# Under sanitizers these too, though they are not all cold: their tests take as long either way.
set(WEIR_PATIENT_FOLDERS amd_kfd lab_channels_loops lab_kernels lab_kernels_package)
# Reads other people's traces, on one thread.
if(WEIR_SANITIZE STREQUAL "thread")
  list(APPEND WEIR_PATIENT_FOLDERS trace trace_analyse trace_export trace_import)
endif()
# Bodies of kernels gain from -O3; so that our channels and other people's are compiled alike, they have it too.
set(WEIR_HOT_FOLDERS kernel lab_channels_loops)
# What computes and never reads a file: fuzz targets learn nothing from it, and their counters would slow it down.
set(WEIR_UNREAD_FOLDERS channel kernel lab_channels_loops)

# What is measured, one source per benchmark or body: none may change what the compiler makes of another.
set(WEIR_SEPARATE_FOLDERS channel kernel lab_channels_loops)

# The folders of src/ whose headers these files include, as in the names of libraries: lab_queues for src/lab/queues.
# Headers of tests, and of what is no library, stand for what they include.
function(weir_folders_of output)
  set(folders "")
  set(files ${ARGN})
  set(seen "")
  while(files)
    list(POP_FRONT files file)
    file(STRINGS ${file} headers REGEX "^#include \"[a-z_0-9/]+/")
    list(TRANSFORM headers REPLACE "^#include \"([^\"]+)\".*" "\\1")
    list(REMOVE_ITEM headers ${seen})
    list(APPEND seen ${headers})
    foreach(header IN LISTS headers)
      cmake_path(GET header PARENT_PATH folder)
      set(is_library TRUE)
      if(folder MATCHES "^(submit/inject|cli|cli/manual)$")
        set(is_library FALSE)
      endif()
      if(EXISTS ${PROJECT_SOURCE_DIR}/src/${header} AND NOT is_library)
        list(APPEND files ${PROJECT_SOURCE_DIR}/src/${header})
      elseif(EXISTS ${PROJECT_SOURCE_DIR}/src/${header})
        string(REPLACE / _ folder ${folder})
        list(APPEND folders ${folder})
      elseif(EXISTS ${PROJECT_SOURCE_DIR}/tests/${header})
        list(APPEND files ${PROJECT_SOURCE_DIR}/tests/${header})
      endif()
    endforeach()
  endwhile()
  list(REMOVE_DUPLICATES folders)
  list(SORT folders)
  set(${output} ${folders} PARENT_SCOPE)
endfunction()

file(GLOB_RECURSE folders CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/src src/*.cpp)
list(TRANSFORM folders REPLACE "/[^/]+$" "")
list(REMOVE_DUPLICATES folders)
list(REMOVE_ITEM folders cli cli/manual submit/inject)
set(WEIR_FOLDER_LIBRARIES "")
foreach(path IN LISTS folders)
  file(GLOB sources CONFIGURE_DEPENDS src/${path}/*.cpp)
  file(GLOB headers CONFIGURE_DEPENDS src/${path}/*.h)
  string(REPLACE / _ folder ${path})
  list(FILTER sources EXCLUDE REGEX "/mpi_module\\.cpp$")
  set(library weir_${folder})
  add_library(${library} STATIC ${sources})
  list(APPEND WEIR_FOLDER_LIBRARIES ${library})
  weir_folders_of(below ${sources} ${headers})
  list(REMOVE_ITEM below ${folder})
  list(TRANSFORM below PREPEND weir_)
  target_link_libraries(${library} PUBLIC ${below} weir_libraries weir_generated)

  set(level "")
  if(WEIR_SANITIZE AND (folder IN_LIST WEIR_COLD_FOLDERS OR folder IN_LIST WEIR_PATIENT_FOLDERS))
    set(level -O0)
  elseif(WEIR_SANITIZE AND folder STREQUAL "kernel")
    set(level -O2)  # whose bodies are most of what tests compute; clang inlines little at -O1
  elseif(CMAKE_BUILD_TYPE STREQUAL "Release" AND folder IN_LIST WEIR_COLD_FOLDERS)
    set(level -Os)
  elseif(CMAKE_BUILD_TYPE STREQUAL "Release" AND folder IN_LIST WEIR_HOT_FOLDERS)
    set(level -O3)
  endif()
  target_compile_options(${library} PRIVATE ${level})
  if(NOT folder IN_LIST WEIR_UNREAD_FOLDERS)
    target_compile_options(${library} PRIVATE ${WEIR_COVERAGE_FLAGS})
  endif()
  if(NOT folder IN_LIST WEIR_SEPARATE_FOLDERS)
    weir_join_sources(${library})
  endif()
  if(folder MATCHES "^(base|kernel)$")
    # The fake HIP runtime of the tests is a library that runs the same bodies.
    set_target_properties(${library} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  elseif(NOT folder IN_LIST WEIR_HOT_FOLDERS)
    weir_reuse_precompiled(${library} std "${level}" weir_libraries)
  endif()
endforeach()
# HIP's headers define CUDA's types anew.
set_source_files_properties(src/device/gpu/hip.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
# The measured loop.
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  set_source_files_properties(src/run/passes.cpp PROPERTIES COMPILE_OPTIONS -O2 SKIP_PRECOMPILE_HEADERS ON
                              SKIP_UNITY_BUILD_INCLUSION ON)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # gcc 13 sees Boost's copy of one element run past it: it takes the end of the range for a second element.
  target_compile_options(weir_lab_channels_loops PRIVATE -Wno-array-bounds -Wno-stringop-overflow)
  # Other people's queues have fences, which ThreadSanitizer does not know and gcc warns of. They run in no test.
  if(WEIR_SANITIZE STREQUAL "thread")
    target_compile_options(weir_lab_channels_loops PRIVATE -Wno-tsan)
  endif()
endif()

# Only screen.cpp sees ncurses.
if(WEIR_HAVE_NCURSES)
  target_link_libraries(weir_lab_watch PRIVATE weir_ncurses)
endif()
# Opened at run time.
if(WEIR_HAVE_LIBARCHIVE)
  target_include_directories(weir_trace_import PRIVATE ${LibArchive_INCLUDE_DIRS})
endif()
# list.cpp declares the devices, each of which has a folder of its own.
target_link_libraries(weir_device PUBLIC weir_device_cpu weir_device_gpu weir_device_opencl weir_device_sim)

add_library(weir_core INTERFACE)
target_link_libraries(weir_core INTERFACE ${WEIR_FOLDER_LIBRARIES})
