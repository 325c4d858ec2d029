/* Libraries that must be refused before anything of them is called. Built once for each fault
 * (-DBROKEN_FAULT=n, see CMakeLists.txt); functions that must never run end the process. */
#include "abi/ent_plugin.h"

#include <stdlib.h>

#define NO_SYMBOL 1
#define TOO_NEW 2
#define TOO_OLD 3
#define SMALL_TABLE 4
#define NO_FUNCTIONS 5
#define MUST_UNDERSTAND 6
#define MISSING_DEPENDENCY 7
#define OPEN_FAILS 8
#define NO_DEVICES 9

#if BROKEN_FAULT == NO_SYMBOL
extern const int entente_plugin_by_another_name;
const int entente_plugin_by_another_name = 1;
#else

#if BROKEN_FAULT == MISSING_DEPENDENCY
int absent_function(void);
#endif

static ent_code open_plugin(const ent_host *host, const ent_call *call, ent_state **out) {
    static int state;
    (void)host;
#if BROKEN_FAULT == MISSING_DEPENDENCY
    absent_function();
#endif
    if (BROKEN_FAULT == NO_DEVICES) {
        *out = (ent_state *)(void *)&state;
        return ENT_OK;
    }
    if (BROKEN_FAULT != OPEN_FAILS) abort();
    static const char text[] = "no such hardware on the bus";
    call->fail(call->context, (ent_str){text, sizeof text - 1});
    return ENT_CODE_UNSUPPORTED;
}

static void close_plugin(ent_state *state) {
    (void)state;
    if (BROKEN_FAULT != NO_DEVICES) abort();
}

static const void *get_interface(uint32_t id, uint32_t version) {
    (void)id;
    (void)version;
    if (BROKEN_FAULT != NO_DEVICES) abort();
    return NULL;
}

const ent_plugin ent_plugin_v1 = {
    .head = {BROKEN_FAULT == SMALL_TABLE ? 40 : sizeof(ent_plugin),
             BROKEN_FAULT == MUST_UNDERSTAND ? ENT_MUST_UNDERSTAND | 900u : ENT_STRUCT_PLUGIN, NULL},
    .abi_min = BROKEN_FAULT == TOO_NEW   ? 2
               : BROKEN_FAULT == TOO_OLD ? 0
                                         : 1,
    .abi_max = BROKEN_FAULT == TOO_NEW   ? 3
               : BROKEN_FAULT == TOO_OLD ? 0
                                         : 1,
    .name = ENT_STR("broken"),
    .vendor = ENT_STR("Tests"),
    .version = ENT_STR("1"),
    .depths = ENT_DEPTH_REGION,
    .max_parallel_calls = 1,
    .open = open_plugin,
    .close = BROKEN_FAULT == NO_FUNCTIONS ? NULL : close_plugin,
    .get_interface = get_interface,
};
#endif
