# Installation, the Debian package and the wheel of `pip install .`. Layouts below the prefix:
#   cmake --install      bin/thinwire with the programs beside it, share/thinwire
#   wheel                the same in the Python package thinwire, manual pages in the environment
#   Debian package       bin/thinwire, the programs in lib/thinwire, share/thinwire
# The short names of the programs (train, bench, pack) are too general for /usr/bin.

set(data ${CMAKE_INSTALL_DATADIR}/thinwire)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME thinwire)
if(SKBUILD)
  set(CMAKE_INSTALL_LIBDIR lib)  # where the module looks
  set(CMAKE_INSTALL_MANDIR ${SKBUILD_DATA_DIR}/share/man)  # where man looks for what is on the PATH
endif()

# programs: in bin (component programs), or in lib/thinwire (component package, only in the package)
# what is not built is left out with a line
install(TARGETS ${programs} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT programs OPTIONAL)
install(TARGETS ${programs} RUNTIME DESTINATION lib/thinwire
        COMPONENT package EXCLUDE_FROM_ALL)
foreach(program IN LISTS programs)
  install(CODE "if(NOT EXISTS \"$<TARGET_FILE:${program}>\")
    message(STATUS \"Left out, as it is not built: ${program}\")
  endif()" COMPONENT programs)
endforeach()

# the C interface, for CMake and pkg-config
install(TARGETS thinwire EXPORT thinwire LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} OPTIONAL)
install(FILES apps/library/thinwire.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT thinwire NAMESPACE thinwire:: FILE thinwireConfig.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/thinwire)
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/thinwireConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/thinwireConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/thinwire)
file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(apps/library/thinwire.pc.in ${PROJECT_BINARY_DIR}/thinwire.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/thinwire.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(PROGRAMS scripts/thinwire DESTINATION ${CMAKE_INSTALL_BINDIR})
file(GLOB user_scripts CONFIGURE_DEPENDS scripts/*.py)
install(PROGRAMS ${user_scripts} DESTINATION ${data}/scripts)
install(PROGRAMS scripts/results/race.py DESTINATION ${data}/scripts/results)
install(PROGRAMS scripts/data/get_cifar10.sh scripts/data/sort_imagenet_val.sh
        DESTINATION ${data}/scripts/data)
install(DIRECTORY scripts/runs scripts/repro scripts/examples DESTINATION ${data}/scripts
        USE_SOURCE_PERMISSIONS PATTERN __pycache__ EXCLUDE)
# documents keep their places relative to each other, so that their links work; without kept results
install(DIRECTORY configs docs DESTINATION ${data} PATTERN docs/results EXCLUDE)
install(FILES README.md DESTINATION ${data})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)

# manual pages and completions, written by running the programs
find_program(TW_PYTHON NAMES python3)
if(TW_PYTHON)
  set(manual ${PROJECT_BINARY_DIR}/manual)
  file(GLOB_RECURSE writers CONFIGURE_DEPENDS scripts/manual/*.py)
  add_custom_command(
    OUTPUT ${manual}/thinwire.1
    COMMAND ${TW_PYTHON} ${PROJECT_SOURCE_DIR}/scripts/manual/write.py
            --bin $<TARGET_FILE_DIR:train> --output ${manual}
    DEPENDS ${programs} ${writers} ${user_scripts} scripts/thinwire scripts/results/race.py
    COMMENT "Writing manual pages and completions"
    VERBATIM)
  add_custom_target(manual ALL DEPENDS ${manual}/thinwire.1)
  install(DIRECTORY ${manual}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 FILES_MATCHING PATTERN *.1)
  install(CODE "if(NOT EXISTS \"${manual}/thinwire.1\")
    message(STATUS \"Left out, as the target manual is not built: manual pages and completions\")
  endif()" COMPONENT programs)
  install(FILES ${manual}/thinwire.bash RENAME thinwire OPTIONAL
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${manual}/thinwire.fish OPTIONAL
          DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  install(FILES ${manual}/_thinwire DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions
          COMPONENT programs OPTIONAL)
  install(FILES ${manual}/_thinwire DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions
          COMPONENT package EXCLUDE_FROM_ALL)  # where Debian's zsh looks
else()
  message(STATUS "no manual pages and completions: python3 was not found")
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME thinwire)
set(CPACK_PACKAGE_CONTACT "Thinwire maintainers <maintainers@thinwire.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "distributed deep-learning training over slow networks")
set(CPACK_PACKAGE_DESCRIPTION
"Trains ResNet, VGG and AlexNet with synchronous data-parallel SGD. Ranks
exchange dense gradients, or sparsify them with TopK, DGC, gTop-k, GaussianK
and other methods. Emulates slow links, predicts the time of a step on a
link, and draws and compares runs. The command is thinwire; its programs are
in /usr/lib/thinwire.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
    GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
# one package of these components; without `programs`
set(CPACK_COMPONENTS_ALL thinwire package)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS python3)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS python3-matplotlib)
if(TW_MPI)
  execute_process(COMMAND ${MPIEXEC_EXECUTABLE} --version OUTPUT_VARIABLE mpirun ERROR_QUIET)
  if(mpirun MATCHES "Open MPI|OpenRTE")
    string(APPEND CPACK_DEBIAN_PACKAGE_RECOMMENDS ", openmpi-bin")
  else()
    string(APPEND CPACK_DEBIAN_PACKAGE_RECOMMENDS ", mpich")
  endif()
endif()
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/scripts/cmake/prerm)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
