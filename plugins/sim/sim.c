/* The sim backend: a device that is nothing but a capability document, run on core/ops.
 *
 * `sim:NAME` reads sim/NAME.json from the folder of this library; parameter "profile" names any other file.
 * The document is the declaration, word for word: what the device takes, in which layouts, and what it
 * promises to cost all come from it, and the quote makes the declared price firm. So a rival with odd demands
 * is one JSON file. The promise is the profile's; what executes is plain C, and the kernels say so (tier
 * generic). */
#define _GNU_SOURCE
#include "plugins/common/common.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_PROFILE_BYTES (1 << 20)
#define MAX_PATH_BYTES 4096

typedef struct sim_device {
    ent_device head;
    char *profile;
    size_t profile_bytes;
} sim_device;

/* Folder of the profiles: `sim` beside this library. False when the loader does not know the library. */
static bool profile_folder(char *out, size_t room) {
    Dl_info info;
    if (!dladdr(&ent_plugin_v1, &info) || !info.dli_fname) return false;
    const char *slash = strrchr(info.dli_fname, '/');
    int folder_bytes = slash ? (int)(slash - info.dli_fname) : 1;
    int size = snprintf(out, room, "%.*s/sim", folder_bytes, slash ? info.dli_fname : ".");
    return size > 0 && (size_t)size < room;
}

/* ---- the devices there are ---- */

static int is_profile(const struct dirent *entry) {
    size_t size = strlen(entry->d_name);
    return entry->d_name[0] != '.' && size > 5 && strcmp(entry->d_name + size - 5, ".json") == 0;
}

/* Names of a folder's profiles, one a line with `prefix` before and the rest of the file name cut off. */
static ent_code list_profiles(const ent_call *call, const char *prefix, ent_bytes *out) {
    char folder[MAX_PATH_BYTES], text[4096];
    size_t used = 0;
    struct dirent **entries = NULL;
    int count = profile_folder(folder, sizeof folder) ? scandir(folder, &entries, is_profile, alphasort) : 0;
    for (int i = 0; i < count; i++) {
        int stem = (int)strlen(entries[i]->d_name) - 5;
        int size = snprintf(text + used, sizeof text - used, "%s%s%.*s", used ? "\n" : "", prefix, stem,
                            entries[i]->d_name);
        if (size > 0 && (size_t)size < sizeof text - used) used += (size_t)size;
        free(entries[i]);
    }
    free(entries);
    return ent_common_reply(call, text, used, out);
}

static ent_code list_devices(ent_state *state, const ent_call *call, ent_bytes *out_names) {
    (void)state;
    return list_profiles(call, "sim:", out_names);
}

/* ---- opening ---- */

static bool is_plain_name(ent_str name) {
    for (size_t i = 0; i < name.size; i++) {
        char c = name.data[i];
        bool good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
        if (!good) return false;
    }
    return name.size > 0 && name.size < 64;
}

static ent_code refuse_name(const ent_call *call, ent_str name) {
    ent_bytes known = {NULL, 0};
    ent_code code = list_profiles(call, "", &known);
    if (code != ENT_OK) return code;
    char names[1024];
    int size = snprintf(names, sizeof names, "%.*s", (int)known.size, (const char *)known.data);
    for (int i = 0; i < size && names[i]; i++)
        if (names[i] == '\n') names[i] = ' ';
    return ent_common_fail(
        call, ENT_CODE_INVALID_ARGUMENT,
        "there is no profile '%.*s' (lower case, digits, - and _); write sim:NAME with one of: %s",
        (int)name.size, name.data, names);
}

/* The file that the parameters name. */
static ent_code find_profile(const ent_call *call, const ent_parameter *parameters, size_t count, char *out,
                             size_t room) {
    const ent_parameter *variant = ent_common_parameter(parameters, count, "variant");
    const ent_parameter *path = ent_common_parameter(parameters, count, "profile");
    if ((variant != NULL) == (path != NULL))
        return ent_common_fail(call, ENT_CODE_INVALID_ARGUMENT,
                               "sim needs either a variant (sim:NAME) or the parameter profile=PATH");
    char folder[MAX_PATH_BYTES];
    int size;
    if (path) {
        size = snprintf(out, room, "%.*s", (int)path->value.size, path->value.data);
    } else {
        if (!is_plain_name(variant->value)) return refuse_name(call, variant->value);
        if (!profile_folder(folder, sizeof folder))
            return ent_common_fail(call, ENT_CODE_INTERNAL, "the folder of the plugin is not known");
        size = snprintf(out, room, "%s/%.*s.json", folder, (int)variant->value.size, variant->value.data);
    }
    if (size < 0 || (size_t)size >= room)
        return ent_common_fail(call, ENT_CODE_INVALID_ARGUMENT, "the profile's path is too long");
    return ENT_OK;
}

static ent_code read_profile(const ent_call *call, const char *path, sim_device *device) {
    FILE *file = fopen(path, "rb");
    if (!file) return ent_common_fail(call, ENT_CODE_INVALID_ARGUMENT, "%s: cannot be opened", path);
    device->profile = ent_common_allocate(device->head.host, MAX_PROFILE_BYTES);
    if (device->profile) device->profile_bytes = fread(device->profile, 1, MAX_PROFILE_BYTES, file);
    bool broken = ferror(file) != 0;
    fclose(file);
    if (!device->profile) return ent_common_fail(call, ENT_CODE_OUT_OF_MEMORY, "out of memory for a profile");
    if (broken) return ent_common_fail(call, ENT_CODE_INVALID_ARGUMENT, "%s: cannot be read", path);
    if (device->profile_bytes == MAX_PROFILE_BYTES)
        return ent_common_fail(call, ENT_CODE_INVALID_ARGUMENT, "%s: a profile has less than %d bytes", path,
                               MAX_PROFILE_BYTES);
    return ENT_OK;
}

static void close_device(ent_device *device) {
    if (!device) return;
    ent_common_release(device->host, ((sim_device *)device)->profile);
    ent_common_release(device->host, device);
}

static ent_code open_device(ent_state *state, const ent_call *call, const ent_parameter *parameters,
                            size_t count, ent_device **out) {
    static const char *const known[] = {"variant", "profile", NULL};
    char path[MAX_PATH_BYTES + 128];
    ent_code code = ent_common_check_parameters(call, parameters, count, known);
    if (code == ENT_OK) code = find_profile(call, parameters, count, path, sizeof path);
    if (code != ENT_OK) return code;
    const ent_parameter *variant = ent_common_parameter(parameters, count, "variant");
    sim_device *device = ent_common_allocate(state->host, sizeof *device);
    if (!device) return ent_common_fail(call, ENT_CODE_OUT_OF_MEMORY, "out of memory");
    device->head.host = state->host;
    code = variant && access(path, R_OK) != 0 ? refuse_name(call, variant->value)
                                              : read_profile(call, path, device);
    if (code != ENT_OK) {
        close_device(&device->head);
        return code;
    }
    *out = &device->head;
    return ENT_OK;
}

static ent_code declare(ent_device *device, const ent_call *call, ent_bytes *out_json) {
    const sim_device *sim = (const sim_device *)device;
    return ent_common_reply(call, sim->profile, sim->profile_bytes, out_json);
}

/* ---- the plugin ---- */

static const ent_device_v1 device_interface = {
    {sizeof(ent_device_v1), ENT_STRUCT_DEVICE_V1, NULL}, list_devices, open_device, close_device, declare};

static const void *get_interface(uint32_t id, uint32_t version) {
    return id == ENT_INTERFACE_DEVICE && version == 1 ? &device_interface
                                                      : ent_common_region_interface(id, version);
}

const ent_plugin ent_plugin_v1 = {{sizeof(ent_plugin), ENT_STRUCT_PLUGIN, NULL},
                                  1,
                                  1,
                                  ENT_STR("sim"),
                                  ENT_STR("Entente"),
                                  ENT_STR("1"),
                                  ENT_DEPTH_REGION,
                                  1,
                                  ent_common_open,
                                  ent_common_close,
                                  get_interface};
