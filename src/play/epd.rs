//! Lines of EPD.

use shakmaty::Chess;

use crate::chess::parse_fen;

/// Parses an EPD line: four fields, then the two counters of a FEN, if they are there, and operations, of which `hmvc`
/// (rule-50 counter) and `fmvn` (move number) are read.
pub fn parse_epd(line: &str) -> Result<Chess, String> {
    let (position, rest) = split_fields(line).ok_or("it lacks the four fields of a position")?;
    let position = position.split_whitespace().collect::<Vec<_>>().join(" ");
    let (counters, operations) = split_counters(rest);
    let operation = |name: &str| {
        let argument = epd_operations(operations).find_map(|text| text.strip_prefix(name)?.strip_prefix(' '));
        argument.map(str::trim).filter(|number| is_number(number))
    };
    let [rule50, move_number] = counters;
    let rule50 = rule50.or_else(|| operation("hmvc")).unwrap_or("0");
    let move_number = move_number.or_else(|| operation("fmvn")).unwrap_or("1");
    parse_fen(&format!("{position} {rule50} {move_number}")).map_err(|error| error.to_string())
}

/// A line's first four words, and the rest.
fn split_fields(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let mut at = 0;
    for _ in 0..4 {
        let rest = &line[at..];
        let start = at + rest.find(|byte: char| !byte.is_whitespace())?;
        at = line[start..].find(char::is_whitespace).map_or(line.len(), |length| start + length);
    }
    Some(line.split_at(at))
}

/// The counters of a FEN at the front, either of which may be missing or end with `;`, and the rest.
fn split_counters(mut rest: &str) -> ([Option<&str>; 2], &str) {
    let mut counters = [None; 2];
    for counter in &mut counters {
        rest = rest.trim_start();
        let (word, after) = rest.split_once([' ', '\t', ';']).unwrap_or((rest, ""));
        if !is_number(word) {
            break;
        }
        *counter = Some(word);
        rest = after;
    }
    (counters, rest)
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// The operations of an EPD line. A `;` within quotes ends none.
fn epd_operations(text: &str) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    let ends = move |letter: char| {
        is_quoted ^= letter == '"';
        letter == ';' && !is_quoted
    };
    text.split(ends).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::fen_of;

    #[test]
    fn positions_with_counters_and_operations() {
        let check = |line: &str, expected: Result<&str, &str>| {
            let found = parse_epd(line).map(|position| fen_of(&position));
            match (found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(found), Err(expected)) => assert!(found.contains(expected), "{found}"),
                (found, _) => panic!("{line}: {found:?}"),
            }
        };
        check("4k3/8/8/8/8/8/4P3/4K3 w - - bm e4; id \"x\";", Ok("4k3/8/8/8/8/8/4P3/4K3 w - - 0 1"));
        check("4k3/8/8/8/8/8/4P3/4K3 b - - 5 12", Ok("4k3/8/8/8/8/8/4P3/4K3 b - - 5 12"));
        check("4k3/8/8/8/8/8/4P3/4K3 w - - hmvc 3; fmvn 9;", Ok("4k3/8/8/8/8/8/4P3/4K3 w - - 3 9"));
        check("4k3/8/8/8/8/8/4P3/4K3 w - e6", Ok("4k3/8/8/8/8/8/4P3/4K3 w - - 0 1"));
        check("4k3/8/8/8/8/8/4P3/4K3", Err("four fields"));
        check("4k3/8/8/8/8/8/4P3/9 w - -", Err("is not a FEN"));
        check("8/8/8/8/8/8/4P3/4K3 w - -", Err("missing king"));
        // Text within quotes is no operation; `;` may follow a counter at once.
        let fen = |counters: &str| format!("4k3/8/8/8/8/8/4P3/4K3 w - - {counters}");
        let kept = |rest: &str, counters: &str| check(&fen(rest), Ok(&fen(counters)));
        kept("id \"a; hmvc 90; fmvn 80\"; hmvc 3; fmvn 7;", "3 7");
        kept("c0 \"b; hmvc 90; c\";", "0 1");
        kept("hmvc 3; c0 \"x; fmvn 9;\"; fmvn 4", "3 4");
        kept("hmvc 3; c0 \"never closed; fmvn 9;", "3 1");
        kept("5 12;", "5 12");
        kept("5 12; id \"x\";", "5 12");
        kept("5 12 ; hmvc 7;", "5 12");
        kept("5; fmvn 9;", "5 9");
        kept("5", "5 1");
        kept("\t5\t12\r\n", "5 12");
        kept("hmvcs 5; xhmvc 6; fmvn x;", "0 1");
        check(
            "bbqnnrkr/pppppppp/8/8/8/8/PPPPPPPP/BBQNNRKR w KQkq -",
            Ok("bbqnnrkr/pppppppp/8/8/8/8/PPPPPPPP/BBQNNRKR w HFhf - 0 1"),
        );
    }
}
