/* A device for fusion's tests, made by hand. */
#ifndef FUSION_DEVICE_H
#define FUSION_DEVICE_H

#include "core/capability/capability.h"

/* Two cores with AVX2: 6 x 16 unit, 100 GFLOP/s each. */
static inline const ent_capability *fusion_test_capability(void) {
    static const ent_memory_level levels[] = {{"l1", "unit", 32768, 200, 200, 0},
                                              {"l2", "unit", 524288, 60, 60, 0},
                                              {"l3", "device", 32u << 20, 60, 60, 30},
                                              {"dram", "device", 8ull << 30, 20, 20, 12}};
    static const ent_matrix_unit units[] = {
        {ENT_DTYPE_F32, ENT_DTYPE_F32, ENT_DTYPE_F32, 6, 16, 1, 100, true, 16, "fma 6x16"},
        {ENT_DTYPE_U8, ENT_DTYPE_I8, ENT_DTYPE_I32, 1, 16, 4, 200, true, 16, "bytes"},
        {ENT_DTYPE_I8, ENT_DTYPE_I8, ENT_DTYPE_I32, 1, 16, 4, 200, true, 16, "bytes"}};
    static ent_capability capability;
    capability.name = "test";
    capability.units = 2;
    capability.levels = levels;
    capability.level_count = 4;
    capability.matrix_units = units;
    capability.matrix_unit_count = 3;
    capability.tile = (ent_tile_cost){500, 2000, 60, 15, 0.85, 0.08, 0.4, 0.9, 0.1, 1.0, 1.2, 20};
    return &capability;
}

#endif
