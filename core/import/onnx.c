/* ONNX model files.
 *
 * The file is mapped; wire.c checks its bytes and takes the weights out; protobuf-c parses what is left into
 * scratch memory; graph.c, node.c and upgrade*.c build the module; constants go on pointing into the map.
 *
 * Not taken over: value_info and the declared shapes of outputs. They can be inferred, are often stale in
 * real files (edited batch sizes, converted dtypes), and other importers do not trust them either. Training
 * info and documentation are not read. An opset import that no node uses is no error.
 *
 * Shadowing: a name defined again in a nested graph means the inner value from there on inwards, although the
 * format forbids it.
 *
 * Rules (code: M model, U unsupported, L limit)
 *   file           empty M, truncated M, not-onnx M, not-utf8 M, embedded-nul M, no-graph M
 *   ir             missing M, version U
 *   limit          file-bytes L, nodes L, nesting L, tensor-bytes L, messages L, structure-bytes L,
 * attributes L opset          missing M, version U, repeated M operator       domain U, unknown U, version M,
 * arity M, missing-input M, no-type M, optional-value U, training U attribute      unknown M, missing M, type
 * M, repeated M, broadcast M, embedded-nul M, value M or U constant       no-value M, sparse U graph
 * duplicate-value M, undefined-value M, undefined-output M, no-outputs M, inputs M, output-count M, cycle M
 * (from core/graph) function       overload U, arity M, undefined-output M input          no-name M, no-type
 * M initializer    no-name M, type M, sparse U type not-tensor U shape          negative-dim M tensor dtype M
 * or U, string U, segment U, rank U, negative-dim M, overflow M, size M, range M, several-data M
 * external-data  no-location M, repeated-key M, absolute M, escapes M, embedded-nul M, missing M, unreadable
 * M, not-a-file M, offset M, length M, past-end M A rule's full name is "group.rule". Files that cannot be
 * opened carry the rules of core/base. */
#include "core/import/internal.h"

#include <string.h>

static ent_import_options with_defaults(const ent_import_options *options) {
    ent_import_options filled = options ? *options : (ent_import_options){0};
    if (filled.max_file_bytes == 0) filled.max_file_bytes = (uint64_t)16 << 30;
    if (filled.max_nodes == 0) filled.max_nodes = 1000000;
    if (filled.max_nesting == 0) filled.max_nesting = 64;
    if (filled.max_tensor_bytes == 0) filled.max_tensor_bytes = (uint64_t)16 << 30;
    return filled;
}

void ent_import_files_close(ent_import_files *files) {
    if (!files) return;
    for (uint32_t i = 0; i < files->maps.count; i++) ent_file_map_close(&files->maps.items[i].map);
    files->maps.count = 0;
}

/* Maps the file as number 0 and parses it. */
static ent_status open_file(ent_importer *importer, const ProtobufCMessageDescriptor *descriptor,
                            ProtobufCMessage **out) {
    ent_import_mapped mapped = {0};
    ENT_TRY(ent_file_map_open(importer->arena, importer->path, ENT_ERROR_MODEL, &mapped.map));
    ent_array_push(importer->arena, &importer->files->maps, mapped);
    if (mapped.map.size_bytes > importer->options.max_file_bytes)
        return ent_status_make(importer->arena, ENT_ERROR_LIMIT, "limit.file-bytes", importer->path,
                               "the file has %llu bytes, more than the allowed %llu",
                               (unsigned long long)mapped.map.size_bytes,
                               (unsigned long long)importer->options.max_file_bytes);
    ent_str bytes = {(const char *)mapped.map.data, mapped.map.size_bytes};
    ent_import_wire_limits limits = {importer->options.max_nodes, importer->options.max_nesting};
    return ent_import_wire_parse(importer->arena, importer->scratch, importer->path, bytes, descriptor,
                                 limits, out);
}

static ent_status check_header(const ent_importer *importer) {
    const Onnx__ModelProto *model = importer->model;
    if (!model->graph)
        return ent_status_make(importer->arena, ENT_ERROR_MODEL,
                               model->has_ir_version ? "file.no-graph" : "file.not-onnx", importer->path,
                               "the file holds no graph; expected an ONNX model");
    if (!model->has_ir_version)
        return ent_status_make(importer->arena, ENT_ERROR_MODEL, "ir.missing", importer->path,
                               "the model states no IR version");
    if (model->ir_version < ENT_IMPORT_MIN_IR || model->ir_version > ENT_IMPORT_MAX_IR)
        return ent_status_make(importer->arena, ENT_ERROR_UNSUPPORTED, "ir.version", importer->path,
                               "IR version %lld is not supported (%d to %d are); convert the model",
                               (long long)model->ir_version, ENT_IMPORT_MIN_IR, ENT_IMPORT_MAX_IR);
    return NULL;
}

static ent_status read_opsets(const ent_importer *importer, ent_import_opsets *out) {
    const Onnx__ModelProto *model = importer->model;
    out->items = model->opset_import;
    out->count = model->n_opset_import;
    for (size_t i = 0; i < out->count; i++) {
        const Onnx__OperatorSetIdProto *item = out->items[i];
        if (!ent_import_is_onnx_domain(item->domain)) continue;
        if (out->onnx && out->onnx != item->version)
            return ent_status_make(importer->arena, ENT_ERROR_MODEL, "opset.repeated", importer->path,
                                   "ai.onnx is imported twice, with opsets %lld and %lld",
                                   (long long)out->onnx, (long long)item->version);
        out->onnx = item->version;
        if (out->onnx < ENT_IMPORT_MIN_OPSET || out->onnx > ENT_IMPORT_MAX_OPSET)
            return ent_status_make(importer->arena, ENT_ERROR_UNSUPPORTED, "opset.version", importer->path,
                                   "opset %lld of ai.onnx is not supported (%d to %d are); convert the model",
                                   (long long)out->onnx, ENT_IMPORT_MIN_OPSET, ENT_IMPORT_MAX_OPSET);
    }
    return NULL;
}

static ent_status import_model(ent_importer *importer) {
    ProtobufCMessage *message = NULL;
    ent_import_opsets opsets = {0};
    ENT_TRY(open_file(importer, &onnx__model_proto__descriptor, &message));
    importer->model = (const Onnx__ModelProto *)message;
    ENT_TRY(check_header(importer));
    ENT_TRY(read_opsets(importer, &opsets));
    ENT_TRY(ent_import_functions_index(importer));
    ent_import_collect_uses(importer);
    importer->symbols = ent_map_create(importer->scratch);
    importer->module = ent_module_create(importer->arena, importer->path);
    ent_import_scope scope = {.names = ent_map_create(importer->scratch), /* graph 0 is main */
                              .opsets = &opsets,
                              .origin = ENT_ID_NONE,
                              .control_origin = ENT_ID_NONE,
                              .prefix = ""};
    ENT_TRY(ent_import_graph(importer, importer->model->graph, &scope));
    return ent_import_upgrade_finish(importer);
}

static ent_status begin(ent_importer *importer, ent_arena *arena, const char *path,
                        const ent_import_options *options) {
    *importer = (ent_importer){.arena = arena, .path = path, .options = with_defaults(options)};
    importer->scratch = ent_arena_create_beside(arena);
    importer->files = ent_arena_alloc(arena, sizeof *importer->files);
    return importer->scratch ? NULL : ent_status_out_of_memory();
}

ent_status ent_import_onnx(ent_arena *arena, const char *path, const ent_import_options *options,
                           ent_module **out, ent_import_files **out_files) {
    ent_importer importer;
    *out = NULL;
    *out_files = NULL;
    ENT_TRY(begin(&importer, arena, path, options));
    ent_status status = import_model(&importer);
    if (status) /* it may lie in scratch memory */
        status = ent_status_make(arena, status->code, status->rule, status->place, "%s", status->text);
    ent_arena_destroy(importer.scratch);
    if (status) {
        ent_import_files_close(importer.files);
        return status;
    }
    *out = importer.module;
    *out_files = importer.files;
    return NULL;
}

ent_status ent_import_tensor_pb(ent_arena *arena, const char *path, ent_tensor *out, const char **out_name) {
    ent_importer importer;
    ProtobufCMessage *message = NULL;
    bool borrow = false;
    *out = (ent_tensor){0};
    if (out_name) *out_name = NULL;
    ENT_TRY(begin(&importer, arena, path, NULL));
    importer.copy_data = true;
    ent_status status = open_file(&importer, &onnx__tensor_proto__descriptor, &message);
    const Onnx__TensorProto *proto = (const Onnx__TensorProto *)message;
    if (!status) status = ent_import_tensor(&importer, proto, path, out, &borrow);
    if (!status && out_name && proto->name) *out_name = ent_arena_strdup(arena, proto->name);
    ent_arena_destroy(importer.scratch);
    ent_import_files_close(importer.files);
    return status;
}
