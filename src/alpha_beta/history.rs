//! History heuristics: tables that order moves by the cutoffs that they gave earlier in the search.

use shakmaty::{Color, Move};

use crate::chess::PackedMove;

use super::correction::Corrections;

/// Largest absolute value of a history score: the gravity update stays within it.
const LARGEST_SCORE: i32 = 16_384;
pub(super) const PIECE_SQUARES: usize = 12 * 64;

/// A moved piece and its target square, as an index below 12 · 64.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct PieceTo(u16);

impl PieceTo {
    pub(super) fn of(mv: Move, turn: Color) -> PieceTo {
        let piece = turn as usize * 6 + mv.role() as usize - 1;
        PieceTo((piece * 64 + mv.to() as usize) as u16)
    }

    /// Below [`PIECE_SQUARES`].
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Butterfly, continuation, capture and correction history, and counter moves.
pub(super) struct Histories {
    /// Butterfly history, by colour, origin and target.
    quiet: Box<[i16]>,
    /// Continuation history, by moved piece and target of an earlier move and of this one.
    continuation: Box<[i16]>,
    /// Capture history, by moved piece, target and captured role.
    capture: Box<[i16]>,
    /// Corrections of the static evaluation.
    pub(super) corrections: Corrections,
    /// The quiet move that last refuted a move, by moved piece and target of the refuted move.
    counter: Box<[PackedMove]>,
}

/// Distances in plies at which continuation history looks back.
pub(super) const CONTINUATIONS: [usize; 3] = [1, 2, 4];

impl Histories {
    pub(super) fn new() -> Histories {
        Histories {
            quiet: vec![0; 2 * 4096].into(),
            continuation: vec![0; PIECE_SQUARES * PIECE_SQUARES].into(),
            capture: vec![0; PIECE_SQUARES * 6].into(),
            corrections: Corrections::new(),
            counter: vec![PackedMove::NONE; PIECE_SQUARES].into(),
        }
    }

    pub(super) fn clear(&mut self) {
        self.quiet.fill(0);
        self.continuation.fill(0);
        self.capture.fill(0);
        self.counter.fill(PackedMove::NONE);
        self.corrections.clear();
    }

    /// The history score of a quiet move, summed over the tables. `earlier`: the moves [`CONTINUATIONS`] plies before.
    pub(super) fn quiet(&self, mv: Move, turn: Color, earlier: &[Option<PieceTo>; 3]) -> i32 {
        let to = PieceTo::of(mv, turn);
        let continuation = |before: &PieceTo| i32::from(self.continuation[continuation_index(*before, to)]);
        2 * i32::from(self.quiet[quiet_index(mv, turn)]) + earlier.iter().flatten().map(continuation).sum::<i32>()
    }

    pub(super) fn capture(&self, mv: Move, turn: Color) -> i32 {
        i32::from(self.capture[capture_index(mv, turn)])
    }

    /// The quiet move that last refuted `before`.
    pub(super) fn counter(&self, before: Option<PieceTo>) -> PackedMove {
        before.map_or(PackedMove::NONE, |before| self.counter[before.0 as usize])
    }

    pub(super) fn set_counter(&mut self, before: Option<PieceTo>, mv: Move) {
        if let Some(before) = before {
            self.counter[before.0 as usize] = PackedMove::of(mv);
        }
    }

    pub(super) fn update_quiet(&mut self, mv: Move, turn: Color, earlier: &[Option<PieceTo>; 3], bonus: i32) {
        self.update_butterfly(mv, turn, bonus);
        self.update_continuation(mv, turn, earlier, bonus);
    }

    pub(super) fn update_butterfly(&mut self, mv: Move, turn: Color, bonus: i32) {
        gravity(&mut self.quiet[quiet_index(mv, turn)], bonus, LARGEST_SCORE);
    }

    pub(super) fn update_continuation(&mut self, mv: Move, turn: Color, earlier: &[Option<PieceTo>; 3], bonus: i32) {
        let to = PieceTo::of(mv, turn);
        for before in earlier.iter().flatten() {
            gravity(&mut self.continuation[continuation_index(*before, to)], bonus, LARGEST_SCORE);
        }
    }

    pub(super) fn update_capture(&mut self, mv: Move, turn: Color, bonus: i32) {
        gravity(&mut self.capture[capture_index(mv, turn)], bonus, LARGEST_SCORE);
    }
}

/// The bonus for a move that gives a cutoff at this depth.
pub(super) fn bonus(depth: i32) -> i32 {
    (16 * depth * depth + 128 * depth).min(2_000)
}

/// Adds a bonus to a score. The change shrinks as the score's absolute value approaches `largest`.
pub(super) fn gravity(score: &mut i16, bonus: i32, largest: i32) {
    let old = i32::from(*score);
    *score = (old + bonus - old * bonus.abs() / largest) as i16;
}

fn quiet_index(mv: Move, turn: Color) -> usize {
    turn as usize * 4096 + PackedMove::of(mv).squares()
}

fn continuation_index(before: PieceTo, to: PieceTo) -> usize {
    before.0 as usize * PIECE_SQUARES + to.0 as usize
}

fn capture_index(mv: Move, turn: Color) -> usize {
    let captured = mv.capture().map_or(0, |role| role as usize - 1);
    PieceTo::of(mv, turn).0 as usize * 6 + captured
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_stay_within_their_bound() {
        let mut score = 0;
        for _ in 0..1_000 {
            gravity(&mut score, bonus(20), LARGEST_SCORE);
        }
        assert!(score > 15_000 && i32::from(score) <= LARGEST_SCORE, "{score}");
        for _ in 0..1_000 {
            gravity(&mut score, -bonus(20), LARGEST_SCORE);
        }
        assert!(score < -15_000 && i32::from(score) >= -LARGEST_SCORE, "{score}");
    }
}
