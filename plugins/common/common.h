/* What plugins that run on host memory share: buffers, queues, timeline fences and submission
 * (ent_runtime_v1), and whole regions evaluated through core/ops. A plugin uses the parts it likes:
 * everything here is static library code inside the plugin.
 *
 * Threads: as abi/ent_plugin.h says. Memory comes from the ent_host given at open. */
#ifndef ENT_PLUGINS_COMMON_H
#define ENT_PLUGINS_COMMON_H

#include "abi/ent_message.h"
#include "abi/ent_ops.h"
#include "abi/ent_plugin.h"
#include "core/ops/ops.h"

/* ---- plugin state and errors ---- */

struct ent_state {
    const ent_host *host;
};
ent_code ent_common_open(const ent_host *host, const ent_call *call, ent_state **out);
void ent_common_close(ent_state *state);
/* Zeroed, 64-byte aligned; NULL when out of memory. */
void *ent_common_allocate(const ent_host *host, size_t size_bytes);
void ent_common_release(const ent_host *host, void *memory);
/* Sets the sentence behind a code and returns the code. */
ent_code ent_common_fail(const ent_call *call, ent_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A line of the host's log: "who: why". */
void ent_common_log_failure(const ent_host *host, const char *who, const char *why);
/* Copies bytes into the call's memory. */
ent_code ent_common_reply(const ent_call *call, const void *data, size_t size, ent_bytes *out);
/* The value of a parameter, or NULL; "hint." parameters that nobody asks for are fine, others are an error of
 * check_parameters. */
const ent_parameter *ent_common_parameter(const ent_parameter *parameters, size_t count, const char *name);
ent_code ent_common_check_parameters(const ent_call *call, const ent_parameter *parameters, size_t count,
                                     const char *const *known);
/* A message writer over the call's memory; finish with ent_message_end and pass writer.data, writer.size on.
 */
void ent_common_writer(ent_message_writer *writer, const ent_call *call, uint32_t kind);

/* ---- devices and kernels: a plugin embeds these heads ---- */

struct ent_device {
    const ent_host *host;
};

/* addresses[i] is the host memory of binding i. Returns a code; text of a failure goes to the host's log. */
typedef ent_code (*ent_common_run)(ent_kernel *kernel, void *const *addresses, const ent_step *step);

struct ent_kernel {
    const ent_host *host;
    ent_common_run run;
    uint32_t tier;
    uint32_t binding_count;
    uint64_t scratch_bytes;
    const uint64_t *binding_bytes; /* least size of each binding; checked at submit */
    char path[64];
    const uint8_t *binding_writes; /* not 0: the kernel writes it, so no read-only buffer may stand there;
                                      NULL: unknown */
};

/* Each binding of the step has at least bytes[i]: for kernels whose sizes follow the step's symbols. */
bool ent_common_bindings_fit(const ent_step *step, const uint64_t *bytes, uint32_t count);

/* ---- ent_runtime_v1 over host memory (all but kernel_load and kernel_unload) ---- */

ent_code ent_common_buffer_create(ent_device *device, const ent_call *call, uint64_t size_bytes,
                                  ent_buffer **out);
ent_code ent_common_buffer_import(ent_device *device, const ent_call *call, void *memory, uint64_t size_bytes,
                                  bool read_only, ent_buffer **out);
void ent_common_buffer_destroy(ent_buffer *buffer);
void *ent_common_buffer_map(ent_buffer *buffer);
ent_code ent_common_buffer_read(ent_buffer *buffer, uint64_t offset_bytes, void *out, uint64_t size_bytes);
ent_code ent_common_buffer_write(ent_buffer *buffer, uint64_t offset_bytes, const void *data,
                                 uint64_t size_bytes);
ent_code ent_common_queue_create(ent_device *device, const ent_call *call, ent_queue **out);
void ent_common_queue_destroy(ent_queue *queue);
ent_code ent_common_fence_create(ent_device *device, const ent_call *call, uint64_t initial, ent_fence **out);
void ent_common_fence_destroy(ent_fence *fence);
ent_code ent_common_fence_signal(ent_fence *fence, uint64_t value);
ent_code ent_common_fence_wait(ent_fence *fence, uint64_t value, uint64_t timeout_ns);
uint64_t ent_common_fence_value(ent_fence *fence);
ent_code ent_common_kernel_info(ent_kernel *kernel, ent_kernel_info *out);
ent_code ent_common_submit(ent_queue *queue, const ent_call *call, const ent_submit *submit);
uint64_t ent_common_now_ns(void);

/* ---- sizes ---- */

/* The symbols and size expressions of a message, checked: every expression uses earlier ones and known
 * symbols. */
typedef struct ent_common_sizes {
    const ent_host *host;
    ent_expr *exprs;
    int64_t *values; /* room for one an expression */
    bool *unbounded; /* per expression: it depends on a symbol without an end, which no step's symbols hold */
    uint32_t expr_count, symbol_count;
} ent_common_sizes;
/* Reads them all and rewinds the reader. Release it whatever the code is. */
ent_code ent_common_sizes_read(const ent_host *host, const ent_call *call, ent_message_reader *reader,
                               ent_common_sizes *out);
void ent_common_sizes_release(ent_common_sizes *sizes);

/* ---- regions ---- */

typedef struct ent_common_value {
    uint64_t id;
    ent_tensor tensor; /* dtype, dims; layout plain unless it is a port; data set while running */
    uint32_t port;     /* index, or UINT32_MAX: an intermediate */
    uint64_t offset;   /* of an intermediate in the scratch block */
    bool written;      /* some node makes it */
    ent_dim dims[ENT_MAX_RANK];
    uint32_t first, last; /* nodes between which it lives; first UINT32_MAX: no node makes it */
} ent_common_value;

typedef struct ent_common_node {
    uint32_t op;
    ent_attrs attrs;
    const uint32_t *inputs; /* value indices, UINT32_MAX absent */
    uint32_t input_count;
    const uint32_t *outputs;
    uint32_t output_count;
} ent_common_node;

typedef struct ent_common_region {
    ent_common_value *values;
    uint32_t value_count;
    ent_common_node *nodes; /* in execution order */
    uint32_t node_count;
    uint32_t *ports; /* port index -> value index */
    uint32_t port_count;
    uint64_t scratch_bytes;
    const ent_tensor **inputs; /* of the node that runs; room for the node with the most */
    ent_tensor **outputs;
    ent_common_sizes sizes;
    void *block; /* all of the above; one allocation chain owned by the region */
    const ent_host *host;
} ent_common_region;

/* Decodes and checks a region message (hostile bytes are refused with a sentence), orders its nodes, and
 * plans intermediates; with symbols (region->sizes.symbol_count) that is left to ent_common_region_resize. */
ent_code ent_common_region_create(const ent_host *host, const ent_call *call, const uint8_t *bytes,
                                  size_t size, ent_common_region **out);
/* Sizes for these values of the symbols: dims, bytes of ports, offsets, scratch_bytes. INVALID_ARGUMENT when
 * a size is negative or none; the region cannot run then until a call succeeds. */
ent_code ent_common_region_resize(ent_common_region *region, const int64_t *symbols, uint32_t symbol_count);
void ent_common_region_destroy(ent_common_region *region);
/* Runs it through core/ops; addresses[i] is port i's memory; scratch has scratch_bytes. One thread at a time
 * per region. */
ent_code ent_common_region_run(ent_common_region *region, void *const *addresses, void *scratch,
                               ent_ops_error *error);

/* quote and award of ent_negotiate_v1 for devices that run whatever core/ops evaluates. Each region is
 * accepted or declined; a decline carries one reason: node.unsupported (no evaluation for operator and
 * dtype), dtype.unsupported, rank.unknown, dims.open (known only at run time), layout.unknown, message.* (the
 * request contradicts itself). An accept names a quote and no price: the price that the declaration gives is
 * firm. Award accepts what was quoted. Keep no state; any thread. */
ent_code ent_common_quote(ent_device *device, const ent_call *call, const uint8_t *request, size_t size,
                          ent_bytes *out_reply);
ent_code ent_common_award(ent_device *device, const ent_call *call, const uint8_t *request, size_t size,
                          ent_bytes *out_reply);

/* A kernel that evaluates a region: tier GENERIC. Blob = header "ENTREGN1" + the region message. */
ent_code ent_common_region_blob(const ent_call *call, const uint8_t *request, size_t size,
                                ent_bytes *out_blob);
bool ent_common_is_region_blob(const uint8_t *blob, size_t size);
ent_code ent_common_region_kernel_load(ent_device *device, const ent_call *call, const uint8_t *blob,
                                       size_t size, ent_kernel **out);
void ent_common_region_kernel_unload(ent_kernel *kernel);
/* compile of ent_compile_v1 at depth REGION: checks the region and makes it a blob. */
ent_code ent_common_region_compile(ent_device *device, const ent_call *call, uint32_t depth,
                                   const uint8_t *request, size_t size, ent_bytes *out_blob);

/* An ent_runtime_v1 on host memory: all of the above, and the plugin's own kernels. */
#define ENT_COMMON_RUNTIME(kernel_load, kernel_unload)                                                       \
    {                                                                                                        \
        {sizeof(ent_runtime_v1), ENT_STRUCT_RUNTIME_V1, NULL}, ent_common_buffer_create,                     \
            ent_common_buffer_import, ent_common_buffer_destroy, ent_common_buffer_map,                      \
            ent_common_buffer_read, ent_common_buffer_write, ent_common_queue_create,                        \
            ent_common_queue_destroy, ent_common_fence_create, ent_common_fence_destroy,                     \
            ent_common_fence_signal, ent_common_fence_wait, ent_common_fence_value, kernel_load,             \
            kernel_unload, ent_common_kernel_info, ent_common_submit                                         \
    }

/* get_interface of a plugin that runs whatever core/ops evaluates, but for its device interface: negotiate
 * (quote and award, no survey), compile at region depth, and a runtime on host memory whose kernels are
 * regions. NULL for others. */
const void *ent_common_region_interface(uint32_t id, uint32_t version);

#endif
