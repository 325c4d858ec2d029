# Programs a person runs (build/bin), and the data they read (build/share/entente).
file(GLOB cli_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cli/*.c)
if(cli_sources)
  add_executable(entente_cli ${cli_sources})
  set_target_properties(entente_cli PROPERTIES OUTPUT_NAME entente)
  target_compile_definitions(entente_cli PRIVATE ENTENTE_VERSION="${PROJECT_VERSION}")
  target_link_libraries(entente_cli PRIVATE entente ent_base ent_cjson)
  install(TARGETS entente_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# Examples are what an application does: the public header and the runtime library, nothing else.
file(GLOB examples CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.c)
foreach(example IN LISTS examples)
  get_filename_component(name ${example} NAME_WE)
  add_executable(${name} ${example})
  target_link_libraries(${name} PRIVATE entente_runtime m)
endforeach()

# What ./dev bench kernels runs.
if(TARGET entente_cpu_kernels)
  add_executable(entente_kernel_bench ${PROJECT_SOURCE_DIR}/bench/kernel_bench.c)
  target_link_libraries(entente_kernel_bench PRIVATE entente_cpu_kernels)
endif()

file(GLOB capability_records CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/capability-db/*.json
     ${PROJECT_SOURCE_DIR}/capability-db/*/*.json)
foreach(record IN LISTS capability_records)
  file(RELATIVE_PATH relative ${PROJECT_SOURCE_DIR} ${record})
  configure_file(${record} ${ENT_DATA_OUTPUT_DIRECTORY}/${relative} COPYONLY)
endforeach()
if(capability_records)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/capability-db DESTINATION ${CMAKE_INSTALL_DATADIR}/entente
          FILES_MATCHING PATTERN "*.json")
endif()
