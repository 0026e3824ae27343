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
    pub(super) fn parse(text: &[u8]) -> Option<Eval> {
        if let Some(score) = hundredths(text) {
            return Some(Eval::Score(Centipawn(score)));
        }
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

/// The usual way to write pawns, without a float in between: at most four digits, a point and at most two more.
fn hundredths(text: &[u8]) -> Option<i32> {
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (-1, digits),
        digits => (1, digits),
    };
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| i32::from(byte - b'0'));
    let (whole, fraction) = match digits {
        [whole @ .., b'.', a] => (whole, digit(a)? * 10),
        [whole @ .., b'.', a, b] => (whole, digit(a)? * 10 + digit(b)?),
        _ => return None,
    };
    let whole = match whole {
        [] => return None,
        whole if whole.len() > 4 => return None,
        whole => whole.iter().try_fold(0, |sum, byte| Some(sum * 10 + digit(byte)?))?,
    };
    Some(sign * (whole * 100 + fraction))
}

/// What stands behind `[%eval` in a comment.
pub(super) fn eval_text(comment: &[u8]) -> Option<&[u8]> {
    const MARK: &[u8] = b"[%eval ";
    let rest = match comment.trim_ascii_start().strip_prefix(MARK) {
        Some(rest) => rest,
        None => &comment[memchr::memmem::find(comment, MARK)? + MARK.len()..],
    };
    Some(&rest[..rest.iter().position(|byte| *byte == b']').unwrap_or(rest.len())])
}
