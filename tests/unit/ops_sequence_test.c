/* Recurrent operators, rotary embedding, linear attention, causal convolution, random numbers, BitCast. */
#include "tests/unit/ops_sample.h"

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

/* Evaluates with up to three outputs; inputs of dtype NONE are absent. */
static void run(uint32_t op, ent_attrs attrs, ent_tensor *in, uint32_t count, ent_tensor *out,
                uint32_t out_count) {
    const ent_tensor *inputs[8];
    ent_tensor dims[3] = {{0}}, *outputs[3];
    ent_ops_error error = {0};
    for (uint32_t i = 0; i < count; i++) inputs[i] = in[i].dtype == ENT_DTYPE_NONE ? NULL : &in[i];
    ck_assert_msg(ent_ops_output_dims(op, attrs, inputs, count, dims, out_count, &error) == ENT_OK, "%s",
                  error.text);
    for (uint32_t i = 0; i < out_count; i++) {
        out[i] = sample_empty(dims[i].dtype, dims[i].dims, dims[i].rank, ent_layout_plain(dims[i].rank));
        outputs[i] = &out[i];
    }
    ck_assert_msg(ent_ops_evaluate(op, attrs, inputs, count, outputs, out_count, NULL, &error) == ENT_OK,
                  "%s", error.text);
    for (uint32_t i = 0; i < count; i++) free(in[i].data);
}

/* Hidden size 1, so that every equation is one of numbers. */
START_TEST(rnn_both_ways_with_lengths) {
    ent_attr attrs[3] = {sample_string("direction", "bidirectional"),
                         sample_string("activations", "Affine,Affine"), sample_float("clip", 100)};
    ent_tensor in[5] = {sample(ENT_DTYPE_F32, F32(1, 10, 2, 20, 3, 30), DIMS(3, 2, 1)),
                        sample(ENT_DTYPE_F32, F32(1, 1), DIMS(2, 1, 1)),
                        sample(ENT_DTYPE_F32, F32(1, 1), DIMS(2, 1, 1)),
                        {0},
                        sample(ENT_DTYPE_I32, F32(3, 2), DIMS(2))};
    ent_tensor out[2];
    run(ENT_OP_RNN, (ent_attrs){attrs, 3}, in, 5, out, 2);
    /* step x direction x batch: sums from the front and from the back */
    sample_expect(out[0], DIMS(3, 2, 2, 1), F32(1, 10, 6, 30, 3, 30, 5, 20, 6, 0, 3, 0));
    sample_expect(out[1], DIMS(2, 2, 1), F32(6, 30, 6, 30));
}
END_TEST

START_TEST(activation_parameters_go_in_order) {
    const double alpha[1] = {3};
    ent_attr attrs[3] = {
        sample_string("direction", "reverse"),
        sample_string("activations", "LeakyRelu"),
        {.name = {"activation_alpha", 16}, .type = ENT_ATTR_FLOATS, .count = 1, .floats = alpha}};
    ent_tensor in[3] = {sample(ENT_DTYPE_F64, F32(-1, 2), DIMS(1, 2, 1)),
                        sample(ENT_DTYPE_F64, F32(1), DIMS(1, 1, 1)),
                        sample(ENT_DTYPE_F64, F32(0), DIMS(1, 1, 1))};
    ent_tensor out[1];
    run(ENT_OP_RNN, (ent_attrs){attrs, 3}, in, 3, out, 1);
    sample_expect(out[0], DIMS(1, 1, 2, 1), F32(-3, 2));
    attrs[1] = sample_string("activations", "Nonsense");
    ent_tensor again[3] = {sample(ENT_DTYPE_F64, F32(1), DIMS(1, 1, 1)),
                           sample(ENT_DTYPE_F64, F32(1), DIMS(1, 1, 1)),
                           sample(ENT_DTYPE_F64, F32(0), DIMS(1, 1, 1))};
    ent_ops_error error;
    ck_assert_int_eq(sample_refusal(ENT_OP_RNN, (ent_attrs){attrs, 2}, again, 3, &error),
                     ENT_CODE_UNSUPPORTED);
    ck_assert_str_eq(error.text, "RNN: the activation 'Nonsense' is unknown");
}
END_TEST

START_TEST(gru_with_both_places_of_the_reset) {
    for (int64_t linear = 0; linear < 2; linear++) {
        ent_attr attr = sample_int("linear_before_reset", linear);
        ent_tensor in[6] = {sample(ENT_DTYPE_F32, F32(1), DIMS(1, 1, 1)),
                            sample(ENT_DTYPE_F32, F32(0.5, -0.3, 0.2), DIMS(1, 3, 1)),
                            sample(ENT_DTYPE_F32, F32(0.1, 0.4, 0.7), DIMS(1, 3, 1)),
                            sample(ENT_DTYPE_F32, F32(0, 0, 0, 0, 0, 2), DIMS(1, 6)),
                            {0},
                            sample(ENT_DTYPE_F32, F32(0.6), DIMS(1, 1, 1))};
        double z = sigmoid(0.5 + 0.06), r = sigmoid(-0.3 + 0.24);
        double h = tanh(0.2 + (linear ? r * (0.42 + 2) : r * 0.6 * 0.7 + 2));
        ent_tensor out[2];
        run(ENT_OP_GRU, (ent_attrs){&attr, 1}, in, 6, out, 2);
        free(out[0].data);
        sample_expect(out[1], DIMS(1, 1, 1), F32((1 - z) * h + z * 0.6));
    }
}
END_TEST

START_TEST(lstm_with_peepholes_batch_first) {
    for (int64_t couple = 0; couple < 2; couple++) {
        ent_attr attrs[2] = {sample_int("layout", 1), sample_int("input_forget", couple)};
        ent_tensor in[8] = {sample(ENT_DTYPE_F32, F32(1), DIMS(1, 1, 1)),
                            sample(ENT_DTYPE_F32, F32(0.1, 0.2, 0.3, 0.4), DIMS(1, 4, 1)),
                            sample(ENT_DTYPE_F32, F32(0.5, 0.6, 0.7, 0.8), DIMS(1, 4, 1)),
                            {0},
                            {0},
                            sample(ENT_DTYPE_F32, F32(0.5), DIMS(1, 1, 1)),
                            sample(ENT_DTYPE_F32, F32(2), DIMS(1, 1, 1)),
                            sample(ENT_DTYPE_F32, F32(0.01, 0.02, 0.03), DIMS(1, 3))};
        double i = sigmoid(0.1 + 0.25 + 0.02), f = couple ? 1 - i : sigmoid(0.3 + 0.35 + 0.06);
        double c = f * 2 + i * tanh(0.4 + 0.4), o = sigmoid(0.2 + 0.3 + 0.02 * c);
        ent_tensor out[3];
        run(ENT_OP_LSTM, (ent_attrs){attrs, 2}, in, 8, out, 3);
        sample_expect(out[0], DIMS(1, 1, 1, 1), F32(o * tanh(c)));
        sample_expect(out[1], DIMS(1, 1, 1), F32(o * tanh(c)));
        sample_expect(out[2], DIMS(1, 1, 1), F32(c));
    }
}
END_TEST

/* A quarter turn at place 1, none at place 0. */
START_TEST(rotary_turns_pairs) {
    for (int64_t interleaved = 0; interleaved < 2; interleaved++) {
        ent_attr attrs[3] = {sample_int("interleaved", interleaved), sample_int("num_heads", 1),
                             sample_int("rotary_embedding_dim", 4)};
        ent_tensor in[4] = {sample(ENT_DTYPE_F32, F32(1, 2, 3, 4, 5), DIMS(1, 1, 5)),
                            sample(ENT_DTYPE_F32, F32(1, 1, 0, 0), DIMS(2, 2)),
                            sample(ENT_DTYPE_F32, F32(0, 0, 1, 1), DIMS(2, 2)),
                            sample(ENT_DTYPE_I64, F32(1), DIMS(1, 1))};
        sample_expect(sample_run(ENT_OP_RotaryEmbedding, (ent_attrs){attrs, 3}, in, 4), DIMS(1, 1, 5),
                      interleaved ? F32(-2, 1, -4, 3, 5) : F32(-3, -4, 1, 2, 5));
    }
}
END_TEST

/* One head, sizes 1: S = exp(g) S + beta k (v - exp(g) S k), o = scale q S. */
START_TEST(linear_attention_rules) {
    static const char *const rules[] = {"linear", "gated", "delta", "gated_delta"};
    for (int i = 0; i < 4; i++) {
        bool gated = i & 1, delta = i & 2;
        ent_attr attrs[4] = {sample_int("q_num_heads", 1), sample_int("kv_num_heads", 1),
                             sample_float("scale", 2), sample_string("update_rule", rules[i])};
        ent_tensor in[6] = {sample(ENT_DTYPE_F32, F32(3), DIMS(1, 1, 1)),
                            sample(ENT_DTYPE_F32, F32(0.5), DIMS(1, 1, 1)),
                            sample(ENT_DTYPE_F32, F32(4), DIMS(1, 1, 1)),
                            sample(ENT_DTYPE_F32, F32(10), DIMS(1, 1, 1, 1)),
                            {0},
                            {0}};
        if (gated) in[4] = sample(ENT_DTYPE_F32, F32(-1), DIMS(1, 1, 1));
        if (delta) in[5] = sample(ENT_DTYPE_F32, F32(0.25), DIMS(1, 1, 1));
        double s = 10 * (gated ? exp(-1) : 1), v = delta ? 0.25 * (4 - s * 0.5) : 4;
        s += 0.5 * v;
        ent_tensor out[2];
        run(ENT_OP_LinearAttention, (ent_attrs){attrs, 4}, in, 6, out, 2);
        sample_expect(out[0], DIMS(1, 1, 1), F32(2 * 3 * s));
        sample_expect(out[1], DIMS(1, 1, 1, 1), F32(s));
    }
}
END_TEST

START_TEST(causal_conv_hands_its_state_on) {
    ent_tensor in[4] = {
        sample(ENT_DTYPE_F32, F32(1), DIMS(1, 1, 1)), sample(ENT_DTYPE_F32, F32(100, 10, 1), DIMS(1, 1, 3)),
        sample(ENT_DTYPE_F32, F32(0.5), DIMS(1)), sample(ENT_DTYPE_F32, F32(3, 2), DIMS(1, 1, 2))};
    ent_tensor out[2];
    run(ENT_OP_CausalConvWithState, NO_ATTRS, in, 4, out, 2);
    sample_expect(out[0], DIMS(1, 1, 1), F32(321.5));
    sample_expect(out[1], DIMS(1, 1, 2), F32(2, 1));
}
END_TEST

static void moments(uint32_t op, const ent_attr *attrs, uint32_t count, double mean, double deviation) {
    ent_tensor out[1];
    run(op, (ent_attrs){attrs, count}, NULL, 0, out, 1);
    double sum = 0, squares = 0, n = 10000;
    for (int64_t i = 0; i < 10000; i++) sum += ent_ops_load_f64(out[0].data, out[0].dtype, i);
    for (int64_t i = 0; i < 10000; i++) {
        double away = ent_ops_load_f64(out[0].data, out[0].dtype, i) - sum / n;
        squares += away * away;
    }
    ck_assert_double_eq_tol(sum / n, mean, 0.05);
    ck_assert_double_eq_tol(sqrt(squares / n), deviation, 0.05);
    free(out[0].data);
}

START_TEST(random_numbers_have_their_moments) {
    const int64_t shape[2] = {100, 100};
    ent_attr normal[4] = {sample_ints("shape", shape, 2), sample_float("mean", 3), sample_float("scale", 2),
                          sample_float("seed", 5)};
    moments(ENT_OP_RandomNormal, normal, 4, 3, 2);
    ent_attr uniform[4] = {sample_ints("shape", shape, 2), sample_float("low", -1), sample_float("high", 1),
                           sample_float("seed", 6)};
    moments(ENT_OP_RandomUniform, uniform, 4, 0, 1 / sqrt(3));
}
END_TEST

START_TEST(equal_seeds_draw_equal_numbers) {
    ent_attr seeds[2] = {sample_float("seed", 1), sample_float("seed", 2)};
    ent_tensor draws[3];
    for (int i = 0; i < 3; i++) {
        ent_tensor like = sample(ENT_DTYPE_F32, F32(0, 0, 0, 0), DIMS(4));
        draws[i] = sample_run(ENT_OP_RandomUniformLike, (ent_attrs){&seeds[i == 2], 1}, &like, 1);
    }
    ck_assert_int_eq(memcmp(draws[0].data, draws[1].data, draws[0].size_bytes), 0);
    ck_assert_int_ne(memcmp(draws[0].data, draws[2].data, draws[0].size_bytes), 0);
    for (int i = 0; i < 3; i++) free(draws[i].data);
}
END_TEST

START_TEST(certain_draws) {
    ent_attr dtype = sample_int("dtype", ENT_DTYPE_I32);
    ent_tensor p = sample(ENT_DTYPE_F32, F32(0, 1, 1, 0), DIMS(4));
    sample_expect(sample_run(ENT_OP_Bernoulli, (ent_attrs){&dtype, 1}, &p, 1), DIMS(4), F32(0, 1, 1, 0));
    ent_attr samples = sample_int("sample_size", 3);
    ent_tensor weights = sample(ENT_DTYPE_F32, F32(-INFINITY, 0, -INFINITY), DIMS(1, 3));
    sample_expect(sample_run(ENT_OP_Multinomial, (ent_attrs){&samples, 1}, &weights, 1), DIMS(1, 3),
                  F32(1, 1, 1));
}
END_TEST

START_TEST(bit_cast_keeps_bits) {
    ent_attr to[2] = {sample_int("to", ENT_DTYPE_I32), sample_int("to", ENT_DTYPE_I16)};
    ent_tensor x = sample(ENT_DTYPE_F32, F32(1, -2), DIMS(2));
    sample_expect(sample_run(ENT_OP_BitCast, (ent_attrs){&to[0], 1}, &x, 1), DIMS(2),
                  F32(0x3f800000, -0x40000000));
    ent_ops_error error;
    ent_tensor again = sample(ENT_DTYPE_F32, F32(1), DIMS(1));
    ck_assert_int_eq(sample_refusal(ENT_OP_BitCast, (ent_attrs){&to[1], 1}, &again, 1, &error),
                     ENT_CODE_INVALID_ARGUMENT);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ops sequence");
    TCase *all = tcase_create("all");
    tcase_add_test(all, rnn_both_ways_with_lengths);
    tcase_add_test(all, activation_parameters_go_in_order);
    tcase_add_test(all, gru_with_both_places_of_the_reset);
    tcase_add_test(all, lstm_with_peepholes_batch_first);
    tcase_add_test(all, rotary_turns_pairs);
    tcase_add_test(all, linear_attention_rules);
    tcase_add_test(all, causal_conv_hands_its_state_on);
    tcase_add_test(all, random_numbers_have_their_moments);
    tcase_add_test(all, equal_seeds_draw_equal_numbers);
    tcase_add_test(all, certain_draws);
    tcase_add_test(all, bit_cast_keeps_bits);
    suite_add_tcase(suite, all);
    return sample_main(suite);
}
