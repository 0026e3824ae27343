//! Evaluations as they stand in comments: `[%eval 0.35]`, `[%eval #-3]`, and an engine's own, `+0.31/14 0.25s`.

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

/// What the engine that moved found in its search, as cutechess and fastchess write it behind the move: pawns, a slash, the
/// depth and more (`+0.31/14 0.25s`), or plies to mate (`+M5/20`, `-M12/20`). The mover's view of the position it moved in;
/// none of book moves and of other comments.
pub(super) fn of_search(comment: &[u8]) -> Option<Eval> {
    let text = comment.trim_ascii_start();
    let (sign, rest) = match text {
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        rest => (1, rest),
    };
    let (mate, rest) = match rest {
        [b'M', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let (whole, rest) = number(rest)?;
    let (eval, rest) = match rest {
        _ if mate => (Eval::Mate(sign * whole.div_ceil(2) as i32), rest),
        [b'.', a @ b'0'..=b'9', b @ b'0'..=b'9', rest @ ..] => {
            let hundredths = 100 * whole + 10 * u32::from(a - b'0') + u32::from(b - b'0');
            (Eval::Score(Centipawn(sign * hundredths as i32)), rest)
        }
        _ => return None,
    };
    let (_, rest) = number(rest.strip_prefix(b"/")?)?;
    let ends = rest.first().is_none_or(|byte| matches!(byte, b' ' | b',' | b'/' | b'\n' | b'\r' | b'\t'));
    (ends && eval != Eval::Mate(0)).then_some(eval)
}

/// A number of at most five digits, and what follows it.
fn number(text: &[u8]) -> Option<(u32, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let value = text[..digits].iter().fold(0, |value: u32, digit| value.wrapping_mul(10) + u32::from(digit - b'0'));
    (1..=5).contains(&digits).then_some((value, &text[digits..]))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_engines_say_of_their_searches() {
        let check = |comment: &str, expected| assert_eq!(of_search(comment.as_bytes()), expected, "{comment}");
        let score = |centipawns| Some(Eval::Score(Centipawn(centipawns)));
        check("+0.31/14 0.25s", score(31));
        check("-12.05/31 1.250s, n=12345", score(-1205));
        check("0.00/1 0s", score(0));
        check(" +0.31/14/20 0.25s", score(31));
        check("+152.00/9", score(15_200));
        // Plies: the third move mates; mated at the opponent's sixth.
        check("+M5/18 0.1s", Some(Eval::Mate(3)));
        check("-M12/20 0.1s, Black mates", Some(Eval::Mate(-6)));
        check("+M1/2 0s", Some(Eval::Mate(1)));
        for other in
            ["book", "", "+", "+0.31", "+0.3/14", "+0.31/", "+0.31/x", "+0.31/14s", "M0/3", "1/2-1/2", "+1234567.00/3"]
        {
            check(other, None);
        }
        check("[%clk 0:01:00]", None);
    }
}
