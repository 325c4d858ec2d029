#!/usr/bin/env bash
# What the built libraries show: public symbols only, no compiler in the runtime, one data symbol from each plugin.
set -euo pipefail
folder=${ENTENTE_TEST_BINARY_DIR:?}/lib
failed=0 passed=0

# Exported names; those that start with two underscores are a sanitizer's.
exported() { nm -D --defined-only "$1" | awk '$3 !~ /^(__|_init$|_fini$)/ {print $3}'; }

# expect_none LABEL: fails if standard input has a line, and shows it.
expect_none() {
    local lines
    lines=$(cat)
    if [ -z "$lines" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf '%s:\n%s\n' "$1" "$lines"
    fi
}

for library in libentente.so libentente_runtime.so; do
    [ -f "$folder/$library" ] || { echo "$library is missing"; failed=$((failed + 1)); continue; }
    [ -n "$(exported "$folder/$library")" ] || { echo "$library exports nothing"; failed=$((failed + 1)); }
    expect_none "$library exports more than the public API" < <(exported "$folder/$library" | grep -v '^entente_')
done
expect_none "the runtime library holds parts of the compiler" < <(nm --defined-only "$folder/libentente_runtime.so" |
    awk '$3 ~ /^ent_(graph|import|rewrite|capability|fusion|tile|negotiate|partition|plan|lower)_/ {print $3}')
expect_none "the runtime library needs the importer's library" < <(readelf -d "$folder/libentente_runtime.so" |
    grep -E 'NEEDED.*protobuf' || true)
for plugin in "$folder"/entente/plugins/*.so; do
    expect_none "$plugin exports other names than ent_plugin_v1" < <(exported "$plugin" | grep -vx 'ent_plugin_v1')
    [ -n "$(exported "$plugin" | grep -x 'ent_plugin_v1')" ] || { echo "$plugin has no ent_plugin_v1"; failed=$((failed + 1)); }
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
