# Third-party libraries, all from Debian, each behind one interface target.
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

function(ent_pkg_config target module)
  pkg_check_modules(${target} REQUIRED IMPORTED_TARGET ${module})
  add_library(${target} INTERFACE)
  target_link_libraries(${target} INTERFACE PkgConfig::${target})
endfunction()

ent_pkg_config(ent_cjson libcjson)
ent_pkg_config(ent_xxhash libxxhash)
ent_pkg_config(ent_protobuf_c libprotobuf-c)

# onnx.proto comes with libonnx-dev; its C form is made in the build folder.
find_program(ENT_PROTOC_C NAMES protoc-c REQUIRED)
find_path(ENT_ONNX_PROTO_DIR onnx/onnx.proto REQUIRED)
set(onnx_out ${PROJECT_BINARY_DIR}/generated)
add_custom_command(
  OUTPUT ${onnx_out}/onnx/onnx.pb-c.c ${onnx_out}/onnx/onnx.pb-c.h
  COMMAND ${CMAKE_COMMAND} -E make_directory ${onnx_out}
  COMMAND ${ENT_PROTOC_C} --proto_path=${ENT_ONNX_PROTO_DIR} --c_out=${onnx_out} onnx/onnx.proto
  DEPENDS ${ENT_ONNX_PROTO_DIR}/onnx/onnx.proto
  COMMENT "onnx.proto -> C" VERBATIM)
add_library(ent_onnx_proto STATIC ${onnx_out}/onnx/onnx.pb-c.c ${onnx_out}/onnx/onnx.pb-c.h)
target_compile_options(ent_onnx_proto PRIVATE -w)
target_include_directories(ent_onnx_proto SYSTEM PUBLIC ${onnx_out} ${onnx_out}/onnx)
target_link_libraries(ent_onnx_proto PUBLIC ent_protobuf_c)
