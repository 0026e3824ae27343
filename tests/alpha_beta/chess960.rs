//! Perft of positions of Chess960 and double Chess960.

/// Counts of [the chess programming wiki](https://www.chessprogramming.org/Chess960_Perft_Results), from depth 1;
/// Stockfish 15.1's `go perft` gives the same.
pub const CHESS960_PERFT: [(&str, [u64; 5]); 12] = [
    ("bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9", [21, 528, 12_189, 326_672, 8_146_062]),
    ("2nnrbkr/p1qppppp/8/1ppb4/6PP/3PP3/PPP2P2/BQNNRBKR w HEhe - 1 9", [21, 807, 18_002, 667_366, 16_253_601]),
    ("b1q1rrkb/pppppppp/3nn3/8/P7/1PPP4/4PPPP/BQNNRKRB w GE - 1 9", [20, 479, 10_471, 273_318, 6_417_013]),
    ("nqr1krbn/pppp1ppp/8/8/3pP3/5P2/PPPb1NPP/NQRBKRB1 w FCfc - 3 9", [2, 51, 1_047, 27_743, 612_305]),
    ("r1krnnbq/pp1ppp1p/6p1/2p5/2P5/P3P3/Rb1P1PPP/1BKRNNBQ w Dda - 0 9", [2, 61, 1_312, 40_072, 937_188]),
    ("rbk1r1bn/ppppp1pp/4n3/5p2/1P3P2/4N2P/PqPPP1P1/RBK1RQBN w EAea - 1 9", [2, 60, 1_319, 41_765, 1_017_864]),
    ("rkbbn1nr/ppppp1pp/8/6N1/5p2/1q6/P1PPPPPP/RKBBN1QR w HAha - 0 9", [3, 72, 1_919, 50_827, 1_400_832]),
    ("brkb1nr1/pppppp2/3n2pp/3B4/1P6/4P3/PqPP1PPP/BRK1NNRQ w GBgb - 2 9", [4, 98, 2_965, 76_143, 2_352_530]),
    ("bbrqk1rn/pp1ppppp/8/2p5/2P1P3/5n1P/PPBP1PP1/B1RQKNRN w GCgc - 1 9", [3, 95, 2_690, 85_038, 2_518_864]),
    ("nrkqrbb1/ppp1pppp/3p4/8/4P3/2Pn1P2/PP4PP/NRKQRBBN w EBeb - 0 9", [4, 88, 3_090, 73_414, 2_640_555]),
    ("nrkbnrbq/ppppppp1/8/8/7p/PP3P2/2PPPRPP/NRKBN1BQ w Bfb - 0 9", [16, 353, 6_189, 156_002, 3_008_668]),
    ("brkr1bqn/1pppppp1/3n3p/1p6/P7/4P1P1/1PPP1P1P/BRKRN1QN w DBdb - 0 9", [19, 359, 7_430, 157_099, 3_521_652]),
];

/// Positions of double Chess960 in which castling is legal, with the counts of Stockfish 15.1's `go perft`.
pub const DOUBLE_CHESS960_PERFT: [(&str, [u64; 5]); 4] = [
    ("bqnbnrkr/ppp3p1/3ppp2/2N4p/P5P1/5N1P/1PPPPP2/1RB1QKRB w GBhf - 0 8", [31, 642, 20_324, 456_020, 14_818_813]),
    (
        "1qb1rbkr/p3p1pp/1pppn3/3n1p2/4P1PP/3P1PN1/PPP5/BNQBRKR1 w GEhe - 0 8",
        [35, 1_062, 35_911, 1_087_803, 37_191_930],
    ),
    ("qrbbk1rn/1p1p2p1/4n3/p1p2p1p/4P3/PN3P2/QPPNP1PP/2RBB1KR w HCgb - 0 8", [28, 862, 25_170, 779_873, 23_247_724]),
    ("rk1r1bnn/1pp1p3/5ppp/pQ1p4/5P2/2P4b/PP1PP1PP/RNBBKR1N w FAda - 0 8", [38, 955, 35_741, 904_998, 33_640_957]),
];
