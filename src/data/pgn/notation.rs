//! Reads moves in the notations of old databases and other programs: `e2e4`, `e7-e8=Q`, `Ng1xf3`, `axb8Q`, `axb8(Q)`,
//! `axb8/Q`, `Qxf7++`, `ed5`, `0-0`.

use shakmaty::san::{San, SanPlus};
use shakmaty::uci::UciMove;
use shakmaty::{CastlingSide, Chess, File, Move, Position, Rank, Role, Square};

use super::SkipReason;
use super::san::resolve;

/// The legal move that a word of the movetext names.
///
/// # Errors
/// When the word is no move, or its move is not legal or not the only one.
pub fn read_move(word: &[u8], position: &Chess) -> Result<Move, SkipReason> {
    let san = SanPlus::from_ascii(word).ok();
    if let Some(mv) = san.as_ref().and_then(|san| resolve(san.san, position)) {
        return Ok(mv);
    }
    let body = without_suffix(word);
    if let Some(side) = castling_side(body) {
        return resolve(San::Castle(side), position).ok_or(SkipReason::IllegalMove);
    }
    match WrittenMove::parse(body) {
        Some(written) => written.find(position).ok_or(SkipReason::IllegalMove),
        None if san.is_some() => Err(SkipReason::IllegalMove),
        None => Err(SkipReason::Garbage),
    }
}

/// Whether a word in the place of a move only judges the position.
pub fn is_judgement(word: &[u8]) -> bool {
    const JUDGEMENTS: [&str; 24] = [
        "+-", "-+", "+/-", "-/+", "+/=", "=/+", "=/-", "-/=", "+=", "=+", "+--", "--+", "=", "==", "~", "∞", "±", "∓",
        "⩲", "⩱", "N", "TN", "□", "→",
    ];
    JUDGEMENTS.iter().any(|judgement| judgement.as_bytes() == word)
}

/// The word without signs of check, mate and judgements at its end.
fn without_suffix(word: &[u8]) -> &[u8] {
    let mut body = word;
    loop {
        let shorter = [&b"+-"[..], b"-+", b"+", b"#", b"="].iter().find_map(|suffix| body.strip_suffix(*suffix));
        match shorter {
            Some(shorter) => body = shorter,
            None => return body,
        }
    }
}

fn castling_side(body: &[u8]) -> Option<CastlingSide> {
    match body {
        b"0-0" | b"O-O" | b"o-o" => Some(CastlingSide::KingSide),
        b"0-0-0" | b"O-O-O" | b"o-o-o" => Some(CastlingSide::QueenSide),
        _ => None,
    }
}

/// A move as it is written.
struct WrittenMove {
    /// `None` where only squares are given.
    role: Option<Role>,
    file: Option<File>,
    rank: Option<Rank>,
    captures: bool,
    to: Square,
    promotion: Option<Role>,
}

impl WrittenMove {
    /// Piece, origin, `x`, `:` or `-`, target, promotion; all but the target may be missing.
    fn parse(body: &[u8]) -> Option<WrittenMove> {
        let (role, rest) = match body {
            [letter @ (b'K' | b'Q' | b'R' | b'B' | b'N' | b'P'), rest @ ..] => (role_of(*letter), rest),
            rest => (None, rest),
        };
        let (promotion, rest) = split_promotion(rest);
        let (origin, to) = rest.split_at_checked(rest.len().checked_sub(2)?)?;
        let to = Square::from_ascii(to).ok()?;
        let (captures, origin) = match origin {
            [origin @ .., b'x' | b':'] => (true, origin),
            [origin @ .., b'-'] => (false, origin),
            origin => (false, origin),
        };
        let (file, rank) = match origin {
            [] => (None, None),
            [file @ b'a'..=b'h'] => (file_of(*file), None),
            [rank @ b'1'..=b'8'] => (None, rank_of(*rank)),
            [file @ b'a'..=b'h', rank @ b'1'..=b'8'] => (file_of(*file), rank_of(*rank)),
            _ => return None,
        };
        let has_origin = file.is_some() && rank.is_some();
        let role = if role.is_none() && !has_origin { Some(Role::Pawn) } else { role };
        Some(WrittenMove { role, file, rank, captures, to, promotion })
    }

    /// The only legal move that it can be. A sign of capture needs a capture, but not the reverse.
    fn find(&self, position: &Chess) -> Option<Move> {
        let origin = self.file.zip(self.rank).map(|(file, rank)| Square::from_coords(file, rank));
        if let (Some(from), None) = (origin, self.role) {
            // Coordinates, also of castling.
            let mv = UciMove::Normal { from, to: self.to, promotion: self.promotion }.to_move(position).ok()?;
            return (mv.is_capture() || !self.captures).then_some(mv);
        }
        let is_it = |mv: &&Move| {
            Some(mv.role()) == self.role
                && mv.to() == self.to
                && !mv.is_castle()
                && mv.promotion() == self.promotion
                && (mv.is_capture() || !self.captures)
                && self.file.is_none_or(|file| mv.from().is_some_and(|from| from.file() == file))
                && self.rank.is_none_or(|rank| mv.from().is_some_and(|from| from.rank() == rank))
        };
        let legal = position.legal_moves();
        let mut found = legal.iter().filter(is_it);
        let first = found.next()?;
        found.next().is_none().then_some(*first)
    }
}

/// `=Q`, `Q`, `q`, `(Q)`, `=(Q)` or `/Q` at the end, and the text before it.
fn split_promotion(text: &[u8]) -> (Option<Role>, &[u8]) {
    let inner = text.strip_suffix(b")").unwrap_or(text);
    let [before @ .., letter] = inner else { return (None, text) };
    let role = role_of(letter.to_ascii_uppercase()).filter(|role| !matches!(role, Role::Pawn | Role::King));
    let Some(role) = role else { return (None, text) };
    let before = if inner.len() < text.len() { before.strip_suffix(b"(").unwrap_or(before) } else { before };
    let before = before.strip_suffix(b"=").or_else(|| before.strip_suffix(b"/")).unwrap_or(before);
    (Some(role), before)
}

fn role_of(letter: u8) -> Option<Role> {
    Role::from_char(char::from(letter))
}

fn file_of(letter: u8) -> Option<File> {
    File::from_char(char::from(letter))
}

fn rank_of(digit: u8) -> Option<Rank> {
    Rank::from_char(char::from(digit))
}

#[cfg(test)]
mod tests {
    use shakmaty::CastlingMode;
    use shakmaty::fen::Fen;

    use super::*;

    fn position(fen: &str) -> Chess {
        fen.parse::<Fen>().expect("a FEN").into_position(CastlingMode::Standard).expect("legal")
    }

    #[test]
    fn notations_of_other_programs() {
        let check = |fen: &str, words: &str, expected: Result<&str, SkipReason>| {
            for word in words.split(' ') {
                let found = read_move(word.as_bytes(), &position(fen));
                let found = found.map(|mv| mv.to_uci(CastlingMode::Standard).to_string());
                assert_eq!(found, expected.map(str::to_owned), "{word}");
            }
        };
        let start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
        check(start, "e4 e2e4 e2-e4 Pe4 Pe2-e4 e4+ e4= e4+-", Ok("e2e4"));
        check(start, "Nf3 g1f3 Ng1-f3 Ng1f3 N1f3 Ngf3", Ok("g1f3"));
        check(start, "e2e5 Ng1-e3 Nd4 Ke2 O-O 0-0 e1g1 exd3 Nxf3 g1xf3 e2xe4 xe5 --", Err(SkipReason::IllegalMove));
        check(start, "x e9 Nc6x e4Nf3 Nf3Nc6 ½-½ e5x 0-0-0-0 Ke K 0-0x e2--e4 Xe4 i2i4", Err(SkipReason::Garbage));
        let castling = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1";
        check(castling, "O-O 0-0 o-o e1g1 e1-g1 0-0+ O-O#", Ok("e1g1"));
        check(castling, "O-O-O 0-0-0 o-o-o e1c1 e1a1", Ok("e1c1"));
        let promotion = "1n5k/P7/8/8/8/8/8/K7 w - - 0 1";
        check(
            promotion,
            "axb8=Q axb8Q axb8q axb8(Q) axb8=(Q) axb8/Q ab8Q a7b8q a7xb8=Q a7-b8Q axb8Q+ a:b8Q",
            Ok("a7b8q"),
        );
        check(promotion, "axb8N axb8=N axb8(N) a7b8n", Ok("a7b8n"));
        check(promotion, "a8B a8=B a7a8b", Ok("a7a8b"));
        check(promotion, "a8 axb8 a7b8", Err(SkipReason::IllegalMove));
        check(promotion, "a8K a8P", Err(SkipReason::Garbage));
        let taking = "rnbqkbnr/ppp1pppp/8/3p4/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2";
        check(taking, "exd5 ed5 e4d5 e4xd5 e4-d5 e:d5 exd5++ e4d5#", Ok("e4d5"));
        let two = "6k1/8/8/8/8/1K6/8/R6R w - - 0 1";
        check(two, "Re1 Rd1 Kd1", Err(SkipReason::IllegalMove));
        check(two, "Rae1 Ra1-e1 a1e1", Ok("a1e1"));
        let passing = "4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 2";
        check(passing, "exd6 ed6 e5d6 e5xd6 e5:d6", Ok("e5d6"));
    }

    #[test]
    fn judgements_are_no_moves() {
        for word in ["+-", "-+", "±", "=", "N", "+/="] {
            assert!(is_judgement(word.as_bytes()), "{word}");
        }
        for word in ["e4", "-", "--", "O-O", "+", "Nf3", "B"] {
            assert!(!is_judgement(word.as_bytes()), "{word}");
        }
    }
}
