use super::*;
use crate::chess::random_game;
use crate::units::Seed;

#[test]
fn random_games_round_trip() {
    for game in 0..100u32 {
        let mut rng = Seed(3).stream("record", u64::from(game));
        for (ply, (position, mv)) in (0..).zip(random_game(&mut rng, 150)) {
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
        }
    }
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
    check(|r| r.zero = [0, 7], "byte 39 of the record is 7, which is not a valid value");
    check(|r| r.flags |= 0x80, "byte 36 of the record is 158, which is not a valid value");
    check(|r| r.result = 9, "byte 34 of the record is 9, which is not a valid value");
    check(|r| r.ep_file = 3, "illegal position: invalid ep square");
}
