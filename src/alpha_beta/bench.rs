//! The bench: fixed positions searched to a fixed depth. The total node count is the search's signature.

use std::time::{Duration, Instant};

use serde::Serialize;
use shakmaty::Chess;

use super::{Game, Limits, Searcher};

/// Default depth of the bench searches.
pub const BENCH_DEPTH: u32 = 9;

/// Node count and time of a bench.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct BenchResult {
    /// Moves made in all searches; the same on every back end and machine.
    pub nodes: u64,
    /// Total time of the searches.
    #[serde(skip)]
    pub elapsed: Duration,
}

impl BenchResult {
    /// Nodes per second.
    #[must_use]
    pub fn nps(&self) -> u64 {
        (self.nodes as f64 / self.elapsed.as_secs_f64().max(1e-9)) as u64
    }
}

/// Searches every position of [`BENCH_FENS`] to `depth`, each with empty tables.
pub fn bench(searcher: &mut Searcher<'_>, depth: u32) -> BenchResult {
    let limits = Limits { depth: Some(depth), ..Limits::default() };
    let mut result = BenchResult { nodes: 0, elapsed: Duration::ZERO };
    for fen in BENCH_FENS {
        let Some(position) = parse_fen(fen) else { continue };
        searcher.clear();
        let start = Instant::now();
        result.nodes += searcher.search(&Game::new(position), &limits, |_| ()).nodes;
        result.elapsed += start.elapsed();
    }
    result
}

/// The position of a FEN; `None` if it is not legal.
pub(super) fn parse_fen(fen: &str) -> Option<Chess> {
    crate::chess::parse_fen(fen).ok()
}

/// Positions from opening to ending, from the sample games shipped with fsbench.
pub const BENCH_FENS: [&str; 50] = [
    "rnbqkb1r/ppppp1pp/5n2/8/P1P2p2/8/1PQPPPPP/RNB1KBNR w KQkq - 2 4",
    "r2q2k1/1b3pbp/5np1/p1ppr3/P7/3pPB1P/1P3PP1/2RQ1RK1 b - - 1 22",
    "2rk4/1p6/p6R/7p/8/P1P2Nr1/1PK5/8 w - - 0 41",
    "r1bq1bn1/p1pp1N1Q/n2kpp2/8/2B5/4P3/P2P1PPP/RNB1K2R b KQ - 2 11",
    "4r2r/p1p3pk/1p6/1P1B2B1/P2P2Pp/1PN4N/3K4/R7 b - - 0 30",
    "2k5/6R1/2P1K3/7p/5P1P/8/8/3r4 b - - 0 49",
    "rnb4r/1pk3b1/2p3p1/p3p3/P3P3/3N2P1/1PP2P2/R1B1KB1R w KQ - 0 20",
    "r2k1b2/p4p1r/p1n5/3p4/P4p2/NPP3Pq/4PP2/R4RK1 b - - 0 20",
    "rnb1kbnr/pp5p/2p3p1/3p1p2/P3PP1q/3B1N1P/1PPP2P1/RNBQ1K1R b kq - 1 9",
    "r2q4/2ppbk2/p5p1/3P4/1PP3nP/2N5/PB1P2p1/2K1R3 w - - 1 28",
    "1r6/4p3/p3P3/P6p/2pK2k1/2P3P1/8/8 b - - 10 46",
    "r1b1k2r/1p3pp1/2nbp2n/2PqP3/p2p3p/P4N2/4BPPP/1RBQ1RK1 w kq - 0 18",
    "3q3r/1pR5/4n2k/1P5p/5P2/P1N1p1N1/5bKP/8 w - - 0 36",
    "rnbqkb1r/ppp1ppp1/7p/3p4/5P1P/3P3R/PPP1P1P1/RNBQ1KN1 w kq - 0 7",
    "5b2/1p3n2/1p2k3/4p1B1/1n1pP2P/8/PP2K3/3R1R2 b - - 4 25",
    "8/5pk1/1R4p1/P7/6K1/2r3P1/8/8 b - - 4 42",
    "r2qk2r/p2nnpp1/1Pp5/2Pp2Pp/8/5P2/RPP3bP/1NBQK1R1 w kq - 1 15",
    "8/1kn2Q2/3R2B1/1p2p3/1p6/4P2P/PP6/2K5 b - - 1 33",
    "r1bqkbnr/1ppppppp/p7/4n3/4P3/P1P2P2/1P1P2PP/RNBQKBNR b KQkq - 0 4",
    "3rk2r/1p3pp1/1qp2n1p/p1b5/P2NPPb1/2P3P1/1P1B2BP/R3K2R w KQ - 3 23",
    "6rk/pN6/4p3/3p1p1B/3P3P/3NP3/2R2PPb/3Q1K2 w - - 2 40",
    "r1b1k2r/1ppqn1p1/p1n2p2/2bpp2p/7P/P2PPNP1/1PP2P2/R1BQKBNR b Qkq - 0 12",
    "4r1k1/p4r2/2pbp2p/P2p2p1/2P2PP1/1p1P2B1/1P1Q1PB1/4RRK1 w - - 0 31",
    "8/p5k1/5rp1/1p1rP1Kp/6nP/3N2P1/P7/2R5 b - - 0 45",
    "r3r1k1/1bqn1p1p/p2p1bpQ/1pnPp3/4P3/1P2N3/1BPNBPPP/R4R1K b - - 3 20",
    "8/1k1b4/1p6/pPbp4/3P4/2N3P1/1P3P2/R3K3 w - - 6 39",
    "1nbq1knr/rppp1pp1/4p2p/p3P3/P2P2Q1/2N5/1PP2PPP/2B1KBNR w K - 1 10",
    "4r3/3p2kp/Bpp1pr1p/p1P1N1b1/P2P4/6P1/1P1Q3P/1K1R3R b - - 1 28",
    "3n4/8/1k5N/8/8/P1K1P3/8/8 w - - 0 47",
    "r1bq1rk1/2p3bp/1pn3p1/p2P4/8/P2QPN2/1P1N1PPP/R1B1K2R w KQ - 0 18",
    "2r2k1r/4p3/3pPp2/3B4/1pP2P1p/7P/2PK1B2/1R5R b - - 1 36",
    "r1bqkb1r/p3pp1p/p2p1np1/2p5/4P3/3P3P/P1P1QPP1/RNB1KBNR b KQkq - 0 7",
    "7k/p6p/6p1/2R5/7p/P6P/1P1r1PBP/R5K1 w - - 0 26",
    "6kr/6bp/3p4/1p1PPR2/1Pr5/6q1/8/3K4 w - - 1 41",
    "3rkb1r/p3npp1/1p2p3/1Pnp3p/5P1q/N1PP2RP/P1Q3BP/R1BK4 b k - 0 15",
    "3r2k1/6bp/p1p3p1/3N4/P5P1/1q2PpnP/1B6/2K5 b - - 5 32",
    "r1bqkb1r/pp1p1ppp/n3pn2/2p5/3P3P/2N1P3/PPP2PP1/R1BQKBNR w KQkq - 0 5",
    "r3kb2/pppb1p2/7r/3Pp3/2P3pP/PnNB2N1/1P4P1/1R1K3R b q - 5 23",
    "4r3/4Nk1p/2pPn3/6p1/4N1P1/pP3P1P/P3n3/4R2K w - - 7 42",
    "r1bqkb1r/1pp3pp/p2p4/3Pp2n/2P3Pn/P3P2P/1P2N1B1/RNBQK2R w KQkq - 1 13",
    "6k1/1p3rn1/3p3p/r2P4/P7/3PRp2/1B3P1K/R7 b - - 0 31",
    "3k4/8/4R1P1/8/5Nb1/P1p4p/7P/2K5 w - - 1 50",
    "r1b1k3/p3r3/2pb1qp1/1p1pNp2/3P4/P2P2nP/1PPQ1NB1/R3K1R1 b q - 6 21",
    "8/pR1nk3/7p/1N4p1/2pPP3/P1P3P1/2K4P/5R2 w - - 0 31",
    "r1b1k2r/pppqbp1p/2n2np1/4pP2/3pP3/1P1P2P1/P1P2N1P/RNBQKB1R b KQkq - 1 10",
    "5r2/2p1k3/3pp3/pP4q1/N2BP1pb/6p1/3PK3/5Q1R w - - 1 29",
    "3k4/8/7p/8/1R5P/5P2/7r/2K5 b - - 1 47",
    "r4rk1/1ppb3p/p1n3p1/3pbp2/PP1N4/2P1P1P1/3PBKP1/R1B4R b - - 1 18",
    "3r4/r2bR2p/5Qpk/1p1P1p2/p4P2/3P4/P5BP/5N1K w - - 0 37",
    "rnbqk1nr/ppp1p1b1/8/5Ppp/1P6/2Np4/P1PP1P1P/R1BQ1KNR w kq - 0 8",
];

#[cfg(test)]
mod tests {
    use super::*;
    use shakmaty::Position;

    #[test]
    fn every_position_is_legal_and_not_over() {
        for fen in BENCH_FENS {
            assert!(!parse_fen(fen).expect(fen).legal_moves().is_empty(), "{fen}");
        }
    }
}
