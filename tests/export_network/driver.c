/* As driver.rs, in C. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "network.h"

static fsb_network net;

static void load(void) {
    FILE *file = fopen("weights.bin", "rb");
    unsigned char *bytes = (unsigned char *)malloc(FSB_WEIGHTS_SIZE);
    if (!file || !bytes) {
        exit(2);
    }
    size_t size = fread(bytes, 1, FSB_WEIGHTS_SIZE, file);
    fclose(file);
    const char *error = fsb_network_load(&net, bytes, size);
    if (error) {
        fprintf(stderr, "%s\n", error);
        exit(2);
    }
    free(bytes);
}

static int differs(const fsb_accumulator *a, const fsb_accumulator *b) {
    int psqt = 0;
#ifdef WITH_PSQT
    psqt = memcmp(a->psqt, b->psqt, sizeof a->psqt);
#endif
    return psqt || memcmp(a->neurons, b->neurons, sizeof a->neurons);
}

int main(void) {
    load();
    static fsb_accumulator updated[2], refreshed[2];
    fsb_board before = {{{0}}}, board;
    char mode;
    unsigned side;
    while (scanf(" %c %u", &mode, &side) == 2) {
        for (int color = 0; color < 2; color++) {
            for (int role = 0; role < 6; role++) {
                if (scanf("%" SCNx64, &board.pieces[color][role]) != 1) {
                    return 2;
                }
            }
        }
        for (unsigned pov = 0; pov < 2; pov++) {
            fsb_accumulator_refresh(&refreshed[pov], &net, &board, pov);
            if (mode == 'm') {
                fsb_accumulator_update(&updated[pov], &net, &before, &board, pov);
            } else {
                updated[pov] = refreshed[pov];
            }
            if (differs(&updated[pov], &refreshed[pov])) {
                fprintf(stderr, "updated accumulators differ\n");
                return 1;
            }
        }
        int32_t score = fsb_evaluate(&net, updated, &board, side);
        printf("%" PRId32 " %" PRId32 "\n", score, fsb_centipawns(score));
        before = board;
    }
    return 0;
}
