use super::*;
use crate::chess::castlings::every_castling;
use crate::chess::{random_game_from, start_of_each_kind};
use crate::units::Seed;

#[test]
fn random_games_round_trip() {
    for game in 0..100u32 {
        let mut rng = Seed(3).stream("record", u64::from(game));
        let start = start_of_each_kind(u64::from(game), &mut rng);
        for (ply, (position, mv)) in (0..).zip(random_game_from(start, &mut rng, 150)) {
            let sample = Sample {
                position,
                game,
                ply: Ply(ply),
                mv: Some(mv),
                score: Some(-123),
                result: Some(GameResult::Win),
            };
            let record = Record::pack(&sample).expect("fits");
            assert_eq!(record.check(), Ok(()));
            assert_eq!(record.unpack().as_ref(), Ok(&sample));
            assert!(game % 3 > 0 || !record.has_chess960_rights());
        }
    }
}

#[test]
fn rights_of_chess960_are_held() {
    for (position, mv) in every_castling() {
        let king = mv.from().expect("a king");
        let is_standard = king.file() == File::E && matches!(mv.to().file(), File::A | File::H);
        let sample = Sample { position, game: 0, ply: Ply(4), mv: Some(mv), score: None, result: None };
        let record = Record::pack(&sample).expect("fits");
        assert_eq!((record.check(), record.has_chess960_rights()), (Ok(()), !is_standard), "{mv:?}");
        assert_eq!(record.unpack().as_ref(), Ok(&sample));
        assert_eq!(record.castling().count_ones(), 1);
    }
    // Positions that differ in their rights alone have different keys.
    let record = |fen: &str| {
        let position = crate::chess::parse_fen(fen).expect("legal");
        Record::of(&position, 0, Ply(0), None, None, None).expect("fits")
    };
    let inner = record("4k3/8/8/8/8/8/8/4KRR1 w F - 0 1");
    let outer = record("4k3/8/8/8/8/8/8/4KRR1 w G - 0 1");
    assert!(inner.key(false) != outer.key(false) && inner.search_key() != outer.search_key());
    assert_eq!(inner.without_castling(), record("4k3/8/8/8/8/8/8/4KRR1 w - - 0 1"));
}

#[test]
fn nonsense_is_refused() {
    let position = Chess::default();
    let sample = Sample { position, game: 0, ply: Ply(0), mv: None, score: None, result: None };
    let good = Record::pack(&sample).expect("fits");
    assert_eq!(good.unpack(), Ok(sample));
    let check = |mutate: fn(&mut Record), expected: &str| {
        let mut record = good;
        mutate(&mut record);
        assert_eq!(record.unpack().expect_err("broken").to_string(), expected);
    };
    check(|r| r.ep_file = 9, "byte 37 of the record is 9, which is not a valid value");
    check(|r| r.mv = (12u16 | 44 << 6).to_le_bytes(), "the move e2e6 is illegal in the position");
    check(|r| r.mv = (12u16 | 28 << 6 | 1 << 12).to_le_bytes(), "the move e2e4n is illegal in the position");
    check(|r| r.mv = (52u16 | 36 << 6).to_le_bytes(), "the move e7e5 is illegal in the position");
    check(|r| r.board = PackedBoard::zeroed(), "illegal position: empty board, missing king, invalid castling rights");
}

#[test]
fn every_byte_counts() {
    let sample = Sample { position: Chess::default(), game: 0, ply: Ply(0), mv: None, score: None, result: None };
    let good = Record::pack(&sample).expect("fits");
    let check = |mutate: fn(&mut Record), expected: &str| {
        let mut record = good;
        mutate(&mut record);
        assert_eq!(record.check().expect_err("improper").to_string(), expected);
    };
    // Rights of standard chess in the bytes of Chess960's; a right in one place alone; a rook that is none.
    check(|r| r.chess960_rights = [0x8f, 0x8f], "byte 38 of the record is 143, which is not a valid value");
    check(|r| r.chess960_rights = [0, 7], "byte 39 of the record is 7, which is not a valid value");
    check(|r| r.chess960_rights = [0x0f, 0], "byte 38 of the record is 15, which is not a valid value");
    check(|r| r.chess960_rights = [0x8e, 0x8f], "illegal position: invalid castling rights");
    check(|r| r.flags |= 0x80, "byte 36 of the record is 158, which is not a valid value");
    check(|r| r.result = 9, "byte 34 of the record is 9, which is not a valid value");
    check(|r| r.ep_file = 3, "illegal position: invalid ep square");
}
