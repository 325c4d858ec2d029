/* The partition against brute force: every choice and order of offers on small random problems. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/partition/partition.h"

#define LEAVES 7
#define MAX_LABELS 6
#define MAX_OFFERS 44

typedef struct instance {
    ent_partition_problem problem;
    ent_partition_value values[LEAVES + 2];
    ent_partition_offer offers[MAX_OFFERS];
    uint32_t leaves[MAX_OFFERS][LEAVES];
    ent_partition_port inputs[MAX_OFFERS][2 * LEAVES + 2], outputs[MAX_OFFERS][LEAVES];
    uint32_t
        reads[LEAVES]; /* mask of values each leaf reads: bit 0 the input, bit i + 1 the value of leaf i */
    uint32_t labels;
    bool one_label; /* an offer takes all values in one form and makes all in one */
    double convert[MAX_LABELS][MAX_LABELS];
} instance;

static uint64_t state;

static uint32_t pick(uint32_t n) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % n;
}

static double convert_ns(void *context, uint32_t value, uint32_t from, uint32_t to) {
    const instance *in = context;
    return in->convert[from][to] * (value % 3 + 1);
}

static bool used_outside(const instance *in, uint32_t value, uint32_t set) {
    if (in->values[value].final_label != ENT_PARTITION_NONE) return true;
    for (uint32_t l = 0; l < LEAVES; l++)
        if (!(set >> l & 1) && (in->reads[l] >> value & 1)) return true;
    return false;
}

static void add_offer(instance *in, uint32_t set) {
    uint32_t o = in->problem.offer_count++;
    ent_partition_offer *offer = &in->offers[o];
    uint32_t label_in = pick(in->labels), label_out = pick(in->labels), reads = 0;
    memset(offer, 0, sizeof *offer);
    for (uint32_t l = 0; l < LEAVES; l++) {
        if (!(set >> l & 1)) continue;
        in->leaves[o][offer->leaf_count++] = l;
        reads |= in->reads[l];
        if (used_outside(in, l + 1, set))
            in->outputs[o][offer->output_count++] =
                (ent_partition_port){l + 1, in->one_label ? label_out : pick(in->labels)};
    }
    for (uint32_t v = 0; v <= LEAVES; v++) {
        if (!(reads >> v & 1) || (v > 0 && (set >> (v - 1) & 1))) continue;
        uint32_t label = in->one_label ? label_in : pick(in->labels);
        in->inputs[o][offer->input_count++] =
            (ent_partition_port){v, pick(8) == 0 ? ENT_PARTITION_NONE : label};
        if (!in->one_label && pick(16) == 0) /* in a second form too */
            in->inputs[o][offer->input_count++] = (ent_partition_port){v, pick(in->labels)};
    }
    offer->leaves = in->leaves[o];
    offer->inputs = in->inputs[o];
    offer->outputs = in->outputs[o];
    offer->price_ns = pick(30);
}

/* What each leaf reads: any two earlier values, or a chain with a residual here and there. */
static void make_reads(instance *in) {
    bool chain = pick(2);
    for (uint32_t l = 0; l < LEAVES; l++)
        if (l == 0)
            in->reads[l] = 1;
        else if (chain)
            in->reads[l] = 1u << l | (pick(3) == 0 ? 1u << pick(l + 1) : 0);
        else
            in->reads[l] = 1u << pick(l + 1) | 1u << pick(l + 1);
}

static void make_values(instance *in) {
    for (uint32_t v = 0; v <= LEAVES; v++) {
        in->values[v] = (ent_partition_value){v ? v - 1 : ENT_PARTITION_NONE, v ? ENT_PARTITION_NONE : 0,
                                              ENT_PARTITION_NONE, pick(4) ? 1 : 0.5};
        bool read = false;
        for (uint32_t l = 0; l < LEAVES; l++) read |= in->reads[l] >> v & 1;
        if ((v && !read) || pick(8) == 0) in->values[v].final_label = pick(in->labels);
    }
}

/* Any prices, or those of devices with two layouts each: a layout change on one, a copy between two. */
static void make_converts(instance *in) {
    bool devices = pick(2);
    double link = 1 + pick(20), change = 1 + pick(5);
    in->labels = devices ? MAX_LABELS : 2 + pick(3);
    for (uint32_t a = 0; a < in->labels; a++)
        for (uint32_t b = 0; b < in->labels; b++)
            if (a == b)
                in->convert[a][b] = 0;
            else if (devices)
                in->convert[a][b] = (a / 2 != b / 2 ? link : 0) + (a % 2 != b % 2 ? change : 0);
            else
                in->convert[a][b] = pick(12) == 0 ? INFINITY : 1 + pick(9);
}

/* Not always convex: such offers close cycles with others, which the solver has to refuse. */
static void make_instance(instance *in, uint64_t seed) {
    memset(in, 0, sizeof *in);
    state = seed * 7919 + 13;
    in->one_label = pick(2);
    make_reads(in);
    make_converts(in);
    make_values(in);
    for (uint32_t l = 0; l < LEAVES; l++)
        for (uint32_t k = 0, n = 1 + pick(in->labels); k < n; k++) add_offer(in, 1u << l);
    while (in->problem.offer_count < MAX_OFFERS - 1 && pick(20)) {
        uint32_t set = 0;
        for (uint32_t l = pick(LEAVES), n = 2 + pick(3); n > 0 && l < LEAVES; l += 1 + pick(2), n--)
            set |= 1u << l;
        if (!(set & (set - 1))) continue;
        add_offer(in, set);
        if (in->problem.offer_count < MAX_OFFERS && pick(3) == 0) add_offer(in, set);
    }
    in->problem = (ent_partition_problem){.leaf_count = LEAVES,
                                          .values = in->values,
                                          .value_count = LEAVES + 1,
                                          .offers = in->offers,
                                          .offer_count = in->problem.offer_count,
                                          .label_count = in->labels,
                                          .convert_ns = convert_ns,
                                          .context = in};
}

/* ---- brute force ---- */

typedef struct brute {
    const instance *in;
    uint32_t chosen[LEAVES];
    double best;
} brute;

static bool has_order(const instance *in, const uint32_t *chosen, uint32_t count) {
    uint32_t done = 0, made = 1;
    for (uint32_t round = 0; round < count; round++)
        for (uint32_t i = 0; i < count; i++) {
            const ent_partition_offer *offer = &in->offers[chosen[i]];
            bool ready = !(done >> i & 1);
            for (uint32_t k = 0; k < offer->input_count && ready; k++)
                ready = made >> offer->inputs[k].value & 1;
            if (!ready) continue;
            done |= 1u << i;
            for (uint32_t k = 0; k < offer->output_count; k++) made |= 1u << offer->outputs[k].value;
        }
    return done == (1u << count) - 1;
}

static double price(const instance *in, const uint32_t *chosen, uint32_t count) {
    uint32_t made[LEAVES + 1], wanted[LEAVES + 1] = {0};
    double total = 0;
    made[0] = 0;
    for (uint32_t i = 0; i < count; i++) {
        const ent_partition_offer *offer = &in->offers[chosen[i]];
        total += offer->price_ns;
        for (uint32_t k = 0; k < offer->output_count; k++)
            made[offer->outputs[k].value] = offer->outputs[k].label;
        for (uint32_t k = 0; k < offer->input_count; k++)
            if (offer->inputs[k].label != ENT_PARTITION_NONE)
                wanted[offer->inputs[k].value] |= 1u << offer->inputs[k].label;
    }
    for (uint32_t v = 0; v <= LEAVES; v++) {
        if (in->values[v].final_label != ENT_PARTITION_NONE) wanted[v] |= 1u << in->values[v].final_label;
        for (uint32_t l = 0; l < in->labels; l++)
            if (wanted[v] >> l & 1)
                total += l == made[v]
                             ? 0
                             : in->values[v].weight * convert_ns((void *)(uintptr_t)in, v, made[v], l);
    }
    return total;
}

static void search(brute *b, uint32_t covered, uint32_t count) {
    if (covered == (1u << LEAVES) - 1) {
        if (has_order(b->in, b->chosen, count)) b->best = fmin(b->best, price(b->in, b->chosen, count));
        return;
    }
    uint32_t leaf = (uint32_t)__builtin_ctz(~covered);
    for (uint32_t o = 0; o < b->in->problem.offer_count; o++) {
        uint32_t set = 0;
        for (uint32_t i = 0; i < b->in->offers[o].leaf_count; i++) set |= 1u << b->in->leaves[o][i];
        if (!(set >> leaf & 1) || (set & covered)) continue;
        b->chosen[count] = o;
        search(b, covered | set, count + 1);
    }
}

static void check_plan(const instance *in, const ent_partition_result *r) {
    uint32_t covered = 0, made = 1;
    for (uint32_t i = 0; i < r->chosen_count; i++) {
        const ent_partition_offer *offer = &in->offers[r->chosen[i]];
        for (uint32_t k = 0; k < offer->input_count; k++)
            ck_assert_msg(made >> offer->inputs[k].value & 1, "order");
        for (uint32_t k = 0; k < offer->leaf_count; k++) {
            ck_assert(!(covered >> offer->leaves[k] & 1));
            covered |= 1u << offer->leaves[k];
        }
        for (uint32_t k = 0; k < offer->output_count; k++) made |= 1u << offer->outputs[k].value;
    }
    ck_assert_uint_eq(covered, (1u << LEAVES) - 1);
    ck_assert_double_eq_tol(price(in, r->chosen, r->chosen_count), r->total_ns, 1e-6);
}

START_TEST(equals_brute_force) {
    uint32_t infeasible = 0;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        instance in;
        make_instance(&in, seed);
        ent_arena *arena = ent_arena_create(0);
        ent_partition_result r;
        ck_assert_ptr_null(ent_partition_solve(arena, &in.problem, &r));
        brute b = {&in, {0}, INFINITY};
        search(&b, 0, 0);
        bool possible = isfinite(b.best);
        infeasible += !possible;
        ck_assert_msg(r.feasible == possible, "seed %lu: feasible %d, brute %g", (unsigned long)seed,
                      r.feasible, b.best);
        if (possible) {
            ck_assert(r.proven);
            ck_assert_msg(fabs(r.total_ns - b.best) < 1e-6, "seed %lu: %g, brute force %g",
                          (unsigned long)seed, r.total_ns, b.best);
            check_plan(&in, &r);
        }
        ent_arena_destroy(arena);
    }
    ck_assert_uint_lt(infeasible, 1000);
}
END_TEST

/* Cut short by width or by work: never below the least price, never a wrong proof, the bound a bound. */
START_TEST(short_of_budget_is_bounded_and_unproven_or_right) {
    uint32_t unproven = 0;
    for (uint64_t seed = 0; seed < 600; seed++) {
        instance in;
        make_instance(&in, seed);
        if (seed % 2)
            in.problem.max_states = 1;
        else
            in.problem.max_work = 1 + seed / 2 % 40;
        ent_arena *arena = ent_arena_create(0);
        ent_partition_result r;
        ck_assert_ptr_null(ent_partition_solve(arena, &in.problem, &r));
        brute b = {&in, {0}, INFINITY};
        search(&b, 0, 0);
        if (r.feasible) {
            ck_assert(r.total_ns >= b.best - 1e-6);
            ck_assert(r.bound_ns <= b.best + 1e-6);
            if (r.proven) ck_assert_double_eq_tol(r.total_ns, b.best, 1e-6);
            unproven += !r.proven;
            check_plan(&in, &r);
        }
        ent_arena_destroy(arena);
    }
    ck_assert_uint_gt(unproven, 0);
}
END_TEST

/* ---- a network of the size of real ones: a residual every third leaf, three memories with two layouts each,
 * pairs and triples fused. */
#define DEEP 240u
#define DEEP_LABELS 6u
#define DEEP_OFFERS (DEEP * 3 * DEEP_LABELS)

typedef struct network {
    ent_partition_problem problem;
    ent_partition_value values[DEEP + 1];
    ent_partition_offer offers[DEEP_OFFERS];
    uint32_t leaves[DEEP + 2];
    ent_partition_port ports[DEEP_OFFERS][8];
    double link;
} network;

static double deep_convert_ns(void *context, uint32_t value, uint32_t from, uint32_t to) {
    const network *n = context;
    return (from / 2 != to / 2 ? n->link : 0) + (from % 2 != to % 2 ? 4 : 0) * (1 + value % 2);
}

static bool deep_reads(uint32_t leaf, uint32_t value) {
    return value == leaf || (leaf % 3 == 2 && value + 2 == leaf);
}

static void add_deep_offer(network *n, uint32_t first, uint32_t count, uint32_t label) {
    ent_partition_port *ports = n->ports[n->problem.offer_count];
    ent_partition_offer offer = {
        .leaves = n->leaves + first, .leaf_count = count, .inputs = ports, .outputs = ports + 4};
    for (uint32_t value = first > 2 ? first - 2 : 0; value <= first; value++) {
        bool read = false;
        for (uint32_t leaf = first; leaf < first + count; leaf++) read |= deep_reads(leaf, value);
        if (read) ports[offer.input_count++] = (ent_partition_port){value, label};
    }
    for (uint32_t value = first + 1; value <= first + count; value++) {
        bool outside = value == DEEP;
        for (uint32_t leaf = first + count; leaf < first + count + 3 && leaf < DEEP; leaf++)
            outside |= deep_reads(leaf, value);
        if (outside) ports[4 + offer.output_count++] = (ent_partition_port){value, label ^ (pick(4) == 0)};
    }
    offer.price_ns = (20 + pick(80)) * (0.6 + 0.4 * count) * (label < 2 ? 1.2 : 1);
    n->offers[n->problem.offer_count++] = offer;
}

static void make_network(network *n, uint64_t seed) {
    memset(n, 0, sizeof *n);
    state = seed * 7919 + 13;
    n->link = 1 + pick(60);
    for (uint32_t l = 0; l < DEEP; l++) n->leaves[l] = l;
    for (uint32_t v = 0; v <= DEEP; v++)
        n->values[v] = (ent_partition_value){v ? v - 1 : ENT_PARTITION_NONE, v ? ENT_PARTITION_NONE : 0,
                                             v == DEEP ? 0 : ENT_PARTITION_NONE, 1};
    for (uint32_t l = 0; l < DEEP; l++)
        for (uint32_t count = 1; count <= 3 && l + count <= DEEP; count++)
            for (uint32_t label = 0; label < DEEP_LABELS; label++)
                if (count == 1 || pick(2)) add_deep_offer(n, l, count, label);
    n->problem.leaf_count = DEEP;
    n->problem.values = n->values;
    n->problem.value_count = DEEP + 1;
    n->problem.offers = n->offers;
    n->problem.label_count = DEEP_LABELS;
    n->problem.convert_ns = deep_convert_ns;
    n->problem.context = n;
}

START_TEST(networks_are_proven_in_little_work) {
    network *n = malloc(sizeof *n);
    ck_assert_ptr_nonnull(n);
    for (uint64_t seed = 0; seed < 20; seed++) {
        make_network(n, seed);
        ent_arena *arena = ent_arena_create(0);
        ent_partition_result r;
        ck_assert_ptr_null(ent_partition_solve(arena, &n->problem, &r));
        ck_assert_msg(r.feasible && r.proven, "seed %lu", (unsigned long)seed);
        ck_assert_uint_lt(r.work, 100000);
        ent_arena_destroy(arena);
    }
    free(n);
}
END_TEST

START_TEST(uncovered_leaf_is_named) {
    instance in;
    make_instance(&in, 5);
    uint32_t kept = 0;
    for (uint32_t o = 0; o < in.problem.offer_count; o++) {
        bool has = false;
        for (uint32_t i = 0; i < in.offers[o].leaf_count; i++) has |= in.offers[o].leaves[i] == 4;
        if (!has) in.offers[kept++] = in.offers[o];
    }
    in.problem.offer_count = kept;
    ent_arena *arena = ent_arena_create(0);
    ent_partition_result r;
    ck_assert_ptr_null(ent_partition_solve(arena, &in.problem, &r));
    ck_assert(!r.feasible);
    ck_assert_uint_eq(r.stuck_leaf, 4);
    ent_arena_destroy(arena);
}
END_TEST

static double no_change(void *context, uint32_t value, uint32_t from, uint32_t to) {
    (void)context, (void)value;
    return from == to ? 0 : INFINITY;
}

/* A value of each leaf, all read by the last one, as a Concat behind a loop that was written out does. */
START_TEST(a_thousand_values_wait_for_one_leaf) {
    enum { WIDE = 1000 };
    static ent_partition_value values[WIDE + 1];
    static ent_partition_offer offers[WIDE + 1];
    static ent_partition_port ports[WIDE + 1];
    static uint32_t leaves[WIDE + 1];
    ent_arena *arena = ent_arena_create(0);
    for (uint32_t i = 0; i <= WIDE; i++) {
        values[i] = (ent_partition_value){i, ENT_PARTITION_NONE, i < WIDE ? ENT_PARTITION_NONE : 0, 1};
        leaves[i] = i;
        ports[i] = (ent_partition_port){i, 0};
        offers[i] = (ent_partition_offer){.leaves = &leaves[i],
                                          .leaf_count = 1,
                                          .inputs = ports,
                                          .input_count = i < WIDE ? 0 : WIDE,
                                          .outputs = &ports[i],
                                          .output_count = 1,
                                          .price_ns = 1};
    }
    ent_partition_problem problem = {.leaf_count = WIDE + 1,
                                     .values = values,
                                     .value_count = WIDE + 1,
                                     .label_count = 1,
                                     .offers = offers,
                                     .offer_count = WIDE + 1,
                                     .convert_ns = no_change};
    ent_partition_result result;
    ck_assert_ptr_null(ent_partition_solve(arena, &problem, &result));
    ck_assert(result.feasible);
    ck_assert_uint_eq(result.chosen_count, WIDE + 1);
    ck_assert_double_eq(result.total_ns, WIDE + 1);
    ent_arena_destroy(arena);
}
END_TEST

START_TEST(same_problem_same_plan) {
    for (uint64_t seed = 0; seed < 50; seed++) {
        instance in;
        make_instance(&in, seed);
        ent_arena *arena = ent_arena_create(0);
        ent_partition_result a, b;
        ck_assert_ptr_null(ent_partition_solve(arena, &in.problem, &a));
        ck_assert_ptr_null(ent_partition_solve(arena, &in.problem, &b));
        ck_assert_uint_eq(a.chosen_count, b.chosen_count);
        if (a.chosen_count) ck_assert_mem_eq(a.chosen, b.chosen, a.chosen_count * sizeof *a.chosen);
        ent_arena_destroy(arena);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("partition");
    TCase *test = tcase_create("solve");
    tcase_set_timeout(test, 120);
    tcase_add_test(test, equals_brute_force);
    tcase_add_test(test, short_of_budget_is_bounded_and_unproven_or_right);
    tcase_add_test(test, networks_are_proven_in_little_work);
    tcase_add_test(test, uncovered_leaf_is_named);
    tcase_add_test(test, a_thousand_values_wait_for_one_leaf);
    tcase_add_test(test, same_problem_same_plan);
    suite_add_tcase(suite, test);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
