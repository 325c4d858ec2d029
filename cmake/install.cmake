# Install tree: include/entente/*.h for applications; include/entente/vendor/{abi,core/ops} and libententeops.a for
# plugin authors, whose sources include "abi/ent_plugin.h" and "core/ops/ops.h" exactly as plugins here do.
include(CMakePackageConfigHelpers)
set(vendor_includedir ${CMAKE_INSTALL_INCLUDEDIR}/entente/vendor)
install(DIRECTORY abi/ DESTINATION ${vendor_includedir}/abi FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
install(FILES core/ops/ops.h DESTINATION ${vendor_includedir}/core/ops)
if(EXISTS ${PROJECT_SOURCE_DIR}/include/entente)
  install(DIRECTORY include/entente DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
endif()

install(TARGETS entente entente_runtime EXPORT ententeTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
set_target_properties(entente_runtime PROPERTIES EXPORT_NAME runtime)

add_library(entente_plugin INTERFACE)
set_target_properties(entente_plugin PROPERTIES EXPORT_NAME plugin)
target_include_directories(entente_plugin INTERFACE $<INSTALL_INTERFACE:${vendor_includedir}>
                                                    $<INSTALL_INTERFACE:${vendor_includedir}/abi>)
install(TARGETS entente_plugin EXPORT ententeTargets)
get_target_property(ops_type ent_ops TYPE)
if(ops_type STREQUAL STATIC_LIBRARY)
  set_target_properties(ent_ops PROPERTIES OUTPUT_NAME ententeops)
  install(TARGETS ent_ops ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  target_link_libraries(entente_plugin INTERFACE "$<INSTALL_INTERFACE:ententeops>" "$<INSTALL_INTERFACE:m>")
  target_link_directories(entente_plugin INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_LIBDIR}>)
endif()

install(EXPORT ententeTargets NAMESPACE entente:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/entente)
configure_package_config_file(cmake/ententeConfig.cmake.in ${PROJECT_BINARY_DIR}/ententeConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/entente
                              PATH_VARS CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ententeConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ententeConfig.cmake ${PROJECT_BINARY_DIR}/ententeConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/entente)

# Relative to the folder of the .pc file, so that the install tree can move.
file(RELATIVE_PATH ENT_PC_PREFIX /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
foreach(module entente entente-runtime entente-plugin)
  configure_file(cmake/${module}.pc.in ${PROJECT_BINARY_DIR}/${module}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${module}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
