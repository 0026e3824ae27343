//! Programs run by the interpreter against the reference encoder, for shipped and for generated definitions.

use shakmaty::Position;

use super::*;
use crate::chess::castlings::every_castling;
use crate::chess::{Board, BoardChange, Perspective, PieceBoard, random_game, random_game_from, start_of_each_kind};
use crate::features::code::{Executable, Inputs, Instruction, Outputs, RowList};
use crate::features::compiled::generator::{self, Limits};
use crate::features::library;
use crate::features::reference;
use crate::features::{Delta, FeatureSet};
use crate::units::Seed;

/// The elements of `of` that are not in `other`, both ascending; repeats count.
fn beyond(of: &[u32], other: &[u32]) -> Vec<u32> {
    let mut other = other.to_vec();
    of.iter().copied().filter(|row| other.binary_search(row).map(|at| other.remove(at)).is_err()).collect()
}

/// A block's active rows, ascending.
fn active(block: &Block, board: &Board, pov: Perspective) -> Vec<u32> {
    let elements = reference::active(block.spec(), board, pov);
    let mut rows: Vec<u32> = elements.into_iter().filter_map(|element| block.spec().index_of(element)).collect();
    rows.sort_unstable();
    rows
}

/// A set's delta, ready to run.
struct Follower<'a> {
    set: &'a FeatureSet,
    program: Executable,
    start: Option<Executable>,
    compared: Vec<usize>,
    may_cancel: bool,
}

impl<'a> Follower<'a> {
    fn of(set: &'a FeatureSet) -> Follower<'a> {
        let blocks: Vec<&Block> = set.blocks().iter().collect();
        let DeltaProgram { program, start, compared, may_cancel } = delta(&blocks);
        let start = start.map(Executable::interpreted);
        Follower { set, program: Executable::interpreted(program), start, compared, may_cancel }
    }

    /// The state that belongs to a board.
    fn state(&self, board: &PieceBoard) -> Vec<u64> {
        let mut state = vec![0; self.program.program().state as usize];
        if let Some(start) = &self.start {
            let none = vec![0; state.len()];
            let inputs = Inputs { state_before: &none, state_after: &mut state, ..Inputs::of(board) };
            start.run(inputs, Outputs::None);
        }
        state
    }

    /// Compares the delta with the reference, for the blocks that it follows and whose contexts stay.
    fn check(&self, before: &Board, change: &BoardChange, after: &Board) {
        let mut deltas = <[Delta; 2]>::default();
        let boards = [before, after].map(PieceBoard::of);
        let state = self.state(&boards[0]);
        let mut state_after = vec![0; state.len()];
        let inputs = Inputs {
            before: &boards[0],
            after: &boards[1],
            change,
            state_before: &state,
            state_after: &mut state_after,
        };
        self.program.run(inputs, Outputs::Changed(deltas.each_mut()));
        assert_eq!(state_after, self.state(&boards[1]), "{}", self.set.definition());
        for pov in Perspective::ALL {
            let Delta { added, removed, .. } = &deltas[pov.index()];
            let capacity = self.program.program().capacity as usize;
            assert!(added.len() <= capacity && removed.len() <= capacity, "capacity {capacity}");
            let mut followed = 0;
            for (number, block) in self.set.blocks().iter().enumerate() {
                let own = |rows: &[u32]| {
                    let mut own: Vec<u32> = rows.iter().copied().filter(|row| block.contains(*row)).collect();
                    own.sort_unstable();
                    own
                };
                let [mut added, mut removed] = [own(added), own(removed)];
                followed += added.len() + removed.len();
                if self.may_cancel {
                    [added, removed] = [beyond(&added, &removed), beyond(&removed, &added)];
                }
                let context = |board: &Board| self.set.encoder().context(number, board, pov);
                if self.compared.contains(&number) {
                    assert!(added.is_empty() && removed.is_empty());
                } else if context(before) == context(after) {
                    let [old, new] = [before, after].map(|board| active(block, board, pov));
                    let expected = [beyond(&new, &old), beyond(&old, &new)];
                    let definition = self.set.definition();
                    assert_eq!([added, removed], expected, "{pov:?} {before:?} {change:?} block {number} {definition}");
                }
            }
            let all_stay = (0..self.set.blocks().len()).all(|number| {
                let context = |board: &Board| self.set.encoder().context(number, board, pov);
                context(before) == context(after)
            });
            assert!(!all_stay || followed == added.len() + removed.len(), "rows of no block");
        }
    }
}

/// Follows moves, moves back, pairs of moves and null moves of random games, and castlings of Chess960.
fn check_delta(set: &FeatureSet, games: u64) {
    let follower = Follower::of(set);
    for (position, mv) in every_castling().iter().step_by(5) {
        let change = BoardChange::of(*mv, position.turn());
        follower.check(position.board(), &change, &change.applied_to(position.board()));
    }
    for game in 0..games {
        let mut rng = Seed(40).stream("lowered deltas", game);
        let mut earlier: Option<Board> = None;
        let start = start_of_each_kind(game, &mut rng);
        for (position, mv) in random_game_from(start, &mut rng, 150) {
            let before = position.board();
            let change = BoardChange::of(mv, position.turn());
            let after = change.applied_to(before);
            follower.check(before, &change, &after);
            let between = |from: &Board, to: &Board| BoardChange::between(&PieceBoard::of(from), &PieceBoard::of(to));
            if let Some(back) = between(&after, before) {
                follower.check(&after, &back, before);
            }
            follower.check(before, &BoardChange::EMPTY, before);
            if let Some(earlier) = earlier.replace(before.clone())
                && let Some(change) = between(&earlier, &after)
            {
                follower.check(&earlier, &change, &after);
            }
        }
    }
}

fn set_of(features: &str, keys: &str) -> FeatureSet {
    FeatureSet::from_definition(&format!("features = \"{features}\"\n{keys}")).expect("a definition")
}

/// Asserts that a delta leaves no block to the caller, and that it is right under several orientations.
pub(super) fn check_followed(features: &str) {
    for keys in [
        "",
        "multiplicity = \"bag\"\n",
        "black = \"rotate\"\nmirror = \"king-left\"\n",
        "mirror = \"king-right\"\nmultiplicity = \"bag\"\n",
    ] {
        let set = set_of(features, keys);
        let blocks: Vec<&Block> = set.blocks().iter().collect();
        assert_eq!(delta(&blocks).compared, [0usize; 0], "{features} {keys}");
        check_delta(&set, 2);
    }
}

#[test]
fn deltas_of_pieces() {
    check_followed("square(P) * role(P) * color(P) for P in pieces");
    check_followed("square(K) * square(P) * role(P, pawn..queen) * color(P) for P in pieces");
    check_followed("file(P) * role(P) * color(P) for P in pieces + rank(P) * role(P) * color(P) for P in pieces");
    check_followed("square(P) for P in pieces");
    check_followed("role(P) for P in pieces");
    check_followed("color(P) * file(P) for P in pieces");
    check_followed("file(P) for P in pieces");
    check_followed("(role(P, pawn) * rank(P) + role(P, knight..king)) * color(P) for P in pieces");
    check_followed("square(P) * color(P, own) for P in pieces if role(P) == pawn");
    check_followed("file(P) * role(P) for P in pieces if file(P) >= file(K) and abs(rank(E) - rank(P)) < 3");
    check_followed("rank(K) * file(E) * file(P) * role(P) for P in pieces if rank(K) < rank(E)");
    // The kings share their rows.
    let kings = "(role(P, pawn..queen) * color(P) + role(P, king)) * square(P) for P in pieces";
    check_followed(&format!("square(K) * {kings}"));
    check_followed(&format!("rank(K) * {kings}"));
    check_followed(&format!("square(K) * {kings} if rank(P) >= rank(K)"));
    check_followed("(file(K) - file(P)) * role(P) for P in pieces if color(P) == own");
}

#[test]
fn deltas_of_neighbours() {
    for direction in ["east", "north", "northeast", "northwest"] {
        let check = |features: &str| check_followed(&features.replace("next", &format!("next(P, {direction})")));
        check("rank(P) * role(P) * color(P) * role(Q) * color(Q) for P in pieces, Q in next");
        check("diagonal(P) * role(P) * role(Q) * color(Q) for P in pieces, Q in next");
        check("file(P) * role(P) * color(Q) for P in pieces, Q in next");
        check("square(P) * square(Q) for P in pieces, Q in next");
        check("role(P) * role(Q, pawn..rook) for P in pieces, Q in next");
    }
    // Conditions over several variables, where every pair has a row of its own.
    let state = "role(P) * color(P) * square(P)";
    let partner = state.replace('P', "Q");
    check_followed(&format!(
        "{state} * {partner} for P in pieces, Q in next(P, north) \
         if color(P) != color(Q) and (rank(Q) - rank(P)) > 1 and file(K) != file(P)"
    ));
}

#[test]
fn deltas_of_shipped_sets() {
    for shipped in library::shipped_names() {
        let set = FeatureSet::resolve(shipped).expect("shipped");
        check_delta(&set, 2);
    }
}

/// A piece that moves along a line of which its pairs are: nothing is looked for.
#[test]
fn pairs_of_lines_ask_first_whether_a_piece_stays_on_one() {
    for shipped in ["pairs-h", "pairs-v", "pairs-d1", "pairs-d2"] {
        let set = FeatureSet::resolve(shipped).expect("shipped");
        let program = delta(&set.blocks().iter().collect::<Vec<&Block>>()).program;
        assert!(matches!(program.body.last(), Some(Instruction::If { .. })), "{shipped}");
    }
    let set = set_of("file(P) * role(Q) for P in pieces, Q in next(P, northeast)", "");
    let program = delta(&set.blocks().iter().collect::<Vec<&Block>>()).program;
    assert!(!matches!(program.body.last(), Some(Instruction::If { .. })));
}

#[test]
fn deltas_of_generated_sets() {
    let mut followed = 0;
    for number in 0..250 {
        let limits = Limits { binders: 1 + (number % 2) as usize, counts: false, ..Limits::FULL };
        let generated = generator::definition(&mut Seed(41).stream("lowered", number), limits);
        let set = FeatureSet::from_definition(&generated.text()).expect("a definition");
        let blocks: Vec<&Block> = set.blocks().iter().collect();
        followed += blocks.len() - delta(&blocks).compared.len();
        check_delta(&set, 1);
    }
    assert!(followed > 100, "{followed}");
}

/// Compares a set's encoders with the reference.
fn check_encoders(set: &FeatureSet, games: u64) {
    let blocks: Vec<&Block> = set.blocks().iter().collect();
    let programs: Vec<EncoderProgram> = encoders(&blocks);
    let executables: Vec<Executable> = programs.iter().map(|of| Executable::interpreted(of.program.clone())).collect();
    for game in 0..games {
        let mut rng = Seed(42).stream("lowered encoders", game);
        for (position, _) in random_game(&mut rng, 60) {
            check_encoding(set, &programs, &executables, position.board());
        }
    }
    let mut board = Board::default();
    board.discard_piece_at(shakmaty::Square::E8);
    check_encoding(set, &programs, &executables, &board);
    check_encoding(set, &programs, &executables, &Board::empty());
}

fn check_encoding(set: &FeatureSet, programs: &[EncoderProgram], executables: &[Executable], board: &Board) {
    let placed = PieceBoard::of(board);
    let mut active: [Vec<u32>; 2] = Default::default();
    for (of, executable) in programs.iter().zip(executables) {
        let mut lists: [RowList; 2] = Default::default();
        executable.run(Inputs::of(&placed), Outputs::Active(lists.each_mut()));
        for (all, mut rows) in active.iter_mut().zip(lists.map(Vec::from)) {
            assert!(
                rows.len() <= of.program.capacity as usize,
                "{} {} {}",
                rows.len(),
                of.program.capacity,
                set.definition()
            );
            if of.repeats {
                rows.sort_unstable();
                rows.dedup();
            }
            all.extend(rows);
        }
    }
    for pov in Perspective::ALL {
        active[pov.index()].sort_unstable();
        assert_eq!(active[pov.index()], set.reference(board, pov), "{pov:?} {board:?} {}", set.definition());
    }
}

#[test]
fn encoders_of_shipped_sets() {
    for shipped in library::shipped_names() {
        check_encoders(&FeatureSet::resolve(shipped).expect("shipped"), 1);
    }
}

#[test]
fn encoders_of_generated_sets() {
    for number in 0..300 {
        let generated = generator::definition(&mut Seed(43).stream("lowered encoders", number), Limits::FULL);
        if generated.cost() < 20_000 {
            check_encoders(&FeatureSet::from_definition(&generated.text()).expect("a definition"), 1);
        }
    }
}

#[test]
fn encoders_of_many_terms() {
    let sum = "(role(P) + rank(P) * color(P) + file(P))";
    let features = format!("{sum} * {} * (file(K) + rank(E)) for P in pieces, Q in pieces", sum.replace('P', "Q"));
    check_encoders(&set_of(&format!("{features} if color(P) != color(Q) and square(P) < square(Q)"), ""), 1);
    check_encoders(&set_of(&features, "mirror = \"king-left\"\nmultiplicity = \"bag\"\n"), 1);
    let counted = "(file(P) + count(3 for Q in targets(P)) + rank(P)) * (role(P) + color(P) + rank(P)) * \
                   (file(P) + color(P) + file(K)) for P in pieces";
    check_encoders(&set_of(counted, ""), 1);
}
