# cmake --install: the program with its bundled prior, and a package for find_package(dpg).
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/dpg)
get_property(libraries GLOBAL PROPERTY DPG_LIBRARIES)

install(TARGETS dpg RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# The program looks for them in ../share/dpg from where it lies itself.
install(FILES priors/faces128.pt priors/faces128.json priors/README.md
  DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/dpg/priors)
install(DIRECTORY presets plans DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/dpg)
install(DIRECTORY examples/pictures DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/dpg/examples)
# What plans/black-box.json runs.
install(PROGRAMS examples/forward.py DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/dpg/examples)
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

install(TARGETS ${libraries} dpg_all EXPORT dpgTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY src/dpg DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h"
  PATTERN "emulated*" EXCLUDE PATTERN "test_*" EXCLUDE)  # for tests
install(EXPORT dpgTargets NAMESPACE dpg:: DESTINATION ${package_dir})

configure_package_config_file(cmake/dpgConfig.cmake.in ${PROJECT_BINARY_DIR}/dpgConfig.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/dpgConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/dpgConfig.cmake ${PROJECT_BINARY_DIR}/dpgConfigVersion.cmake
  DESTINATION ${package_dir})
