//! Finds the score in a comment, whatever program wrote it:
//!
//! | program | form | position | view |
//! |---|---|---|---|
//! | Lichess, ChessBase | `[%eval 0.93,17]`, `[%eval 93,17]`, `[%eval #-3]` | after the move | White's |
//! | `PyChess` | `[%eval 0.16/16]` | after the move | the mover's |
//! | cutechess, fastchess, c-chess-cli, `WinBoard` | `+0.31/14 0.25s`, `-M12/20` | before | the mover's |
//! | Banksia | `+0.3/21 2424` | before | the mover's |
//! | Arena, CCRL | `(h6) +0.59/28 20s` | before | the mover's |
//! | TCEC | `d=30, …, wv=1.08, …` | after the move | White's |

/// A score as it is written.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum WrittenScore {
    Number(DecimalNumber),
    /// Moves to mate, negative when getting mated.
    Mate(i32),
}

/// A number as it is written: `-12.05`, `25`, `0,31`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct DecimalNumber {
    pub negative: bool,
    pub whole: u32,
    pub fraction: Fraction,
}

/// The digits after the whole part of a number; hundredths from 0 to 100.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Fraction {
    None,
    Point(u32),
    /// Digits after a comma, which certainly belong to the number.
    DecimalComma(u32),
    /// Digits after a comma: decimals or a depth.
    CommaOrDepth(u32),
}

/// The score of a position as a comment gives it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum CommentScore {
    /// Nothing, or that the game is over.
    None,
    /// In `[%eval …]`: of the position after the move, White's view unless the user says otherwise.
    Eval(WrittenScore),
    /// Of the position after the move, the mover's view.
    AfterByMover(WrittenScore),
    /// Of the position after the move, White's view.
    AfterByWhite(WrittenScore),
    /// Of the position before the move, the mover's view.
    Search(WrittenScore),
    /// The zero that a program writes beside a book move.
    Book,
    /// It looks like a score in a form that is not known.
    Unread,
}

/// The score in a comment.
#[inline]
pub fn comment_score(comment: &[u8]) -> CommentScore {
    if let Some(body) = eval_body(comment) {
        return match eval_score(body) {
            Some(CommentScore::Eval(WrittenScore::Mate(0)) | CommentScore::AfterByMover(WrittenScore::Mate(0))) => {
                CommentScore::None
            }
            Some(score) => score,
            None => CommentScore::Unread,
        };
    }
    let text = without_commands(comment);
    match text {
        // Most comments without a score hold a clock only.
        [] => CommentScore::None,
        _ => search_score(text)
            .or_else(|| tcec_score(text))
            .unwrap_or_else(|| if looks_like_score(text) { CommentScore::Unread } else { CommentScore::None }),
    }
}

/// The text between `[%eval` and `]`.
#[inline]
fn eval_body(comment: &[u8]) -> Option<&[u8]> {
    const MARK: &[u8] = b"[%eval";
    let comment_start = match comment {
        [b' ', rest @ ..] | rest => rest,
    };
    let mut rest = match comment_start.strip_prefix(MARK) {
        Some(rest) => rest,
        None => &comment[memchr::memmem::find(comment, MARK)? + MARK.len()..],
    };
    // Not another command, such as `[%evp …]`.
    while rest.first().is_some_and(|byte| !byte.is_ascii_whitespace() && *byte != b']') {
        rest = &rest[memchr::memmem::find(rest, MARK)? + MARK.len()..];
    }
    Some(&rest[..memchr::memchr(b']', rest).unwrap_or(rest.len())])
}

#[inline]
fn eval_score(body: &[u8]) -> Option<CommentScore> {
    let body = body.trim_ascii();
    let (mut score, rest) = written_score(body, MateUnit::Moves)?;
    match rest {
        [] => {}
        // A depth follows: then a comma before it belongs to the number.
        [b'/', depth @ ..] if is_number(depth) => {
            score.confirm_comma();
            return Some(CommentScore::AfterByMover(score));
        }
        [b',', ..] => score.confirm_comma(),
        _ => return None,
    }
    Some(CommentScore::Eval(score))
}

/// The comment without blanks and `[%…]` at its beginning.
fn without_commands(comment: &[u8]) -> &[u8] {
    let mut text = comment.trim_ascii();
    while text.starts_with(b"[%") {
        let Some(end) = memchr::memchr(b']', text) else { return &[] };
        text = text[end + 1..].trim_ascii_start();
    }
    text
}

/// `+0.31/14 0.25s`, `-M12/20`, `(h6) +0.59/28 20s`, `+0.3/21 2424 1511177`.
fn search_score(text: &[u8]) -> Option<CommentScore> {
    let text = match text {
        // The move that the engine expected.
        [b'(', ..] => text[memchr::memchr(b')', text)? + 1..].trim_ascii_start(),
        _ => text,
    };
    let has_sign = matches!(text, [b'+' | b'-', ..]);
    let (mut score, rest) = written_score(text, MateUnit::Plies)?;
    let depth = rest.strip_prefix(b"/")?;
    let digits = count_digits(depth);
    let (depth, rest) = depth.split_at(digits);
    let ends = rest.first().is_none_or(|byte| byte.is_ascii_whitespace() || b",/;:".contains(byte));
    if !(1..=5).contains(&digits) || !ends {
        return None;
    }
    score.confirm_comma();
    match score {
        // Without a sign it may be anything: `1/2`.
        WrittenScore::Number(DecimalNumber { fraction: Fraction::None, .. }) if !has_sign => None,
        WrittenScore::Mate(0) => Some(CommentScore::None),
        _ if score.is_zero() && is_book(depth, rest) => Some(CommentScore::Book),
        _ => Some(CommentScore::Search(score)),
    }
}

/// Whether a zero at this depth was not searched: depth 0, or depth 1 in no time.
fn is_book(depth: &[u8], after: &[u8]) -> bool {
    let begin = after.iter().position(u8::is_ascii_alphanumeric).unwrap_or(after.len());
    let time = after[begin..].split(|byte| byte.is_ascii_whitespace() || *byte == b',').next().unwrap_or_default();
    depth.iter().all(|byte| *byte == b'0') || depth == b"1" && is_no_time(time)
}

/// `0`, `0s`, `0.00s`, `00:00:00`.
fn is_no_time(time: &[u8]) -> bool {
    time.first() == Some(&b'0') && time.iter().all(|byte| b"0.:s".contains(byte))
}

/// `d=30, sd=30, mt=…, wv=1.08, …`.
fn tcec_score(text: &[u8]) -> Option<CommentScore> {
    let (score, rest) = written_score(field(text, b"wv=")?, MateUnit::Plies)?;
    if rest.first().is_some_and(|byte| !byte.is_ascii_whitespace() && !b",;".contains(byte)) {
        return None;
    }
    let value = |key: &[u8]| field(text, key).and_then(|rest| rest.split(|byte| *byte == b',').next());
    let depth = value(b"d=").unwrap_or(b"?");
    let is_book = depth == b"0" || depth == b"1" && value(b"mt=").is_some_and(is_no_time);
    Some(match score {
        WrittenScore::Mate(0) => CommentScore::None,
        _ if score.is_zero() && is_book => CommentScore::Book,
        _ => CommentScore::AfterByWhite(score),
    })
}

/// The text after `key` where it begins a word.
fn field<'a>(text: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    memchr::memmem::find_iter(text, key)
        .find(|at| *at == 0 || !text[at - 1].is_ascii_alphanumeric())
        .map(|at| &text[at + key.len()..])
}

/// Whether a person would take the beginning of a comment for a score: a signed number, a mate, decimals and a depth,
/// or a field of an engine's output.
fn looks_like_score(text: &[u8]) -> bool {
    let text = match text {
        [b'(' | b'[', rest @ ..] => rest.trim_ascii_start(),
        _ => text,
    };
    let named = [&b"d="[..], b"ev=", b"wv=", b"eval=", b"score="];
    if named.iter().any(|key| field(text, key).is_some_and(|value| written_score(value, MateUnit::Plies).is_some())) {
        return true;
    }
    let word = text.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    let labels = [&b"eval:"[..], b"eval", b"evaluation:", b"score:", b"score", b"cp"];
    let label = labels.iter().any(|label| word.eq_ignore_ascii_case(label));
    let text = if label { text[word.len()..].trim_ascii_start() } else { text };
    let has_sign = matches!(text, [b'+' | b'-', ..]);
    let Some((score, rest)) = written_score(text, MateUnit::Plies) else { return false };
    let has_depth = matches!(rest, [b'/', b'0'..=b'9', ..]);
    match score {
        WrittenScore::Mate(_) => rest.first().is_none_or(|byte| !byte.is_ascii_alphanumeric()),
        // `1-0`, `+1 for White`, move numbers and times are no scores; `18:+0.31` is one with its depth.
        WrittenScore::Number(DecimalNumber { fraction: Fraction::None, .. }) => {
            label || has_sign && has_depth || matches!(rest, [b':', b'+' | b'-', b'0'..=b'9', ..])
        }
        WrittenScore::Number(_) => label || has_sign || has_depth || rest.is_empty() && !text.ends_with(b"."),
    }
}

/// The unit of the number after `M`; after `#` it is always moves.
#[derive(Copy, Clone, PartialEq, Eq)]
enum MateUnit {
    Moves,
    Plies,
}

/// The score at the beginning of a text, and the text after it.
#[inline]
fn written_score(text: &[u8], unit: MateUnit) -> Option<(WrittenScore, &[u8])> {
    let (sign, text) = match text {
        [sign @ (b'+' | b'-'), rest @ ..] => (Some(*sign), rest),
        rest => (None, rest),
    };
    match text {
        [mark @ (b'#' | b'M'), rest @ ..] => {
            let (inner, rest) = match rest {
                [b'+', rest @ ..] => (1, rest),
                [b'-', rest @ ..] => (-1, rest),
                rest => (1, rest),
            };
            let (count, rest) = whole_number(rest)?;
            let moves = if *mark == b'M' && unit == MateUnit::Plies { count.div_ceil(2) } else { count };
            let outer = if sign == Some(b'-') { -1 } else { 1 };
            Some((WrittenScore::Mate(outer * inner * moves as i32), rest))
        }
        _ => number(sign, text),
    }
}

#[inline]
fn number(sign: Option<u8>, text: &[u8]) -> Option<(WrittenScore, &[u8])> {
    let (whole, rest) = match whole_number(text) {
        Some(found) => found,
        None if text.starts_with(b".") && text.get(1).is_some_and(u8::is_ascii_digit) => (0, text),
        None => return None,
    };
    let (fraction, rest) = match rest {
        [b'.', rest @ ..] => {
            let (digits, rest) = rest.split_at(count_digits(rest));
            (Fraction::Point(hundredths(digits)), rest)
        }
        [b',', after @ ..] => {
            let (digits, after) = after.split_at(count_digits(after));
            match digits {
                // No program writes -0 or +0 for a whole number, nor a depth that begins with 0.
                [_, _] if digits[0] == b'0' || whole == 0 && sign.is_some() => {
                    (Fraction::DecimalComma(hundredths(digits)), after)
                }
                [_] if whole == 0 && sign.is_some() => (Fraction::DecimalComma(hundredths(digits)), after),
                [_] | [_, _] => (Fraction::CommaOrDepth(hundredths(digits)), after),
                _ => (Fraction::None, rest),
            }
        }
        _ => (Fraction::None, rest),
    };
    Some((WrittenScore::Number(DecimalNumber { negative: sign == Some(b'-'), whole, fraction }), rest))
}

impl WrittenScore {
    /// Something follows that shows that a comma belongs to the number.
    fn confirm_comma(&mut self) {
        if let WrittenScore::Number(DecimalNumber { fraction, .. }) = self
            && let Fraction::CommaOrDepth(hundredths) = *fraction
        {
            *fraction = Fraction::DecimalComma(hundredths);
        }
    }

    fn is_zero(self) -> bool {
        let WrittenScore::Number(DecimalNumber { whole, fraction, .. }) = self else { return false };
        let no_fraction = match fraction {
            Fraction::None => true,
            Fraction::Point(part) | Fraction::DecimalComma(part) | Fraction::CommaOrDepth(part) => part == 0,
        };
        whole == 0 && no_fraction
    }
}

/// A number of at most six digits, and the text after it.
#[inline]
fn whole_number(text: &[u8]) -> Option<(u32, &[u8])> {
    let digits = count_digits(text);
    let value = text.iter().take(digits.min(6)).fold(0, |value: u32, digit| value * 10 + u32::from(digit - b'0'));
    (1..=6).contains(&digits).then_some((value, &text[digits..]))
}

/// The hundredths that digits after the point stand for, rounded half up.
#[inline]
fn hundredths(digits: &[u8]) -> u32 {
    let digit = |at: usize| digits.get(at).map_or(0, |digit| u32::from(digit - b'0'));
    10 * digit(0) + digit(1) + u32::from(digit(2) >= 5)
}

#[inline]
fn count_digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

fn is_number(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> WrittenScore {
        let (score, rest) = written_score(text.as_bytes(), MateUnit::Moves).expect(text);
        assert!(rest.is_empty(), "{text}");
        score
    }

    fn check(comment: &str, expected: CommentScore) {
        assert_eq!(comment_score(comment.as_bytes()), expected, "{comment}");
    }

    #[test]
    fn every_program_that_writes_scores() {
        let eval = |text: &str| CommentScore::Eval(number(text));
        // Lichess.
        check(" [%eval 0.93] ", eval("0.93"));
        check("[%eval -0.9,17] [%clk 0:01:00]", eval("-0.9"));
        check("[%clk 0:01:00] [%eval #-3]", eval("#-3"));
        check("Good. [%eval +.5]", eval("+0.50"));
        check("[%eval 12.345]", eval("12.35"));
        // ChessBase, Fritz, CCCC.
        check("[%eval 93,17] [%emt 0:00:27]", eval("93,17"));
        check("[%eval -8]", eval("-8"));
        check("[%eval -24600,31]", eval("-24600,31"));
        // Wrapped lines.
        check(" [%eval\n0.35] ", eval("0.35"));
        check("[%eval\t0.21]", eval("0.21"));
        check("Good. [%eval\r\n#3]", eval("#3"));
        check("[%eval 23,\n14]", eval("23"));
        check("[%eval 0.3\n]", eval("0.3"));
        // PyChess.
        check("[%eval 0.16/16]", CommentScore::AfterByMover(number("0.16")));
        check("[%emt 0:00:01][%eval -1.20/9]", CommentScore::AfterByMover(number("-1.20")));
        // Mates in other spellings.
        check("[%eval -#3]", eval("#-3"));
        check("[%eval #+3]", eval("#3"));
        check("[%eval M5]", eval("#5"));
        check("[%eval -M5]", eval("#-5"));
        // cutechess, fastchess, c-chess-cli, WinBoard: mates in plies.
        let search = |text: &str| CommentScore::Search(number(text));
        check("+0.31/14 0.25s", search("+0.31"));
        check("-12.05/31 1.250s, n=12345", search("-12.05"));
        check("+0.31/14/20 0.25s", search("+0.31"));
        check("0.31/14 5", search("0.31"));
        check("+152.00/9", search("+152.00"));
        check("+M5/18 0.1s", search("#3"));
        check("-M12/20 0.1s, Black mates", search("#-6"));
        check("+M1/2 0s", search("#1"));
        check("-#2/9 1s", search("#-2"));
        check("[%clk 0:00:03] +0.31/14 0.25s", search("+0.31"));
        // Arena and CCRL, also wrapped; the book moves have no score.
        check("(h6) +0.59/28 20s", search("+0.59"));
        check("(Nc6)\n+0.62/28 18s", search("+0.62"));
        check("(Nc6 O-O)\n-M4/28 18s", search("#-2"));
        for book in ["+0.00/1 0s", "0.00/0 0s", "-0.00/1 0.00s", "+0.00/1, 0s", "0/0 0s", "+0.00/0", "(e5) +0.00/1 0s"]
        {
            let expected = if book == "0/0 0s" { CommentScore::None } else { CommentScore::Book };
            check(book, expected);
        }
        check("+0.00/14 0s", search("+0.00"));
        check("+0.00/1 0.25s", search("+0.00"));
        check("+0.12/1 0s", search("+0.12"));
        // Banksia.
        check("+0.3/21 2424 1511177", search("+0.3"));
        // TCEC.
        let white = |text: &str| CommentScore::AfterByWhite(number(text));
        check("d=30, sd=30, mt=1000, tl=1, wv=1.08, R50=50, ", white("1.08"));
        check("d=30, mt=1000, wv=M23,", white("#12"));
        check("d=30, mt=1000, wv=-M4", white("#-2"));
        check("d=1, sd=1, mt=0, wv=0.00, R50=50", CommentScore::Book);
        check("d=1, mt=00:00:00, wv=0.00", CommentScore::Book);
        check("book, mb=+0+0+0+0+0,", CommentScore::None);
    }

    #[test]
    fn commas() {
        let eval =
            |fraction| CommentScore::Eval(WrittenScore::Number(DecimalNumber { negative: false, whole: 1, fraction }));
        check("[%eval 1,17]", eval(Fraction::CommaOrDepth(17)));
        check("[%eval 1,7]", eval(Fraction::CommaOrDepth(70)));
        check("[%eval 1,05]", eval(Fraction::DecimalComma(5)));
        check("[%eval 1,35,18]", eval(Fraction::DecimalComma(35)));
        check("[%eval 1,117]", eval(Fraction::None));
        check("[%eval 1.17,17]", eval(Fraction::Point(17)));
        assert_eq!(number("-0,25"), number("-0,25"));
        assert!(matches!(
            number("-0,25"),
            WrittenScore::Number(DecimalNumber { fraction: Fraction::DecimalComma(25), .. })
        ));
        assert!(matches!(
            number("0,25"),
            WrittenScore::Number(DecimalNumber { fraction: Fraction::CommaOrDepth(25), .. })
        ));
        let comma =
            WrittenScore::Number(DecimalNumber { negative: false, whole: 0, fraction: Fraction::DecimalComma(31) });
        check("+0,31/14 0,25s", CommentScore::Search(comma));
        check("0,31/14", CommentScore::Search(comma));
        check("[%eval 0,31/14]", CommentScore::AfterByMover(comma));
    }

    #[test]
    fn the_end_of_a_game_has_no_score() {
        for comment in ["[%eval #0]", "[%eval #-0]", "[%eval -#0]", "[%eval #0,1]", "+M0/3 0s"] {
            check(comment, CommentScore::None);
        }
    }

    #[test]
    fn what_looks_like_a_score_and_what_does_not() {
        for comment in [
            "[%eval ?]",
            "[%eval x]",
            "[%eval ]",
            "[%eval",
            "[%eval 0.35 18]",
            "[%eval 1e3]",
            "[%eval #x]",
            "[%eval inf]",
            "[%eval 1234567.00]",
            "d=22, sd=30, mt=27",
            "ev=0.31, d=5",
            "+0.31",
            "-1.2 better",
            "0.31",
            "+0.31/14s",
            "+0.31/x",
            "(+0.31) d14",
            "+31/14s",
            "18:+0.31",
            "eval: 0.3",
            "Score 31",
            "+M5",
            "#5",
            "M5 soon",
        ] {
            check(comment, CommentScore::Unread);
        }
        for comment in [
            "",
            " ",
            "book",
            "[%clk 0:01:00]",
            "[%clk 0:01:00] [%emt 0:00:01]",
            "[%clk",
            "[%evp 0,18,19]",
            "0.25s",
            "0:01",
            "1. d4 is better",
            "1/2-1/2",
            "1-0",
            "+1 for White",
            "2020.01.02",
            "Diagram 1",
            "+",
            "-",
            "M",
            "#",
            "a+0.31",
            "Mate in 5",
            "3.",
            "White mates",
            "1",
            "12",
            "good move (0.31/14)",
            "+1234567.00/3",
        ] {
            check(comment, CommentScore::None);
        }
    }
}
