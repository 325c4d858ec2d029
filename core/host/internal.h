/* Shared inside core/host only. */
#ifndef ENT_HOST_INTERNAL_H
#define ENT_HOST_INTERNAL_H

#include "core/host/host.h"

/* Fills a plugin entry from its manifest; refusals go into the entry. */
void ent_host_read_manifest(ent_arena *arena, const char *path, ent_host_plugin *out);
void ent_host_refuse(ent_host_plugin *plugin, const char *rule, const char *text);

#endif
