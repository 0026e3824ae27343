//! Batches of boards encoded by vector instructions, all pieces of a board at once, for blocks with
//! [sum tables](super::sum_tables). The rows equal the rows of [`CompiledBlock::append_both`] (property-tested below).

use crate::chess::{PackedBoard, Perspective};

use super::CompiledBlock;
#[cfg(target_arch = "x86_64")]
use super::avx512::Avx512Encoder;
#[cfg(target_arch = "aarch64")]
use super::neon::NeonEncoder;
use super::piece_table::RowBuffer;

/// Vector instructions that this CPU has; on others there is no such value.
#[derive(Copy, Clone, Debug)]
pub enum VectorEncoder {
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512Encoder),
    #[cfg(target_arch = "aarch64")]
    Neon(NeonEncoder),
}

impl VectorEncoder {
    pub fn detect() -> Option<VectorEncoder> {
        let all: [Option<VectorEncoder>; _] = [
            #[cfg(target_arch = "x86_64")]
            Avx512Encoder::detect().map(VectorEncoder::Avx512),
            #[cfg(target_arch = "aarch64")]
            NeonEncoder::detect().map(VectorEncoder::Neon),
        ];
        all.into_iter().flatten().next()
    }

    pub const fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            VectorEncoder::Avx512(_) => "avx512",
            #[cfg(target_arch = "aarch64")]
            VectorEncoder::Neon(_) => "neon",
        }
    }

    /// Appends the active features of boards for the given side to move and for the other side, and marks their ends.
    /// `blocks`: blocks with sum tables, each with the offset of its indices.
    pub fn append<'a, 'b>(
        self,
        blocks: &(impl Iterator<Item = (&'b CompiledBlock, u32)> + Clone),
        boards: impl Iterator<Item = (&'a PackedBoard, Perspective)>,
        sides: &mut [RowBuffer; 2],
    ) {
        match self {
            #[cfg(target_arch = "x86_64")]
            VectorEncoder::Avx512(encoder) => encoder.append(blocks, boards, sides),
            #[cfg(target_arch = "aarch64")]
            VectorEncoder::Neon(encoder) => encoder.append(blocks, boards, sides),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Board;
    use crate::features::FeatureSet;
    use crate::features::compiled::PieceList;
    use crate::units::Seed;
    use rand::RngExt;

    /// Boards with one king per side and up to 30 other pieces anywhere.
    fn boards() -> Vec<PackedBoard> {
        let mut rng = Seed(6).stream("lanes", 0);
        let board = |_| {
            let mut squares: Vec<u32> = (0..64).collect();
            let mut board = Board::empty();
            for piece in 0..rng.random_range(2..=32) {
                let square = squares.swap_remove(rng.random_range(0..squares.len()));
                let code =
                    [5, 13].get(piece).copied().unwrap_or_else(|| rng.random_range(0..5) + 8 * rng.random_range(0..2));
                let color = shakmaty::Color::from_black(code > 7);
                let role = shakmaty::Role::ALL[code & 7];
                board.set_piece_at(shakmaty::Square::new(square), shakmaty::Piece { color, role });
            }
            PackedBoard::pack(&board).expect("32 pieces at most")
        };
        (0..300).map(board).collect()
    }

    /// Whether the blocks of a set have sum tables; if so, their rows equal the piece table's, in the same order.
    fn check(definition: &str, expected: bool) {
        let set = FeatureSet::resolve(definition).or_else(|_| FeatureSet::from_definition(definition)).expect("a set");
        for block in set.blocks() {
            assert_eq!(block.compiled.has_sum_tables(), expected, "{definition}");
        }
        let Some(encoder) = VectorEncoder::detect().filter(|_| expected) else { return };
        let boards = boards();
        for stm in Perspective::ALL {
            let mut expected = <[RowBuffer; 2]>::default();
            let mut found = <[RowBuffer; 2]>::default();
            let blocks = || set.blocks().iter().map(|block| (&block.compiled, block.offset));
            for board in &boards {
                let mut list = PieceList::default();
                list.fill(board);
                blocks().for_each(|(block, offset)| block.append_both(&list, stm, offset, &mut expected));
                expected.iter_mut().for_each(RowBuffer::end);
            }
            encoder.append(&blocks(), boards.iter().map(|board| (board, stm)), &mut found);
            for (expected, found) in expected.iter().zip(&found) {
                assert!(expected.rows() == found.rows() && expected.ends() == found.ends(), "{definition}");
            }
        }
    }

    #[test]
    fn rows_equal_those_of_the_piece_table() {
        for set in ["piece", "king-piece", "half-kp", "half-ka", "half-ka-v2", "half-ka-v2-hm", "relative-king-hv"] {
            check(set, true);
        }
        check("compact", false);
        check("king-piece + relative-king-h", true);
        let mirrored = "square(K) * square(P) * role(P) for P in pieces";
        check(&format!("features = \"{mirrored}\"\nblack = \"rotate\"\nmirror = \"king-left\""), true);
        check("rank(P) * role(P) * color(P) * square(P) for P in pieces if rank(P) < 3", false);
    }
}
