//! Programs give the same by every way to run them.

mod random_program;
mod source;

use rand::{Rng, RngExt};
use shakmaty::{Bitboard, Square};

pub(super) use random_program::random_program;

use super::interpreter::attacked;
use super::{Builder, DirectDelta, Executable, Inputs, Obstacle, Operand, Outputs, Program, RowList, Slider};
use crate::chess::{BoardChange, PieceBoard, random_game};
use crate::features::Delta;
use crate::units::Seed;

/// Boards before and after a move, and state.
pub(super) struct Case {
    pub(super) boards: [PieceBoard; 2],
    pub(super) change: BoardChange,
    pub(super) state: Vec<u64>,
}

pub(super) fn random_cases(count: usize, index: u64) -> Vec<Case> {
    use shakmaty::Position;
    let mut rng = Seed(3).stream("cases of programs", index);
    let game = random_game(&mut rng, 100);
    let mut cases = Vec::new();
    for _ in 0..count {
        let (position, mv) = &game[rng.random_range(0..game.len())];
        let change = BoardChange::of(*mv, position.turn());
        let before = PieceBoard::of(position.board());
        let mut after = before.clone();
        after.apply(&change);
        cases.push(Case { boards: [before, after], change, state: (0..64).map(|_| rng.next_u64()).collect() });
    }
    cases
}

/// What a run leaves: lists by kind and perspective, and the state after it.
#[derive(Debug, PartialEq)]
pub(super) struct Outcome {
    pub(super) lists: Vec<[Vec<u32>; 2]>,
    pub(super) state: Vec<u64>,
}

pub(super) fn outcome(executable: &Executable, case: &Case) -> Outcome {
    let mut state = vec![0; 64];
    let inputs = Inputs {
        before: &case.boards[0],
        after: &case.boards[1],
        change: &case.change,
        state_before: &case.state,
        state_after: &mut state,
    };
    // What a list of active rows has stays, what one of changes has goes.
    let before = [vec![77], vec![77, 77]];
    let lists = if executable.program().lists == 1 {
        let [mut white, mut black] = before.map(RowList::from);
        executable.run(inputs, Outputs::Active([&mut white, &mut black]));
        assert_eq!((&white[..1], &black[..2]), (&[77][..], &[77, 77][..]));
        vec![[white[1..].to_vec(), black[2..].to_vec()]]
    } else {
        let [mut white, mut black] =
            before.map(|rows| Delta { added: rows.clone().into(), removed: rows.into(), refresh: false });
        executable.run(inputs, Outputs::Changed([&mut white, &mut black]));
        let lists = [[white.added, black.added], [white.removed, black.removed]];
        lists.map(|lists| lists.map(Vec::from)).to_vec()
    };
    Outcome { lists, state }
}

#[test]
#[cfg(feature = "jit")]
fn machine_code_equals_the_interpreter() {
    let mut rows = 0;
    let mut direct = 0;
    for number in 0..800 {
        let mut rng = Seed(1).stream("random programs", number);
        // Short ones often need no more than a few rows.
        let length = rng.random_range(1..if number < 400 { 200 } else { 20 });
        let program = random_program(&mut rng, length);
        let compiled = Executable::compile(program.clone());
        assert_eq!(compiled.obstacle(), None);
        let interpreted = Executable::interpreted(program);
        for case in random_cases(8, number) {
            let expected = outcome(&interpreted, &case);
            assert_eq!(outcome(&compiled, &case), expected, "program {number}: {:#?}", compiled.program().body);
            // Scratch was left zero.
            assert_eq!(outcome(&compiled, &case), expected, "program {number}, again");
            rows += expected.lists.iter().flatten().map(Vec::len).sum::<usize>();
        }
        let Ok(code) = DirectDelta::of(compiled) else { continue };
        direct += 1;
        for case in random_cases(8, number) {
            // One with rows of before, one without room.
            let mut white = Delta { added: vec![77].into(), removed: vec![77; 9].into(), refresh: false };
            let mut black = Delta::default();
            code.run(&case.boards[0], &case.change, &case.boards[1], [&mut white, &mut black]);
            let lists = [[white.added, black.added], [white.removed, black.removed]];
            assert_eq!(
                lists.map(|lists| lists.map(Vec::from)).to_vec(),
                outcome(&interpreted, &case).lists,
                "{number}"
            );
        }
    }
    assert!(rows > 80_000, "{rows}");
    assert!(direct > 50, "{direct}");
}

/// A program that emits both halves of what a slider attacks among the squares of its state.
fn sliding(slider: Slider) -> Program {
    let mut builder = Builder::default();
    builder.state(2);
    let square = builder.load(super::Memory::StateBefore, 0);
    let occupied = builder.load(super::Memory::StateBefore, 1);
    let attacked = builder.slide(slider, square, occupied);
    let upper = builder.shift_right(attacked, 32);
    builder.emit(Program::ACTIVE, [attacked, upper], None);
    builder.finish(1, 1)
}

#[test]
fn sliders_attack_what_they_should() {
    let mut rng = Seed(1).stream("occupied squares", 0);
    for slider in [Slider::Bishop, Slider::Rook] {
        let executable = Executable::compile(sliding(slider));
        let mut case = random_cases(1, 0).remove(0);
        for square in Square::ALL {
            for _ in 0..500 {
                let dense = rng.next_u64();
                let occupied = if rng.random() { dense } else { dense & rng.next_u64() };
                case.state = vec![square as u64, occupied];
                let lists = outcome(&executable, &case).lists;
                let found = u64::from(lists[0][0][0]) | u64::from(lists[0][1][0]) << 32;
                assert_eq!(Bitboard(found), attacked(slider, square, Bitboard(occupied)), "{slider:?} on {square}");
            }
        }
    }
}

/// Emits the squares of all pieces.
fn pieces() -> Program {
    pieces_listed(1)
}

/// Emits the squares of all pieces so often. Three times 64 squares are more than machine code has room for on any board.
fn pieces_listed(times: u32) -> Program {
    let mut builder = Builder::default();
    let occupied = builder.occupied(super::BoardTime::Before);
    for _ in 0..times {
        builder.for_bits(occupied, |builder, square| builder.emit(Program::ACTIVE, [square; 2], None));
    }
    builder.finish(1, 32 * times)
}

#[test]
fn boards_of_more_than_32_pieces_have_all_their_rows() {
    for (times, rows_on_any_board) in [(1, Some(64)), (2, Some(128)), (3, None)] {
        assert_eq!(pieces_listed(times).rows_on_any_board(), rows_on_any_board);
        let executable = Executable::compile(pieces_listed(times));
        let mut board = shakmaty::Board::default();
        for occupied in [32, 33, 64] {
            let empty = Square::ALL.into_iter().filter(|square| board.piece_at(*square).is_none()).collect::<Vec<_>>();
            for square in empty {
                if board.occupied().count() < occupied {
                    board.set_piece_at(square, shakmaty::Role::Pawn.of(shakmaty::Color::White));
                }
            }
            let board = PieceBoard::of(&board);
            let [mut white, mut black] = <[RowList; 2]>::default();
            executable.run(Inputs::of(&board), Outputs::Active([&mut white, &mut black]));
            let squares: Vec<u32> = Bitboard(board.occupied()).into_iter().map(u32::from).collect();
            let squares = squares.repeat(times as usize);
            assert_eq!([white, black].map(Vec::from), [squares.clone(), squares]);
        }
    }
}

#[test]
fn says_why_programs_are_interpreted() {
    assert_eq!(Executable::interpreted(pieces()).obstacle(), Some(&Obstacle::Choice));
    let expected = if cfg!(feature = "jit") { None } else { Some(&Obstacle::Build) };
    assert_eq!(Executable::compile(pieces()).obstacle(), expected);
}

#[test]
#[cfg(feature = "jit")]
fn programs_of_long_lists_are_interpreted() {
    let executable = Executable::compile(Program { capacity: u32::MAX, ..pieces_listed(3) });
    assert!(matches!(executable.obstacle(), Some(Obstacle::Capacity { rows: u32::MAX, .. })));
}

#[test]
#[cfg(feature = "jit")]
fn long_programs_are_interpreted() {
    let mut builder = Builder::default();
    let mut value = builder.constant(1);
    for _ in 0..200_000 {
        builder.change(value, super::Binary::Add, Operand::Register(value));
    }
    value = builder.not(value);
    builder.emit(Program::ACTIVE, [value; 2], None);
    let executable = Executable::compile(builder.finish(1, 1));
    assert!(matches!(executable.obstacle(), Some(Obstacle::Length { instructions: 200_003, .. })));
    let case = random_cases(1, 0).remove(0);
    assert_eq!(outcome(&executable, &case).lists[0][0][0], u32::MAX);
}

/// Where the system forbids memory to become executable, programs are interpreted.
#[test]
#[cfg(all(feature = "jit", target_os = "linux"))]
fn programs_are_interpreted_where_memory_never_becomes_executable() {
    const CHILD: &str = "FSBENCH_TEST_WITHOUT_EXECUTABLE_MEMORY";
    const PR_SET_MDWE: i32 = 65;
    const PR_MDWE_REFUSE_EXEC_GAIN: libc::c_ulong = 1;
    if std::env::var_os(CHILD).is_none() {
        let name = std::thread::current().name().expect("tests have names").to_owned();
        let test = std::env::current_exe().expect("this program");
        let status = std::process::Command::new(test)
            .args(["--exact", &name, "--test-threads", "1", "--nocapture"])
            .env(CHILD, "1")
            .status()
            .expect("started");
        assert!(status.success());
        return;
    }
    let zero: libc::c_ulong = 0;
    #[allow(unsafe_code, reason = "asks the system to forbid executable memory")]
    // SAFETY: changes only what this process may do, and only in this child.
    let result = unsafe { libc::prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, zero, zero, zero) };
    if result != 0 {
        // Linux before 6.3 cannot forbid it.
        return;
    }
    let executable = Executable::compile(pieces());
    assert!(matches!(executable.obstacle(), Some(Obstacle::Memory(_))), "{:?}", executable.obstacle());
    let case = random_cases(1, 0).remove(0);
    assert_eq!(outcome(&executable, &case), outcome(&Executable::interpreted(pieces()), &case));
}
