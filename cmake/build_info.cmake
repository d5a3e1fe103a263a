# What `weir info` says about the build. The commit changes often, so it lives in a source of its own: a new commit
# recompiles one tiny file.
set(WEIR_GENERATED_DIR ${PROJECT_BINARY_DIR}/generated)
set(WEIR_COMPILER "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/weir_build.h.in ${WEIR_GENERATED_DIR}/weir_build.h @ONLY)

set(WEIR_BUILD_INFO_SOURCE ${WEIR_GENERATED_DIR}/weir_commit.cpp)
set(commit_arguments -DSOURCE_DIR=${PROJECT_SOURCE_DIR} -DOUTPUT=${WEIR_BUILD_INFO_SOURCE}
                     -P ${PROJECT_SOURCE_DIR}/cmake/write_commit.cmake)
execute_process(COMMAND ${CMAKE_COMMAND} ${commit_arguments})
add_custom_target(weir_commit COMMAND ${CMAKE_COMMAND} ${commit_arguments} BYPRODUCTS ${WEIR_BUILD_INFO_SOURCE}
                  COMMENT "Looking up the commit" VERBATIM)
set_source_files_properties(${WEIR_BUILD_INFO_SOURCE} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
