//! Evaluations as they stand in comments: `[%eval 0.35]`, `[%eval #-3]`.

use crate::units::Centipawn;

/// An evaluation, from one side's view.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Eval {
    Score(Centipawn),
    /// Mate in so many moves; negative: getting mated.
    Mate(i32),
}

impl Eval {
    /// The largest score that is not a mate; larger ones are cut to it.
    pub const LARGEST: i32 = 30_000;
    /// Mate in n moves is ±(`MATE` − 2·n), n at most 999.
    pub const MATE: i32 = 32_000;

    /// From the other side.
    #[must_use]
    pub const fn reversed(self) -> Eval {
        match self {
            Eval::Score(Centipawn(score)) => Eval::Score(Centipawn(-score)),
            Eval::Mate(moves) => Eval::Mate(-moves),
        }
    }

    /// As one number that orders mates beyond all scores and fits a record.
    #[must_use]
    pub fn centipawns(self) -> i16 {
        match self {
            Eval::Score(Centipawn(score)) => score.clamp(-Self::LARGEST, Self::LARGEST) as i16,
            Eval::Mate(moves) => (moves.signum() * (Self::MATE - 2 * moves.saturating_abs().min(999))) as i16,
        }
    }

    /// What stands in `[%eval …]`: pawns, or `#` and moves to mate; a depth may follow after a comma.
    fn parse(text: &[u8]) -> Option<Eval> {
        let text = std::str::from_utf8(text).ok()?;
        let value = text.split(',').next()?.trim();
        if let Some(moves) = value.strip_prefix('#') {
            return moves.parse().ok().filter(|moves| *moves != 0).map(Eval::Mate);
        }
        let pawns: f64 = value.parse().ok()?;
        let score = (pawns * 100.0).round();
        (score.abs() < 1e9).then_some(Eval::Score(Centipawn(score as i32)))
    }
}

/// The usual way to write pawns, without a float in between, up to the bracket: at most four digits, a point and one or
/// two more.
fn hundredths(text: &[u8]) -> Option<i32> {
    let (sign, mut rest) = match text {
        [b'-', rest @ ..] => (-1, rest),
        rest => (1, rest),
    };
    let (mut whole, mut digits) = (0, 0);
    while let [digit @ b'0'..=b'9', tail @ ..] = rest {
        whole = whole * 10 + i32::from(digit - b'0');
        digits += 1;
        rest = tail;
        if digits > 4 {
            return None;
        }
    }
    let fraction = match rest {
        [b'.', a @ b'0'..=b'9', b']', ..] => 10 * i32::from(a - b'0'),
        [b'.', a @ b'0'..=b'9', b @ b'0'..=b'9', b']', ..] => 10 * i32::from(a - b'0') + i32::from(b - b'0'),
        _ => return None,
    };
    (digits > 0).then_some(sign * (whole * 100 + fraction))
}

/// The evaluation in a comment: none where there is none, an error where it is malformed.
pub(super) fn in_comment(comment: &[u8]) -> Option<Result<Eval, ()>> {
    const MARK: &[u8] = b"[%eval ";
    let rest = match comment {
        [b' ', rest @ ..] | rest => rest,
    };
    let rest = match rest.strip_prefix(MARK) {
        Some(rest) => rest,
        None => &comment[memchr::memmem::find(comment, MARK)? + MARK.len()..],
    };
    if let Some(score) = hundredths(rest) {
        return Some(Ok(Eval::Score(Centipawn(score))));
    }
    let text = &rest[..memchr::memchr(b']', rest).unwrap_or(rest.len())];
    Some(Eval::parse(text).ok_or(()))
}
