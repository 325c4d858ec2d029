# Every tests/unit/<prefix>_<topic>_test.c is a program of its own, run in the source folder. It is linked with what its prefix
# names: a core folder and what that may use; a plugin's kernels with what plugins may use; abi or message: core/host
# and core/ops; any other prefix: the whole core.
ent_pkg_config(ent_check check)
# libcheck's own limit of 4 s a test is for a quiet machine; the limit here is against tests that hang.
set(ENT_TEST_ENVIRONMENT
  "CK_DEFAULT_TIMEOUT=300"
  "ENTENTE_PLUGIN_PATH=${ENT_PLUGIN_OUTPUT_DIRECTORY}"
  "ENTENTE_TEST_BINARY_DIR=${PROJECT_BINARY_DIR}"
  "ASAN_OPTIONS=detect_leaks=1" "UBSAN_OPTIONS=print_stacktrace=1")

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

function(ent_test_libraries out name)
  string(REGEX REPLACE "_.*" "" prefix ${name})
  set(libraries ent_core_all)
  if(prefix IN_LIST runtime_folders OR prefix IN_LIST compiler_folders)
    set(libraries ent_${prefix})
  elseif(prefix MATCHES "^(abi|message)$")
    set(libraries ent_host ent_ops)
  elseif(EXISTS ${PROJECT_SOURCE_DIR}/plugins/${prefix})
    set(libraries ent_plugin_common ent_ops)
    foreach(kernels entente_${prefix}_kernels entente_${prefix}_kernels_simulated)
      if(TARGET ${kernels})
        list(PREPEND libraries ${kernels})
      endif()
    endforeach()
  endif()
  set(${out} ${libraries} PARENT_SCOPE)
endfunction()

# Hostile and broken plugins, for the tests that must survive them.
add_subdirectory(${PROJECT_SOURCE_DIR}/tests/plugins)

file(GLOB unit_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/unit/*_test.c)
foreach(source IN LISTS unit_tests)
  get_filename_component(name ${source} NAME_WE)
  string(REGEX REPLACE "_.*" "" prefix ${name})
  add_executable(${name} ${source})
  ent_test_libraries(libraries ${name})
  target_link_libraries(${name} PRIVATE ${libraries} ent_check ent_cjson)
  ent_test_program(${name} unit/${name})
  if(prefix MATCHES "^(host|plugin)$")
    add_dependencies(${name} test_plugins plugin_null plugin_reference plugin_sim)
  endif()
endforeach()

# One program runs the goldens of every stage.
file(GLOB golden_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/golden/*.c)
if(golden_sources)
  add_executable(run_goldens ${golden_sources})
  target_link_libraries(run_goldens PRIVATE ent_core_all)
  ent_test_program(run_goldens golden)
endif()

# Scripts over the built programs (tests/cli, tests/import) and over the checks themselves (tests/tools).
file(GLOB script_tests CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/tests/cli/*.sh
     ${PROJECT_SOURCE_DIR}/tests/cli/*.py ${PROJECT_SOURCE_DIR}/tests/import/run.py ${PROJECT_SOURCE_DIR}/tests/tools/*.py)
foreach(script IN LISTS script_tests)
  add_test(NAME ${script} COMMAND ${PROJECT_SOURCE_DIR}/tests/${script} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${script} PROPERTIES TIMEOUT 600
                       ENVIRONMENT "${ENT_TEST_ENVIRONMENT};ENTENTE=${PROJECT_BINARY_DIR}/bin/entente")
endforeach()
