# Compiler flags and the shape of the build tree, which is that of the install tree.
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON) # gnu11 only so that POSIX functions are declared; -Wpedantic still refuses extensions
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_FLAGS_RELEASE "-O2 -g") # assertions stay on: they guard against our own bugs

# No contraction outside the kernels: a reference result must not depend on the compiler.
add_compile_options(-Wall -Wextra -Wpedantic -ffp-contract=off)
add_link_options(-Wl,-z,defs)
if(ENTENTE_WERROR)
  add_compile_options(-Werror)
endif()
if(ENTENTE_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
  # libFuzzer reads the coverage counters of every module it has seen, of one that was closed too.
  string(APPEND CMAKE_MODULE_LINKER_FLAGS " -Wl,-z,nodelete")
endif()
if(ENTENTE_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
  if(CMAKE_C_COMPILER_ID MATCHES Clang)
    # clang links the sanitizer runtime into the program only: shared libraries find its symbols at load time.
    set_property(DIRECTORY PROPERTY LINK_OPTIONS -fsanitize=address,undefined)
  endif()
endif()

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/archive)
set(ENT_PLUGIN_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib/entente/plugins)
set(ENT_DATA_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/share/entente)
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
