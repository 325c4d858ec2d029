/* The plugin ABI, version 1: what a backend exports and what the host gives it.
 *
 * A plugin is one shared library with one exported data symbol, `ent_plugin_v1`, a constant. The host reads
 * head.size, abi_min and abi_max of it and calls nothing before it has accepted them. Everything else is
 * reached through small interfaces, each with an id and a version of its own.
 *
 * Growth rules
 * - The symbol's name and the fields of ent_plugin up to `get_interface` never change.
 * - Interface tables and call contexts start with ent_head. A reader uses min(theirs, ours) bytes and takes
 * the rest as zero; a zero function pointer is "not offered". Fields are only appended. A change of meaning
 * is a new id or version.
 * - Negotiation messages, regions and tile programs are bytes (ent_message.h), never structs.
 * - Unknown `next` entries are ignored, unless their type has ENT_MUST_UNDERSTAND set: then the call is
 * refused.
 * - `tests/abi/layout.txt` holds every size and offset; a difference fails the check. CHANGELOG.md names
 * every addition.
 *
 * Threads: get_interface and open from any thread. Functions taking a device: one thread at a time per
 * device, except where a function says otherwise. Plugin threads end before close returns. Memory: inputs are
 * valid for the call. Bytes that a plugin returns are allocated with call->allocate and belong to the host.
 * Errors: a code, and a sentence through call->fail (or ent_host.log where there is no call). "No" is an
 * answer in a message. */
#ifndef ENT_PLUGIN_H
#define ENT_PLUGIN_H

#include "abi/ent_types.h"

#define ENT_ABI_VERSION 1u
#define ENT_MUST_UNDERSTAND 0x80000000u

typedef struct ent_head {
    uint32_t size; /* sizeof the whole struct, as the writer knows it */
    uint32_t type; /* ent_struct_type */
    const void *next;
} ent_head;

typedef enum ent_struct_type {
    ENT_STRUCT_PLUGIN = 1,
    ENT_STRUCT_HOST = 2,
    ENT_STRUCT_CALL = 3,
    ENT_STRUCT_DEVICE_V1 = 16,
    ENT_STRUCT_NEGOTIATE_V1 = 17,
    ENT_STRUCT_COMPILE_V1 = 18,
    ENT_STRUCT_BLOB_V1 = 19,
    ENT_STRUCT_RUNTIME_V1 = 20,
    ENT_STRUCT_SUBMIT = 32
} ent_struct_type;

/* Interface ids for get_interface(id, 1). */
typedef enum ent_interface_id {
    ENT_INTERFACE_DEVICE = 1,    /* ent_device_v1; required */
    ENT_INTERFACE_NEGOTIATE = 2, /* ent_negotiate_v1; without it the declaration's prices stand */
    ENT_INTERFACE_COMPILE = 3,   /* ent_compile_v1; without it nothing is placed on the device */
    ENT_INTERFACE_BLOB = 4,      /* ent_blob_v1; optional */
    ENT_INTERFACE_RUNTIME = 5    /* ent_runtime_v1; required to run */
} ent_interface_id;

typedef struct ent_bytes {
    const uint8_t *data;
    size_t size;
} ent_bytes;

/* Opaque: the plugin's own. */
typedef struct ent_state ent_state;
typedef struct ent_device ent_device;
typedef struct ent_buffer ent_buffer;
typedef struct ent_queue ent_queue;
typedef struct ent_fence ent_fence;
typedef struct ent_kernel ent_kernel;

/* What the host offers for a plugin's whole life. */
typedef struct ent_host {
    ent_head head;
    void *context;
    void *(*allocate)(void *context, size_t size_bytes, size_t alignment); /* NULL when out of memory */
    void (*release)(void *context, void *memory);
    void (*log)(void *context, uint32_t level, ent_str text); /* 0 error .. 3 debug */
} ent_host;

/* Passed to every call that may be slow. */
typedef struct ent_call {
    ent_head head;
    void *context;
    uint64_t deadline_ns; /* monotonic clock; 0: none. After it: partial result, ENT_CODE_DEADLINE */
    bool (*cancelled)(void *context);                            /* poll at least every 50 ms; may be NULL */
    void (*progress)(void *context, double done, ent_str phase); /* may be NULL */
    void *(*allocate)(void *context, size_t size_bytes);         /* for returned bytes */
    void (*fail)(void *context, ent_str text); /* the sentence behind a code other than ENT_OK */
    /* Bytes of a constant named by content hash in a message; false if unknown. Valid for the call. */
    bool (*constant)(void *context, uint64_t hash_low, uint64_t hash_high, ent_bytes *out);
    uint64_t correlation;
} ent_call;

/* One named parameter of a device, such as {"variant","avx2"}, {"threads","2"}, {"cache","/path"},
 * {"profile","/x.json"}. Unknown names are refused with the name unless they start with "hint.". */
typedef struct ent_parameter {
    ent_str name, value;
} ent_parameter;

typedef struct ent_device_v1 {
    ent_head head;
    /* Names of the devices this plugin can open here, newline separated; empty when the hardware is absent
     * (text says why). */
    ent_code (*list)(ent_state *state, const ent_call *call, ent_bytes *out_names);
    ent_code (*open)(ent_state *state, const ent_call *call, const ent_parameter *parameters, size_t count,
                     ent_device **out);
    void (*close)(ent_device *device); /* NULL is fine */
    /* The capability document (JSON, capability-db schema 1) of an opened device. */
    ent_code (*declare)(ent_device *device, const ent_call *call, ent_bytes *out_json);
} ent_device_v1;

/* Each takes a message and returns one (see ent_message.def for the kinds). Pure and repeatable: same bytes,
 * same answer. */
typedef struct ent_negotiate_v1 {
    ent_head head;
    ent_code (*survey)(ent_device *device, const ent_call *call, const uint8_t *request, size_t size,
                       ent_bytes *out_reply);
    ent_code (*quote)(ent_device *device, const ent_call *call, const uint8_t *request, size_t size,
                      ent_bytes *out_reply);
    ent_code (*award)(ent_device *device, const ent_call *call, const uint8_t *request, size_t size,
                      ent_bytes *out_reply);
} ent_negotiate_v1;

typedef struct ent_compile_v1 {
    ent_head head;
    /* depth GRAPH, REGION: request is a region message. TILE: a tile_program message. The blob is
     * self-contained but for constants, which are bound at run time like inputs. May overlap with itself up
     * to max_parallel_calls. */
    ent_code (*compile)(ent_device *device, const ent_call *call, uint32_t depth, const uint8_t *request,
                        size_t size, ent_bytes *out_blob);
} ent_compile_v1;

typedef struct ent_blob_v1 {
    ent_head head;
    /* Can this blob run here? ENT_OK, or ENT_CODE_ISA_MISSING / UNSUPPORTED with a sentence naming wanted and
     * present. Needs no device. Hostile bytes are refused. */
    ent_code (*check)(ent_state *state, const ent_call *call, const uint8_t *blob, size_t size);
    /* What the blob needs, as one line of text such as "cpu isa=avx2". */
    ent_code (*requirement)(ent_state *state, const ent_call *call, const uint8_t *blob, size_t size,
                            ent_bytes *out_text);
} ent_blob_v1;

typedef struct ent_buffer_ref {
    ent_buffer *buffer;
    uint64_t offset_bytes;
    uint64_t size_bytes;
} ent_buffer_ref;

typedef struct ent_fence_point {
    ent_fence *fence;
    uint64_t value;
} ent_fence_point;

typedef enum ent_step_kind { ENT_STEP_DISPATCH = 1, ENT_STEP_COPY = 2 } ent_step_kind;

/* One step of a submission. Timestamps are nanoseconds of one monotonic clock per queue. */
typedef struct ent_step {
    uint32_t kind; /* ent_step_kind */
    uint32_t binding_count;
    ent_kernel *kernel; /* DISPATCH */
    const ent_buffer_ref
        *bindings; /* DISPATCH: the kernel's ports in order; COPY: source, destination of equal size */
    const int64_t *symbols; /* DISPATCH: values of the blob's symbols */
    uint32_t symbol_count;
    uint32_t reserved;
    uint64_t *timestamps; /* NULL, or room for begin and end, written before the submission signals */
} ent_step;

typedef struct ent_submit {
    ent_head head;
    const ent_fence_point *waits;
    uint32_t wait_count;
    uint32_t step_count;
    const ent_step *steps;
    const ent_fence_point *signals;
    uint32_t signal_count;
    uint32_t reserved;
} ent_submit;

/* What a loaded kernel really does. */
typedef struct ent_kernel_info {
    uint32_t size; /* in: room the caller has; fields beyond it are not written */
    uint32_t tier; /* ent_tier, settled by the executor */
    uint64_t scratch_bytes;
    char path[64]; /* NUL-terminated, such as "gemm 6x16 avx2" */
} ent_kernel_info;

/* Buffers, queues, fences and kernels are created from any thread; a queue is used by one thread at a time.
 * Fences are free-threaded. submit does not block longer than it takes to accept the work (a host device may
 * do the work inside it when every wait has passed). A failed step makes its signals carry the error: wait
 * returns its code. */
typedef struct ent_runtime_v1 {
    ent_head head;
    ent_code (*buffer_create)(ent_device *device, const ent_call *call, uint64_t size_bytes,
                              ent_buffer **out);
    /* Uses the caller's memory, which must outlive the buffer; 64-byte aligned or the plugin may refuse.
     * read_only: never written. */
    ent_code (*buffer_import)(ent_device *device, const ent_call *call, void *memory, uint64_t size_bytes,
                              bool read_only, ent_buffer **out);
    void (*buffer_destroy)(ent_buffer *buffer);
    /* Host address of the contents, NULL when the memory is not host-visible (then read and write). */
    void *(*buffer_map)(ent_buffer *buffer);
    ent_code (*buffer_read)(ent_buffer *buffer, uint64_t offset_bytes, void *out, uint64_t size_bytes);
    ent_code (*buffer_write)(ent_buffer *buffer, uint64_t offset_bytes, const void *data,
                             uint64_t size_bytes);
    ent_code (*queue_create)(ent_device *device, const ent_call *call, ent_queue **out);
    void (*queue_destroy)(ent_queue *queue); /* waits for its work */
    ent_code (*fence_create)(ent_device *device, const ent_call *call, uint64_t initial, ent_fence **out);
    void (*fence_destroy)(ent_fence *fence);
    ent_code (*fence_signal)(ent_fence *fence, uint64_t value);
    ent_code (*fence_wait)(ent_fence *fence, uint64_t value, uint64_t timeout_ns); /* ENT_CODE_TIMEOUT */
    uint64_t (*fence_value)(ent_fence *fence);
    /* Blob bytes stay valid while the kernel lives (they are in the mapped bundle). */
    ent_code (*kernel_load)(ent_device *device, const ent_call *call, const uint8_t *blob, size_t size,
                            ent_kernel **out);
    void (*kernel_unload)(ent_kernel *kernel);
    ent_code (*kernel_info)(ent_kernel *kernel, ent_kernel_info *out);
    ent_code (*submit)(ent_queue *queue, const ent_call *call, const ent_submit *submit);
} ent_runtime_v1;

typedef struct ent_plugin {
    ent_head head;
    uint32_t abi_min, abi_max; /* ABI versions it can speak */
    ent_str name, vendor, version;
    uint32_t depths;             /* set of ent_depth */
    uint32_t max_parallel_calls; /* of compile and quote; at least 1 */
    ent_code (*open)(const ent_host *host, const ent_call *call, ent_state **out);
    void (*close)(ent_state *state);
    const void *(*get_interface)(uint32_t id, uint32_t version); /* NULL: not offered */
} ent_plugin;

/* Makes a compile-time ent_str from a literal. */
#define ENT_STR(literal)                                                                                     \
    { (literal), sizeof(literal) - 1 }

#if defined(__GNUC__)
#define ENT_EXPORT __attribute__((visibility("default")))
#else
#define ENT_EXPORT
#endif

/* The one exported symbol. */
extern ENT_EXPORT const ent_plugin ent_plugin_v1;

#endif
