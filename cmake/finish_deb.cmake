# Script of CPack, between installing into its scratch folder and packing that: what Debian asks of a package, and nobody
# else of an installation.
set(root ${CPACK_TEMPORARY_DIRECTORY}/usr)
find_program(strip_program strip)
file(GLOB binaries ${root}/bin/weir ${root}/lib/weir/*.so)
if(strip_program)
  execute_process(COMMAND ${strip_program} --strip-debug ${binaries} COMMAND_ERROR_IS_FATAL ANY)
endif()

set(doc ${root}/share/doc/weir)
# Debian has the licence's text itself.
file(REMOVE ${doc}/LICENSE)
file(WRITE ${doc}/copyright "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: weir

Files: *
Copyright: 2026 the Weir authors
License: Apache-2.0
 On Debian systems the text of the licence is in /usr/share/common-licenses/Apache-2.0.
")
find_program(gzip_program gzip)
if(gzip_program)
  file(RENAME ${doc}/CHANGELOG.md ${doc}/changelog)
  string(TIMESTAMP moment "%a, %d %b %Y %H:%M:%S +0000" UTC)  # SOURCE_DATE_EPOCH, where it is set
  file(WRITE ${doc}/changelog.Debian "weir (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium

  * What changed is in changelog.gz.

 -- ${CPACK_PACKAGE_CONTACT}  ${moment}
")
  execute_process(COMMAND ${gzip_program} -9n ${doc}/changelog ${doc}/changelog.Debian COMMAND_ERROR_IS_FATAL ANY)
endif()
# zsh of Debian looks here.
file(MAKE_DIRECTORY ${root}/share/zsh/vendor-completions)
file(RENAME ${root}/share/zsh/site-functions/_weir ${root}/share/zsh/vendor-completions/_weir)
file(REMOVE_RECURSE ${root}/share/zsh/site-functions)
file(MAKE_DIRECTORY ${root}/share/lintian/overrides)
file(WRITE ${root}/share/lintian/overrides/weir
     "# Names of functions stay: reports of hangs show them.\nweir: unstripped-binary-or-object\n"
     "# CPack 3.25 calls it for modules as well, which are not in its folders.\nweir: maintscript-calls-ldconfig\n")
