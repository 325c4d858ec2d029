/* Finds, loads and version-checks plugins, opens their devices, makes calls safe (arena, deadline, message
 * checks), and turns messages into transcript lines. Used by the compiler and by the runtime. */
#ifndef ENT_HOST_H
#define ENT_HOST_H

#include "abi/ent_plugin.h"
#include "core/base/base.h"

/* One manifest found. refused != NULL: not usable, with the sentence (path, ABI wanted and found, loader's
 * text). */
typedef struct ent_host_plugin {
    const char *name; /* from the manifest */
    const char *manifest_path;
    const char *library_path;
    uint32_t abi_min, abi_max; /* manifest's range; 0 when unread */
    const char *architecture;
    uint32_t depths;
    bool is_default; /* takes part when no --device is given */
    const char *refused;
    const char *refused_rule; /* "plugin.abi", "plugin.missing-symbol", "plugin.loader" ... */
    const ent_plugin *plugin; /* set once loaded */
    void *library;
    ent_state *state;
} ent_host_plugin;

typedef struct ent_host_registry {
    ent_arena *arena;
    ENT_ARRAY(ent_host_plugin)
    plugins; /* sorted by name, then search order; a later copy of a name is listed as refused */
} ent_host_registry;

typedef struct ent_host_options {
    const char *plugin_path; /* colon separated folders; NULL: $ENTENTE_PLUGIN_PATH (ignored under AT_SECURE),
                                else the built-in folder next to the library, then the install folder */
    bool no_environment;
} ent_host_options;

/* Reads manifests and refuses by them what can be refused; loads no library yet. Never fails because of one
 * bad plugin. */
ent_status ent_host_scan(ent_arena *arena, const ent_host_options *options, ent_host_registry **out);
/* dlopen (RTLD_LOCAL), symbol, ABI check, open. A refusal is recorded and returned as status DEVICE.
 * Idempotent. */
ent_status ent_host_load(ent_host_registry *registry, ent_host_plugin *plugin);
ent_host_plugin *ent_host_find(ent_host_registry *registry, const char *name);
void ent_host_close(
    ent_host_registry *registry); /* closes plugins; devices must be closed before; NULL is fine */
/* For tests and static linking: adds a plugin table as if it had been loaded. */
ent_status ent_host_add_static(ent_host_registry *registry, const ent_plugin *plugin, bool is_default);

/* A device spec "plugin" or "plugin:variant"; the variant becomes parameter {"variant", ...}. */
typedef struct ent_host_device {
    const char *name; /* the spec */
    ent_host_plugin *plugin;
    ent_device *device;
    const ent_device_v1 *device_api;
    const ent_negotiate_v1 *negotiate; /* NULL: not offered */
    const ent_compile_v1 *compile;
    const ent_blob_v1 *blob;
    const ent_runtime_v1 *runtime;
} ent_host_device;
ent_status ent_host_device_open(ent_host_registry *registry, ent_arena *arena, const char *spec,
                                const ent_parameter *extra, size_t extra_count, ent_host_device **out);
void ent_host_device_close(ent_host_device *device); /* NULL is fine */

/* A call context whose results live in `arena`; failure text becomes the status of ent_host_call_status. */
typedef struct ent_host_call {
    ent_call call;
    ent_arena *arena;
    const char *failure;
    bool (*constant)(void *user, uint64_t hash_low, uint64_t hash_high, ent_bytes *out);
    void *user;
    bool (*cancelled)(void *user);
} ent_host_call;
void ent_host_call_init(ent_host_call *call, ent_arena *arena, uint64_t deadline_ns);
/* NULL for ENT_OK; else code DEVICE (or UNSUPPORTED / LIMIT where the ABI code says so), place "device
 * 'name'", rule from the code. */
ent_status ent_host_call_status(const ent_host_call *call, ent_code code, const char *device,
                                const char *verb);

/* ---- transcript: JSON lines, deterministic (no times of day, no addresses) ---- */
typedef struct ent_transcript ent_transcript; /* NULL is a transcript that records nothing */
ent_transcript *ent_transcript_create(ent_arena *arena);
void ent_transcript_add(ent_transcript *transcript, const char *device, const uint8_t *message, size_t size);
void ent_transcript_add_note(ent_transcript *transcript, const char *device, const char *kind,
                             const char *text);
const char *ent_transcript_text(const ent_transcript *transcript, size_t *out_size);

#endif
