/* What every operator and every tile program means, in plain C. Depends on abi/ only: vendors link it
 * (libententeops.a). Speed is no aim; being right and readable is. Nothing here keeps state; every function
 * may run on any thread. */
#ifndef ENT_OPS_MEANING_H
#define ENT_OPS_MEANING_H

#include "abi/ent_ops.h"
#include "abi/ent_tile.h"
#include "abi/ent_types.h"

/* Why an evaluation was refused. text is NUL-terminated and cut to fit. */
typedef struct ent_ops_error {
    ent_code code;
    char text[256];
} ent_ops_error;

/* Scratch allocation of an evaluation: NULL on failure. Every block got is released before the call returns.
 */
typedef struct ent_ops_memory {
    void *(*allocate)(void *context, size_t size_bytes);
    void (*release)(void *context, void *memory);
    void *context;
} ent_ops_memory;
/* malloc and free. */
const ent_ops_memory *ent_ops_memory_default(void);

/* True when ent_ops_evaluate covers the operator for the dtype of input 0 (control operators are never
 * covered). */
bool ent_ops_supported(uint32_t op, uint32_t dtype);

/* Evaluates one operator, in its newest ai.onnx meaning, on host tensors of any strided layout.
 * inputs[i] may be NULL (absent optional input); outputs[i] may be NULL (not wanted). Output tensors are
 * allocated by the caller with the right dtype, dims and layout (dims come from shape inference, so that
 * data-dependent outputs must be sized by ent_ops_output_dims first). f16 and bf16 compute in f32. Composites
 * (LayerNormalization, Gelu, Attention ...) are evaluated whole. Returns ENT_OK, or the code that is also in
 * error. */
ent_code ent_ops_evaluate(uint32_t op, ent_attrs attrs, const ent_tensor *const *inputs, uint32_t input_count,
                          ent_tensor *const *outputs, uint32_t output_count, const ent_ops_memory *memory,
                          ent_ops_error *error);

/* Output dtypes, ranks and dims from concrete inputs: the shape rule on real tensors (NonZero counts). Fills
 * dtype, rank and dims of each output (data untouched). Used by folding and by backends that evaluate whole
 * regions. */
ent_code ent_ops_output_dims(uint32_t op, ent_attrs attrs, const ent_tensor *const *inputs,
                             uint32_t input_count, ent_tensor *outputs, uint32_t output_count,
                             ent_ops_error *error);

/* Copies src to dst (same dtype and dims, any strided layouts), zero-filling block padding of dst. Fast paths
 * for contiguous runs and 2-D transposes. */
ent_code ent_ops_convert(const ent_tensor *src, ent_tensor *dst, ent_ops_error *error);

/* Element access as double or int64, any numeric dtype incl. sub-byte and 8-bit float. `index` is a physical
 * element index. */
double ent_ops_load_f64(const void *data, uint32_t dtype, int64_t index);
void ent_ops_store_f64(void *data, uint32_t dtype, int64_t index, double value);
int64_t ent_ops_load_i64(const void *data, uint32_t dtype, int64_t index);
void ent_ops_store_i64(void *data, uint32_t dtype, int64_t index, int64_t value);

/* One elementwise function of Tile IR on doubles (integers go through ent_ops_map_i64). `f` has two entries,
 * as in ent_tile_op. Comparisons and logic give 0 or 1. Max, Min, Clip and Relu pass NaN on. Mod is C's fmod.
 * 0 for an unknown map. */
double ent_ops_map_f64(uint32_t map, const double *f, double a, double b, double c);
/* The same on integers: sums and products wrap, division rounds to zero and gives 0 for divisor 0, Mod takes
 * the divisor's sign (floor). 0 for a map that is ENT_OPS_MAP_FLOAT. */
int64_t ent_ops_map_i64(uint32_t map, const double *f, int64_t a, int64_t b, int64_t c);

/* Which dtypes a map takes. */
typedef enum ent_ops_map_class {
    ENT_OPS_MAP_FLOAT = 1,   /* float sources, same dtype as dst */
    ENT_OPS_MAP_NUMBER = 2,  /* float or integer sources, same dtype as dst */
    ENT_OPS_MAP_COMPARE = 3, /* sources of one dtype, dst bool */
    ENT_OPS_MAP_LOGIC = 4,   /* bool everywhere */
    ENT_OPS_MAP_SELECT = 5,  /* source 0 bool, the others and dst of one dtype */
    ENT_OPS_MAP_CAST = 6     /* any dtype to any dtype */
} ent_ops_map_class;
typedef struct ent_ops_map_info {
    const char *name; /* lower case, as in the text form */
    uint32_t sources;
    uint32_t map_class;  /* ent_ops_map_class */
    uint32_t parameters; /* of f[] */
} ent_ops_map_info;
/* NULL for an unknown map. */
const ent_ops_map_info *ent_ops_map_info_get(uint32_t map);

/* "load", "mma" ...; "unknown" otherwise. */
const char *ent_ops_tile_opcode_name(uint32_t opcode);

/* Checks a tile program against every rule of ent_tile.h (ids, ranks, shapes, dtypes, loops, read before
 * write, copies and waits). Any bytes in the arrays are safe. ENT_CODE_INVALID_ARGUMENT with "op 3 (mma):
 * ..." in error otherwise. */
ent_code ent_ops_tile_verify(const ent_tile_program *program, ent_ops_error *error);

/* Runs every instance of a tile program, after ent_ops_tile_verify. buffers[i] is the host memory of
 * program->buffers[i] (SCRATCH ones are allocated here when NULL). symbols: one value per program symbol.
 * memory NULL: the default. ENT_CODE_INVALID_ARGUMENT also when instances get into each other's way: two
 * store one element, or one loads from an output or scratch what it has not stored itself. */
ent_code ent_ops_tile_interpret(const ent_tile_program *program, void *const *buffers, const int64_t *symbols,
                                const ent_ops_memory *memory, ent_ops_error *error);

#endif
