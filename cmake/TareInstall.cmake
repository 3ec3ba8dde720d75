# `cmake --install build --prefix DIR`: bin/tare (bin/tare-run and lib/libtare_rt.so by their own folders), include/tare/tare.h, lib/cmake/Tare for find_package, docs.
# The same folders as runtime/ and tools/tare-run use, whatever the distribution calls its own.
set(CMAKE_INSTALL_BINDIR bin)
set(CMAKE_INSTALL_LIBDIR lib)
set(CMAKE_INSTALL_INCLUDEDIR include)
set(CMAKE_INSTALL_DATADIR share)
include(CMakePackageConfigHelpers)
if(TARGET tare)
  install(TARGETS tare RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Tare)
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/TareConfig.cmake.in ${CMAKE_BINARY_DIR}/TareConfig.cmake INSTALL_DESTINATION ${package}
  PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_BINDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/TareConfigVersion.cmake VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/TareConfig.cmake ${CMAKE_BINARY_DIR}/TareConfigVersion.cmake ${CMAKE_SOURCE_DIR}/cmake/TareEngine.cmake DESTINATION ${package})
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/docs/report-schema.json DESTINATION ${CMAKE_INSTALL_DATADIR}/tare)
