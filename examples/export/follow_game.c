/* Follows a game with an exported network, as an engine would: accumulators are updated move by move.
 *
 *     fsbench export network.safetensors --lang c --out exported
 *     gcc -std=c11 -O2 -I exported examples/export/follow_game.c -o follow_game
 *     ./follow_game exported/weights.bin e2e4 e7e5 g1f3
 *
 * It plays the moves that it is given, in UCI notation, and does not check that they are legal.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "network.h"

enum { PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING };

static const fsb_board INITIAL_BOARD = {{
    {0xff00, 0x42, 0x24, 0x81, 0x08, 0x10},
    {0xff000000000000, 0x4200000000000000, 0x2400000000000000, 0x8100000000000000, 0x0800000000000000,
     0x1000000000000000},
}};

/* The network of a file. Ends the program with a message if there is none. */
static fsb_network *load(const char *path) {
    fsb_network *net = malloc(sizeof *net);
    unsigned char *bytes = malloc(FSB_WEIGHTS_SIZE + 1);
    FILE *file = fopen(path, "rb");
    if (!net || !bytes || !file) {
        perror(path);
        exit(1);
    }
    size_t size = fread(bytes, 1, FSB_WEIGHTS_SIZE + 1, file);
    fclose(file);
    const char *error = fsb_network_load(net, bytes, size);
    if (error) {
        fprintf(stderr, "%s: %s\n", path, error);
        exit(1);
    }
    free(bytes);
    return net;
}

/* The square of a name such as e4, or -1. */
static int square(const char *name) {
    if (name[0] < 'a' || name[0] > 'h' || name[1] < '1' || name[1] > '8') {
        return -1;
    }
    return 8 * (name[1] - '1') + name[0] - 'a';
}

/* Plays a move such as e2e4, e1g1 (castling; e1h1, too) or e7e8q. Returns NULL, or what is wrong with it. */
static const char *play(fsb_board *board, uint32_t side, const char *text) {
    size_t length = strlen(text);
    if (length < 4 || length > 5) {
        return "a move has four or five letters";
    }
    int from = square(text), to = square(text + 2);
    if (from < 0 || to < 0) {
        return "no such square";
    }
    uint64_t origin = UINT64_C(1) << from, target = UINT64_C(1) << to;
    uint64_t *own = board->pieces[side], *theirs = board->pieces[1 - side];
    int role = PAWN;
    while (role <= KING && !(own[role] & origin)) {
        role++;
    }
    if (role > KING) {
        return "no piece of the side to move there";
    }
    int takes_own_rook = (own[ROOK] & target) != 0;
    int files = abs(from % 8 - to % 8), is_kingside = to > from, first = from - from % 8;
    int is_en_passant = role == PAWN && files != 0 && !(fsb_occupied(board) & target);
    own[role] ^= origin;
    if (role == KING && (takes_own_rook || files == 2)) {
        int rook = takes_own_rook ? to : first + (is_kingside ? 7 : 0);
        own[ROOK] &= ~(UINT64_C(1) << rook);
        own[KING] |= UINT64_C(1) << (first + (is_kingside ? 6 : 2));
        own[ROOK] |= UINT64_C(1) << (first + (is_kingside ? 5 : 3));
        return NULL;
    }
    /* En passant: the captured pawn stands beside the capturing one. */
    uint64_t captured = is_en_passant ? UINT64_C(1) << (first + to % 8) : target;
    for (int other = PAWN; other <= KING; other++) {
        theirs[other] &= ~captured;
    }
    if (length == 5) {
        static const char roles[] = "nbrq";
        const char *letter = strchr(roles, text[4]);
        if (!letter) {
            return "no such role";
        }
        role = KNIGHT + (int)(letter - roles);
    }
    own[role] |= target;
    return NULL;
}

static void print(const char *text, int32_t score) {
    printf("%s: %d cp (%d internal units), side to move's view\n", text, (int)fsb_centipawns(score), (int)score);
}

int main(int count, char **arguments) {
    if (count < 2) {
        fprintf(stderr, "usage: follow_game WEIGHTS MOVE...\n");
        return 1;
    }
    fsb_network *net = load(arguments[1]);
    fsb_board board = INITIAL_BOARD;
    uint32_t side_to_move = FSB_WHITE;
    static fsb_accumulator accumulators[2];
    for (uint32_t pov = 0; pov < 2; pov++) {
        fsb_accumulator_refresh(&accumulators[pov], net, &board, pov);
    }
    print("start", fsb_evaluate(net, accumulators, &board, side_to_move));
    for (int i = 2; i < count; i++) {
        fsb_board after = board;
        const char *error = play(&after, side_to_move, arguments[i]);
        if (error) {
            fprintf(stderr, "`%s`: %s\n", arguments[i], error);
            return 1;
        }
        for (uint32_t pov = 0; pov < 2; pov++) {
            fsb_accumulator_update(&accumulators[pov], net, &board, &after, pov);
        }
        board = after;
        side_to_move = 1 - side_to_move;
        print(arguments[i], fsb_evaluate(net, accumulators, &board, side_to_move));
    }
    free(net);
    return 0;
}
