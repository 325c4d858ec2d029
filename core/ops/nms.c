/* NonMaxSuppression: per batch element and class the best boxes, each unless it overlaps a kept one too much.
 * Source: the ONNX schema of NonMaxSuppression 11. */
#include "core/ops/internal.h"

typedef struct suppression {
    const double *boxes, *scores; /* scores: of all batches and classes */
    int64_t batches, classes, box_count, limit;
    double overlap, least_score;
    bool has_least, centred;
    int64_t *order, *room, *kept;
} suppression;

typedef struct area {
    double x0, x1, y0, y1;
} area;

static area area_of(const suppression *s, int64_t batch, int64_t box) {
    const double *b = s->boxes + (batch * s->box_count + box) * 4;
    if (s->centred) return (area){b[0] - b[2] / 2, b[0] + b[2] / 2, b[1] - b[3] / 2, b[1] + b[3] / 2};
    return (area){b[1] < b[3] ? b[1] : b[3], b[1] < b[3] ? b[3] : b[1], b[0] < b[2] ? b[0] : b[2],
                  b[0] < b[2] ? b[2] : b[0]};
}

/* In f32, as the boxes are: the ratio meets the threshold exactly where it does for others. */
static bool overlaps(area a, area b, double threshold) {
    float width = (float)((a.x1 < b.x1 ? a.x1 : b.x1) - (a.x0 > b.x0 ? a.x0 : b.x0));
    float height = (float)((a.y1 < b.y1 ? a.y1 : b.y1) - (a.y0 > b.y0 ? a.y0 : b.y0));
    if (!(width > 0) || !(height > 0)) return false;
    float common = width * height;
    float first = (float)(a.x1 - a.x0) * (float)(a.y1 - a.y0),
          second = (float)(b.x1 - b.x0) * (float)(b.y1 - b.y0);
    float whole = first + second - common;
    return first > 0 && second > 0 && whole > 0 && common / whole > (float)threshold;
}

static bool score_before(const void *context, int64_t a, int64_t b) {
    const double *scores = context;
    return scores[a] > scores[b];
}

static double scalar_or(const ent_tensor *tensor, double missing) {
    return tensor && ent_ops_element_count(tensor) > 0 ? ent_ops_load_f64(tensor->data, tensor->dtype, 0)
                                                       : missing;
}

static ent_code read(ent_ops_call *call, suppression *s) {
    const ent_tensor *boxes = ent_ops_input(call, 0), *scores = ent_ops_input(call, 1),
                     *least = ent_ops_input(call, 4);
    bool fits = boxes->rank == 3 && scores->rank == 3 && boxes->dims[0] == scores->dims[0] &&
                boxes->dims[1] == scores->dims[2] && boxes->dims[2] == 4;
    if (!fits) return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "boxes and scores do not fit");
    for (uint32_t i = 0; i < call->input_count; i++)
        if (ent_ops_input(call, i) && !ent_ops_input(call, i)->data &&
            ent_ops_element_count(ent_ops_input(call, i)) > 0)
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the values of input %u must be known", i);
    *s = (suppression){.batches = scores->dims[0],
                       .classes = scores->dims[1],
                       .box_count = boxes->dims[1],
                       .limit = (int64_t)scalar_or(ent_ops_input(call, 2), 0),
                       .overlap = scalar_or(ent_ops_input(call, 3), 0),
                       .least_score = scalar_or(least, 0),
                       .has_least = least && ent_ops_element_count(least) > 0,
                       .centred = ent_attrs_int(call->attrs, "center_point_box", 0) != 0};
    s->boxes = ent_ops_values_f64(call, boxes);
    s->scores = ent_ops_values_f64(call, scores);
    s->order = ent_ops_scratch(call, s->box_count, sizeof *s->order);
    s->room = ent_ops_scratch(call, s->box_count, sizeof *s->room);
    s->kept = ent_ops_scratch(call, s->box_count, sizeof *s->kept);
    return s->boxes && s->scores && s->order && s->room && s->kept ? ENT_OK : ENT_CODE_OUT_OF_MEMORY;
}

/* Boxes of one class that stay, best first, in s->kept. */
static int64_t keep(const suppression *s, int64_t batch, int64_t class_index) {
    const double *scores = s->scores + (batch * s->classes + class_index) * s->box_count;
    int64_t candidates = 0, count = 0;
    for (int64_t i = 0; i < s->box_count; i++)
        if (!s->has_least || scores[i] > s->least_score) s->order[candidates++] = i;
    ent_ops_sort(s->order, candidates, s->room, score_before, scores);
    for (int64_t i = 0; i < candidates && count < s->limit; i++) {
        area a = area_of(s, batch, s->order[i]);
        bool free = true;
        for (int64_t k = 0; free && k < count; k++)
            free = !overlaps(a, area_of(s, batch, s->kept[k]), s->overlap);
        if (free) s->kept[count++] = s->order[i];
    }
    return count;
}

/* rows can be NULL: only counts. */
static ent_code suppress(ent_ops_call *call, int64_t *rows, int64_t *out_count) {
    suppression s = {0};
    ent_code code = read(call, &s);
    if (code != ENT_OK) return code;
    *out_count = 0;
    for (int64_t batch = 0; batch < s.batches; batch++)
        for (int64_t c = 0; c < s.classes; c++) {
            int64_t count = keep(&s, batch, c);
            for (int64_t i = 0; rows && i < count; i++) {
                int64_t *row = rows + (*out_count + i) * 3;
                row[0] = batch, row[1] = c, row[2] = s.kept[i];
            }
            *out_count += count;
        }
    return ENT_OK;
}

ent_code ent_ops_dims_nms(ent_ops_call *call, ent_tensor *outputs) {
    outputs[0].dtype = ENT_DTYPE_I64;
    outputs[0].rank = 2;
    outputs[0].dims[1] = 3;
    return suppress(call, NULL, &outputs[0].dims[0]);
}

ent_code ent_ops_nms(ent_ops_call *call) {
    const ent_tensor *y = ent_ops_output(call, 0);
    int64_t count;
    return y ? suppress(call, y->data, &count) : ENT_OK;
}
