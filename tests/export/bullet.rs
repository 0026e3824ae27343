//! bullet's input type: compiled against a trait of the same shape, it gives fsbench's indices for bulletformat's
//! positions.

use std::io::Write;
use std::process::{Command, Stdio};

use bulletformat::ChessBoard;
use fsbench::chess::{Chess, Color, Perspective, Role};
use fsbench::export::{Export, Language};
use fsbench::features::FeatureSet;
use fsbench::units::Seed;
use rand::RngExt;
use shakmaty::Position;

use super::has_all;

/// The parts of bullet and bulletformat that `bullet.rs` uses, as the crate `bullet_lib`.
const BULLET: &str = r#"
pub mod game {
    pub mod formats {
        pub mod bulletformat {
            /// The first 24 of 32 bytes as in bulletformat.
            #[derive(Clone, Copy)]
            pub struct ChessBoard {
                pub occ: u64,
                pub pcs: [u8; 16],
            }

            impl IntoIterator for ChessBoard {
                type Item = (u8, u8);
                type IntoIter = std::vec::IntoIter<(u8, u8)>;

                fn into_iter(self) -> Self::IntoIter {
                    let squares = (0..64u8).filter(|square| self.occ >> square & 1 != 0).enumerate();
                    let pieces = squares.map(|(at, square)| (self.pcs[at / 2] >> (4 * (at & 1)) & 15, square));
                    pieces.collect::<Vec<_>>().into_iter()
                }
            }
        }
    }

    pub mod inputs {
        pub trait SparseInputType: Clone + Send + Sync + 'static {
            type RequiredDataType: Copy + Send + Sync;
            fn num_inputs(&self) -> usize;
            fn max_active(&self) -> usize;
            fn map_features<F: FnMut(usize, usize)>(&self, pos: &Self::RequiredDataType, f: F);
            fn shorthand(&self) -> String;
            fn description(&self) -> String;
        }
    }
}
"#;

/// Reads positions, prints the features.
const MAIN: &str = r#"
mod bullet;
mod feature_set;

use bullet_lib::game::{formats::bulletformat::ChessBoard, inputs::SparseInputType};
use std::io::Read;

fn main() {
    let mut input = Vec::new();
    std::io::stdin().read_to_end(&mut input).unwrap();
    let features = bullet::Features;
    assert!(!features.shorthand().is_empty() && !features.description().is_empty());
    for record in input.chunks_exact(32) {
        let occ = u64::from_le_bytes(record[..8].try_into().unwrap());
        let pos = ChessBoard { occ, pcs: record[8..24].try_into().unwrap() };
        let mut line = format!("{} {}", features.num_inputs(), features.max_active());
        features.map_features(&pos, |stm, nstm| line += &format!(" {stm} {nstm}"));
        println!("{line}");
    }
}
"#;

/// Positions of random play.
fn positions() -> Vec<Chess> {
    let mut rng = Seed(37).stream("bullet", 0);
    let mut positions = Vec::new();
    while positions.len() < 500 {
        let mut position = Chess::default();
        for _ in 0..100 {
            let moves = position.legal_moves();
            if moves.is_empty() {
                break;
            }
            position.play_unchecked(moves[rng.random_range(0..moves.len())]);
            positions.push(position.clone());
        }
    }
    positions
}

fn bullet_board(position: &Chess) -> ChessBoard {
    let board = position.board();
    let colors = [Color::White, Color::Black].map(|color| u64::from(board.by_color(color)));
    let mut boards = [0; 8];
    boards[..2].copy_from_slice(&colors);
    for role in Role::ALL {
        boards[1 + role as usize] = u64::from(board.by_role(role));
    }
    ChessBoard::from_raw(boards, usize::from(position.turn().is_black()), 0, 0.5).unwrap()
}

#[test]
fn bullets_inputs_are_the_encoders() {
    if !has_all(&["rustc"]) {
        return;
    }
    let positions = positions();
    for name in ["chess768", "half-ka-v2-hm", "threats-v16", "compact"] {
        let set = FeatureSet::resolve(name).unwrap();
        let folder = tempfile::tempdir().unwrap();
        for file in Export::new(&set, Language::Rust).with_bullet(true).files().unwrap() {
            std::fs::write(folder.path().join(file.name), file.content).unwrap();
        }
        std::fs::write(folder.path().join("main.rs"), MAIN).unwrap();
        std::fs::write(folder.path().join("bullet_lib.rs"), BULLET).unwrap();
        let rustc = |arguments: &[&str]| {
            let mut command = Command::new("rustc");
            let output = command.args(["--edition", "2021", "-O", "-D", "warnings"]).args(arguments);
            let output = output.current_dir(folder.path()).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        rustc(&["--crate-type", "lib", "bullet_lib.rs"]);
        rustc(&["--extern", "bullet_lib=libbullet_lib.rlib", "main.rs"]);
        let mut child =
            Command::new(folder.path().join("main")).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let boards: Vec<ChessBoard> = positions.iter().map(bullet_board).collect();
        let bytes: Vec<u8> =
            boards.iter().flat_map(|board| [&board.occ.to_le_bytes()[..], &board.pcs, &[0; 8]].concat()).collect();
        let mut stdin = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || stdin.write_all(&bytes));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.lines().count(), positions.len(), "{name}");
        for (position, line) in positions.iter().zip(text.lines()) {
            let numbers: Vec<u32> = line.split(' ').map(|number| number.parse().unwrap()).collect();
            assert_eq!(&numbers[..2], [set.num_features(), set.max_active() as u32]);
            let stm = Perspective::of(position.turn());
            for (at, pov) in [stm, stm.other()].into_iter().enumerate() {
                let mut found: Vec<u32> = numbers[2..].iter().skip(at).step_by(2).copied().collect();
                found.sort_unstable();
                assert_eq!(found, set.reference(position.board(), pov), "{name} {position:?} {pov:?}");
            }
        }
    }
}
