# Script of CPack, between installing into its scratch folder and packing that: what Debian asks of a package, and nobody
# else of an installation.
set(root ${CPACK_TEMPORARY_DIRECTORY}/usr)
find_program(strip_program strip)
file(GLOB binaries ${root}/bin/weir ${root}/lib/weir/*.so)
if(strip_program)
  execute_process(COMMAND ${strip_program} --strip-debug ${binaries} COMMAND_ERROR_IS_FATAL ANY)
endif()

set(doc ${root}/share/doc/weir)
file(RENAME ${doc}/LICENSE ${doc}/copyright)
find_program(gzip_program gzip)
if(gzip_program)
  file(RENAME ${doc}/CHANGELOG.md ${doc}/changelog)
  execute_process(COMMAND ${gzip_program} -9n ${doc}/changelog COMMAND_ERROR_IS_FATAL ANY)
endif()
# zsh of Debian looks here.
file(MAKE_DIRECTORY ${root}/share/zsh/vendor-completions)
file(RENAME ${root}/share/zsh/site-functions/_weir ${root}/share/zsh/vendor-completions/_weir)
file(REMOVE_RECURSE ${root}/share/zsh/site-functions)
file(MAKE_DIRECTORY ${root}/share/lintian/overrides)
file(WRITE ${root}/share/lintian/overrides/weir
     "# Names of functions stay: reports of hangs show them.\nweir: unstripped-binary-or-object\n"
     "# Of no release of Debian's.\nweir: no-changelog\n")
