//! Evaluations in comments: `[%eval 0.35]`, `[%eval #-3]`, and those that engine matches record, `+0.31/14 0.25s`.

use crate::units::Centipawn;

/// An evaluation, from one side's point of view.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Eval {
    Score(Centipawn),
    /// Moves to mate; negative when getting mated.
    Mate(i32),
}

impl Eval {
    /// The largest score that is not a mate; larger ones are clamped to it.
    pub const LARGEST: i32 = 30_000;
    /// The score of a mate in n moves is ±(`MATE` − 2·n), n at most 999.
    pub const MATE: i32 = 32_000;

    /// The same evaluation from the other side's point of view.
    #[must_use]
    pub const fn reversed(self) -> Eval {
        match self {
            Eval::Score(Centipawn(score)) => Eval::Score(Centipawn(score.saturating_neg())),
            Eval::Mate(moves) => Eval::Mate(moves.saturating_neg()),
        }
    }

    /// A score that fits a record; mates lie beyond all other scores.
    #[must_use]
    pub fn centipawns(self) -> i16 {
        match self {
            Eval::Score(Centipawn(score)) => score.clamp(-Self::LARGEST, Self::LARGEST) as i16,
            Eval::Mate(moves) => (moves.signum() * (Self::MATE - 2 * moves.saturating_abs().min(999))) as i16,
        }
    }

    /// As a word of a journal: centipawns, or `#` and moves to mate.
    #[must_use]
    pub(crate) fn to_word(self) -> String {
        match self {
            Eval::Score(Centipawn(score)) => score.to_string(),
            Eval::Mate(moves) => format!("#{moves}"),
        }
    }

    /// Parses a word of a journal.
    #[must_use]
    pub(crate) fn from_word(word: &str) -> Option<Eval> {
        match word.strip_prefix('#') {
            Some(moves) => moves.parse().ok().map(Eval::Mate),
            None => word.parse().ok().map(|score| Eval::Score(Centipawn(score))),
        }
    }

    /// Parses the text in `[%eval …]`: pawns, or `#` and moves to mate; a depth may follow after a comma.
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

/// Parses pawns in the usual notation up to the bracket (at most four digits, a point, one or two digits) without a
/// float.
fn parse_hundredths(text: &[u8]) -> Option<i32> {
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

/// Parses the evaluation that cutechess and fastchess write after a move: pawns, a slash and the depth (`+0.31/14
/// 0.25s`), or plies to mate (`+M5/20`, `-M12/20`). It is from the mover's point of view, in the position before the
/// move. None for book moves and other comments.
pub(super) fn parse_search_eval(comment: &[u8]) -> Option<Eval> {
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

/// A number of at most five digits, and the text after it.
fn number(text: &[u8]) -> Option<(u32, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let value =
        text[..digits].iter().fold(0, |value: u32, digit| value.wrapping_mul(10).wrapping_add(u32::from(digit - b'0')));
    (1..=5).contains(&digits).then_some((value, &text[digits..]))
}

/// The `[%eval …]` of a comment: `None` without one, an error where it is malformed.
pub(super) fn parse_comment_eval(comment: &[u8]) -> Option<Result<Eval, ()>> {
    const MARK: &[u8] = b"[%eval ";
    let rest = match comment {
        [b' ', rest @ ..] | rest => rest,
    };
    let rest = match rest.strip_prefix(MARK) {
        Some(rest) => rest,
        None => &comment[memchr::memmem::find(comment, MARK)? + MARK.len()..],
    };
    if let Some(score) = parse_hundredths(rest) {
        return Some(Ok(Eval::Score(Centipawn(score))));
    }
    let text = &rest[..memchr::memchr(b']', rest).unwrap_or(rest.len())];
    Some(Eval::parse(text).ok_or(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_evals() {
        let check = |comment: &str, expected| assert_eq!(parse_search_eval(comment.as_bytes()), expected, "{comment}");
        let score = |centipawns| Some(Eval::Score(Centipawn(centipawns)));
        check("+0.31/14 0.25s", score(31));
        check("-12.05/31 1.250s, n=12345", score(-1205));
        check("0.00/1 0s", score(0));
        check(" +0.31/14/20 0.25s", score(31));
        check("+152.00/9", score(15_200));
        // Plies: mate with the third own move, mated by the opponent's sixth.
        check("+M5/18 0.1s", Some(Eval::Mate(3)));
        check("-M12/20 0.1s, Black mates", Some(Eval::Mate(-6)));
        check("+M1/2 0s", Some(Eval::Mate(1)));
        // More than a u32 holds.
        check("+4294967299/2 0s", None);
        for other in
            ["book", "", "+", "+0.31", "+0.3/14", "+0.31/", "+0.31/x", "+0.31/14s", "M0/3", "1/2-1/2", "+1234567.00/3"]
        {
            check(other, None);
        }
        check("[%clk 0:01:00]", None);
    }
}
