use super::super::bmi2::Portable;
use super::*;
use crate::chess::castlings::every_castling;
use crate::chess::{Bitboard, random_game_from, start_of_each_kind};
use crate::data::record::{Record, Sample};
use crate::units::Seed;

fn record(position: &Chess, ply: u16) -> Record {
    let sample = Sample { position: position.clone(), game: 0, ply: Ply(ply), mv: None, score: None, result: None };
    Record::pack(&sample).expect("fits")
}

/// In random games the records agree, and of all pseudo-legal moves exactly the legal ones can be played.
#[test]
fn plays_as_shakmaty_does() {
    for game in 0..300 {
        let mut rng = Seed(8).stream("walk", game);
        let start = start_of_each_kind(game, &mut rng);
        let mut position = Position::new(&start, Ply(0)).expect("fits");
        for (ply, (expected, mv)) in (0..).zip(random_game_from(start, &mut rng, 200)) {
            check(&position, &expected, ply);
            assert!(position.play(PackedMove::of(mv)));
        }
    }
}

#[test]
fn castles_as_shakmaty_does() {
    for (mut expected, mv) in every_castling() {
        let mut position = Position::new(&expected, Ply(6)).expect("fits");
        check(&position, &expected, 6);
        assert!(position.play(PackedMove::of(mv)), "{mv:?}");
        expected.play_unchecked(mv);
        check(&position, &expected, 7);
    }
}

fn check(position: &Position, expected: &Chess, ply: u16) {
    assert_eq!(Record::from_fields(position.fields(Portable), 0, None, None, None), record(expected, ply));
    let mut playable: Vec<PackedMove> =
        every_move(position).into_iter().filter(|mv| position.clone().play(*mv)).collect();
    let mut packed: Vec<PackedMove> = expected.legal_moves().iter().map(|mv| PackedMove::of(*mv)).collect();
    assert!(packed.iter().all(|mv| position.allows(*mv)));
    playable.sort_by_key(ToString::to_string);
    packed.sort_by_key(ToString::to_string);
    assert_eq!(playable, packed, "{expected:?}");
}

fn every_move(position: &Position) -> Vec<PackedMove> {
    let mut all = Vec::new();
    for from in Bitboard(position.own()) {
        let moves = position.moves(from as u32);
        for to in Bitboard(moves.targets) {
            if moves.promotes {
                let roles = [Role::Knight, Role::Bishop, Role::Rook, Role::Queen];
                all.extend(roles.map(|role| PackedMove::new(from, to, Some(role))));
            } else {
                all.push(PackedMove::new(from, to, None));
            }
        }
        for (right, king_side) in moves.castles.into_iter().zip([false, true]) {
            if right {
                let rook = square(position.castling_rook(from as u32, king_side));
                all.push(PackedMove::new(from, rook, None));
            }
        }
    }
    all
}
