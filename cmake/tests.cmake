# Every tests/unit/<folder>_<topic>_test.c is a program of its own, linked with that folder and what it may use; a prefix
# that names no folder (cpu, abi) gets the whole core. They run in the source folder.
ent_pkg_config(ent_check check)
set(ENT_TEST_ENVIRONMENT
  "ENTENTE_PLUGIN_PATH=${ENT_PLUGIN_OUTPUT_DIRECTORY}"
  "ENTENTE_TEST_BINARY_DIR=${PROJECT_BINARY_DIR}"
  "ASAN_OPTIONS=detect_leaks=1" "UBSAN_OPTIONS=print_stacktrace=1" "CK_FORK=no")

add_library(ent_core_all INTERFACE)
foreach(folder IN LISTS runtime_folders compiler_folders)
  target_link_libraries(ent_core_all INTERFACE ent_${folder})
endforeach()

function(ent_test_program target name)
  target_compile_definitions(${target} PRIVATE ENT_TEST_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                             ENT_TEST_BINARY_DIR="${PROJECT_BINARY_DIR}")
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${target} ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "${ENT_TEST_ENVIRONMENT}" TIMEOUT 600)
endfunction()

file(GLOB unit_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/unit/*_test.c)
foreach(source IN LISTS unit_tests)
  get_filename_component(name ${source} NAME_WE)
  string(REGEX REPLACE "_.*" "" prefix ${name})
  add_executable(${name} ${source})
  set(folder ent_core_all)
  if(prefix IN_LIST runtime_folders OR prefix IN_LIST compiler_folders)
    set(folder ent_${prefix})
  endif()
  target_link_libraries(${name} PRIVATE ${folder} ent_check ent_cjson)
  ent_test_program(${name} unit/${name})
endforeach()

# One program runs the goldens of every stage.
file(GLOB golden_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/golden/*.c)
if(golden_sources)
  add_executable(run_goldens ${golden_sources})
  target_link_libraries(run_goldens PRIVATE ent_core_all)
  ent_test_program(run_goldens golden)
endif()

# Command-line tests need no compiler of their own: scripts over the built programs.
file(GLOB script_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/cli/*.sh ${PROJECT_SOURCE_DIR}/tests/cli/*.py)
foreach(script IN LISTS script_tests)
  get_filename_component(name ${script} NAME_WE)
  add_test(NAME cli/${name} COMMAND ${script} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(cli/${name} PROPERTIES TIMEOUT 600
                       ENVIRONMENT "${ENT_TEST_ENVIRONMENT};ENTENTE=${PROJECT_BINARY_DIR}/bin/entente")
endforeach()
