/* Tile shapes of contractions: every multiple of the matrix unit that the caches allow is priced, the
 * cheapest wins. */
#include <math.h>
#include <string.h>

#include "core/fusion/internal.h"

double fusion_level_bytes(const ent_capability *capability, const char *name, double otherwise) {
    for (uint32_t i = 0; i < capability->level_count; i++)
        if (capability->levels[i].name && strcmp(capability->levels[i].name, name) == 0)
            return (double)capability->levels[i].bytes;
    return otherwise;
}

typedef struct chooser {
    const fusion_shape *shape;
    double units, l1, l2, l3_gbps, gflops, instance_ns, op_ns;
    int64_t um, un;
    double best;
    fusion_tiles *out;
} chooser;

static void read_device(chooser *c, const ent_capability *capability) {
    c->units = capability->units ? capability->units : 1;
    c->l1 = fusion_level_bytes(capability, "l1", 32768);
    c->l2 = fusion_level_bytes(capability, "l2", c->l1 * 8);
    c->l3_gbps = 10;
    for (uint32_t i = 0; i < capability->level_count; i++) {
        const ent_memory_level *level = &capability->levels[i];
        if (level->name && strcmp(level->name, "l3") == 0)
            c->l3_gbps = level->unit_gbps > 0 ? level->unit_gbps : level->read_gbps;
    }
    if (c->l3_gbps <= 0) c->l3_gbps = 10;
    uint32_t dtype =
        fusion_is_byte(c->shape->dtype) ? c->shape->dtype : (uint32_t)ENT_DTYPE_F32; /* halves run in f32 */
    c->um = c->un = 1;
    c->gflops = 1;
    for (uint32_t i = 0; i < capability->matrix_unit_count; i++) {
        const ent_matrix_unit *unit = &capability->matrix_units[i];
        if (unit->dtype_a != dtype) continue;
        c->um = unit->m > 0 ? unit->m : 1;
        c->un = unit->n > 0 ? unit->n : 1;
        c->gflops = unit->gflops > 0 ? unit->gflops : 1;
        break;
    }
    if (capability->tile.mma_efficiency > 0) c->gflops *= capability->tile.mma_efficiency;
    c->instance_ns = capability->tile.instance_ns;
    c->op_ns = capability->tile.op_ns;
}

/* The largest block of k with one block of A and of B in half of L2; 0 when not even a short one fits. */
static int64_t choose_k(const chooser *c, int64_t rows, int64_t n) {
    int64_t k = c->shape->k;
    double room = c->l2 / 2;
    for (int64_t parts = 1; parts <= 64; parts++) {
        int64_t block = fusion_ceil(k, parts);
        if (parts > 1) block = fusion_ceil(block, 16) * 16;
        if (4.0 * (double)block * (double)(rows + n) <= room) return block < k ? block : k;
    }
    return 0;
}

static void consider(chooser *c, int64_t t1, int64_t t2, int64_t n) {
    const fusion_shape *s = c->shape;
    int64_t rows = t1 * t2, k = choose_k(c, rows, n);
    if (k == 0 || 4.0 * (double)(rows * n) > c->l1 * 0.75) return;
    double m_tiles = (double)(fusion_ceil(s->m1, t1) * fusion_ceil(s->m2, t2)),
           n_tiles = (double)fusion_ceil(s->n, n);
    double instances = m_tiles * n_tiles * (double)s->others, sum = (double)(s->k * s->taps);
    double filled =
        (double)(s->m1 * s->m2) / (m_tiles * (double)rows) * ((double)s->n / (n_tiles * (double)n));
    double padded = (double)(fusion_ceil(rows, c->um) * c->um * fusion_ceil(n, c->un) * c->un);
    double compute = 2 * padded * sum * filled / c->gflops;
    double blocks = (double)(s->taps * fusion_ceil(s->k, k));
    compute += c->instance_ns + c->op_ns * (2 + blocks);
    if (n < s->n) compute += FUSION_ROW_OPS * c->op_ns * (double)(s->maps * rows);
    if (blocks > 1) compute += 0.02 * (double)(rows * n) * ((double)fusion_ceil(s->k, k) - 1);
    double rounds = instances > 8 * c->units ? instances / c->units : ceil(instances / c->units);
    double a_all = 4.0 * (double)(s->m1 * s->m2 * s->k) * s->a_spread, b_all = 4.0 * (double)s->n * sum;
    /* What is read again for each tile of the other operand; a tile that L2 does not hold is read again even
     * by its neighbour. */
    double a_again = a_all < c->l2 / 2 ? 1 : n_tiles, b_again = b_all < c->l2 / 2 ? 1 : m_tiles;
    double a_tile = 4.0 * (double)(rows * s->k) * s->a_spread, b_tile = 4.0 * (double)n * sum;
    double a_stays = a_tile < c->l2 * 0.6 ? 1 : a_again, b_stays = b_tile < c->l2 * 0.6 ? 1 : b_again;
    double n_fast = a_all * a_stays + b_all * b_again, m_fast = b_all * b_stays + a_all * a_again;
    double traffic = (n_fast < m_fast ? n_fast : m_fast) * (double)s->others / (c->l3_gbps * c->units);
    double time = rounds * compute + 0.6 * traffic;
    if (time >= c->best) return;
    c->best = time;
    *c->out = (fusion_tiles){t1, t2, n, k, n_fast < m_fast};
}

static int64_t within(int64_t n, int64_t whole) {
    if (whole == 0) return n;
    int64_t tile = n < whole ? n : whole;
    while (whole % tile != 0) tile--;
    return tile;
}

void fusion_tiles_choose(const ent_capability *capability, const fusion_shape *shape, fusion_tiles *out) {
    static const int64_t columns[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32},
                         rows[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128};
    chooser c = {.shape = shape, .best = INFINITY, .out = out};
    read_device(&c, capability);
    *out = (fusion_tiles){1, shape->m2 < c.um ? shape->m2 : c.um,
                          within(shape->n < c.un ? shape->n : c.un, shape->n_within),
                          shape->k < 256 ? shape->k : 256, true};
    for (size_t j = 0; j < sizeof columns / sizeof columns[0]; j++) {
        int64_t n = c.un * columns[j] < shape->n ? c.un * columns[j] : shape->n;
        n = within(n, shape->n_within);
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            int64_t target = c.um * rows[i], t2 = shape->m2, t1 = 1;
            if (target < shape->m2) {
                t2 = fusion_ceil(shape->m2, fusion_ceil(shape->m2, target));
                int64_t rounded = fusion_ceil(t2, c.um) * c.um;
                if (shape->m1 == 1 && rounded < shape->m2) t2 = rounded;
            } else
                t1 = target / t2 < shape->m1 ? target / t2 : shape->m1;
            if (t1 > 1) t1 = fusion_ceil(shape->m1, fusion_ceil(shape->m1, t1));
            consider(&c, t1, t2, n);
            if (t1 == shape->m1 && t2 == shape->m2) break;
        }
        if (c.un * columns[j] >= shape->n) break;
    }
}
