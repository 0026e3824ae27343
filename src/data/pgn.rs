//! One game's PGN text to moves. Stricter than most readers: a token that is no move, number, comment or result makes
//! the game broken instead of being passed over, since what follows it can no longer be trusted.

use serde::{Deserialize, Serialize};
use shakmaty::fen::Fen;
use shakmaty::san::{San, SanPlus};
use shakmaty::{CastlingMode, CastlingSide, Chess, Move, Position};

use super::GameResult;
use super::splitter::BOM;
use crate::units::{Centipawn, Ply};

/// A game read from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Game {
    /// Where its text begins, in bytes of the decompressed file.
    pub offset: u64,
    pub start: Chess,
    pub moves: Vec<PlayedMove>,
    /// White's view; none for `*` or where there is no `Result` tag and no result at the end of the moves.
    pub result: Option<GameResult>,
}

impl Game {
    /// The ply of the first move: 0, or what the move number of the starting position says.
    #[must_use]
    pub fn first_ply(&self) -> Ply {
        let plies = (self.start.fullmoves().get() - 1).saturating_mul(2);
        Ply(plies.saturating_add(u32::from(self.start.turn().is_black())).min(u32::from(u16::MAX)) as u16)
    }
}

/// A move of the game and what its comment says.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PlayedMove {
    pub mv: Move,
    /// White's view, of the position after the move.
    pub eval: Option<Eval>,
}

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

/// Why a game was passed over.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SkipReason {
    /// Chess960 or another variant.
    Variant,
    /// The `FEN` tag holds no legal standard position.
    StartPosition,
    /// A line that begins like a tag and is none.
    MalformedTag,
    /// Something that is no move, number, comment or result.
    Garbage,
    IllegalMove,
    MalformedEval,
    /// The text ends before the game's result.
    Unfinished,
}

/// A game that was passed over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedGame {
    pub reason: SkipReason,
    /// Where the game begins and where the trouble is, in bytes of the decompressed file.
    pub game_offset: u64,
    pub offset: u64,
    /// The offending text, shortened.
    pub text: String,
}

/// The games in one text: usually one; more where games without tags follow each other.
pub fn parse(text: &[u8], offset: u64, out: &mut Vec<Result<Game, SkippedGame>>) {
    let mut parser = Parser { text, at: 0, offset };
    if text.starts_with(BOM) {
        parser.at = BOM.len();
    }
    loop {
        parser.skip_blank();
        if parser.at >= text.len() {
            return;
        }
        let start = parser.at;
        let game = parser.game();
        let (broken, tagged) = (game.is_err(), text[start] == b'[');
        out.push(game.map_err(|trouble| SkippedGame {
            reason: trouble.reason,
            game_offset: offset + start as u64,
            offset: offset + trouble.at as u64,
            text: excerpt(&text[trouble.at.min(text.len())..]),
        }));
        // What follows a broken game's tags belongs to it; without tags, a blank line parts it from the next.
        if broken && (tagged || !parser.skip_to_blank_line()) {
            return;
        }
    }
}

fn excerpt(text: &[u8]) -> String {
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len()).min(24);
    String::from_utf8_lossy(&text[..end]).chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    offset: u64,
}

struct Trouble {
    reason: SkipReason,
    at: usize,
}

enum Token<'a> {
    San(SanPlus),
    Comment(&'a [u8]),
    Result(Option<GameResult>),
    Open,
    Close,
    Nothing,
}

impl<'a> Parser<'a> {
    fn game(&mut self) -> Result<Game, Trouble> {
        let offset = self.offset + self.at as u64;
        let tags = self.tags()?;
        let mut position = tags.start.clone();
        let mut moves: Vec<PlayedMove> = Vec::with_capacity(128);
        let mut depth = 0u32;
        loop {
            self.skip_blank();
            let at = self.at;
            match self.token()? {
                Token::Open => depth += 1,
                Token::Close if depth == 0 => return Err(Trouble { reason: SkipReason::Garbage, at }),
                Token::Close => depth -= 1,
                Token::Result(result) if depth == 0 => {
                    let result = tags.result.unwrap_or(result);
                    return Ok(Game { offset, start: tags.start, moves, result });
                }
                _ if depth > 0 => {}
                Token::San(san) => {
                    let illegal = |_| Trouble { reason: SkipReason::IllegalMove, at };
                    let mv = san.san.to_move(&position).map_err(illegal)?;
                    position.play_unchecked(mv);
                    moves.push(PlayedMove { mv, eval: None });
                }
                Token::Comment(comment) => {
                    if let (Some(text), Some(played)) = (eval_text(comment), moves.last_mut()) {
                        let malformed = Trouble { reason: SkipReason::MalformedEval, at };
                        played.eval = Some(Eval::parse(text).ok_or(malformed)?);
                    }
                }
                Token::Result(_) | Token::Nothing => {}
            }
        }
    }

    fn skip_blank(&mut self) {
        while self.text.get(self.at).is_some_and(|byte| byte.is_ascii_whitespace() || *byte == b'.') {
            self.at += 1;
        }
    }

    /// Whether there was a blank line to go to.
    fn skip_to_blank_line(&mut self) -> bool {
        self.line();
        self.at += 1;
        while self.at < self.text.len() {
            if self.line().trim_ascii().is_empty() {
                return true;
            }
            self.at += 1;
        }
        false
    }

    fn tags(&mut self) -> Result<Tags, Trouble> {
        let mut tags = Tags { start: Chess::default(), result: None };
        while self.text.get(self.at) == Some(&b'[') {
            let at = self.at;
            let line = self.line();
            let (name, value) = tag(line).ok_or(Trouble { reason: SkipReason::MalformedTag, at })?;
            match name {
                b"FEN" => {
                    let start = start_position(value).ok_or(Trouble { reason: SkipReason::StartPosition, at })?;
                    tags.start = start;
                }
                b"Variant" if !is_standard(value) => return Err(Trouble { reason: SkipReason::Variant, at }),
                b"Result" => tags.result = game_result(value),
                _ => {}
            }
            self.skip_blank();
        }
        Ok(tags)
    }

    /// The rest of the line, and past it.
    fn line(&mut self) -> &'a [u8] {
        let rest = &self.text[self.at..];
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn token(&mut self) -> Result<Token<'a>, Trouble> {
        let at = self.at;
        let rest = &self.text[at..];
        match rest {
            [] => Err(Trouble { reason: SkipReason::Unfinished, at }),
            [b'{', body @ ..] => {
                let end = memchr::memchr(b'}', body).ok_or(Trouble { reason: SkipReason::Unfinished, at })?;
                self.at += end + 2;
                Ok(Token::Comment(&body[..end]))
            }
            [b';', ..] => Ok(Token::Comment(self.line())),
            [b'%', ..] if at == 0 || self.text[at - 1] == b'\n' => {
                self.line();
                Ok(Token::Nothing)
            }
            [b'(', ..] => {
                self.at += 1;
                Ok(Token::Open)
            }
            [b')', ..] => {
                self.at += 1;
                Ok(Token::Close)
            }
            _ => {
                let (token, length) = word(rest).ok_or(Trouble { reason: SkipReason::Garbage, at })?;
                self.at += length;
                Ok(token)
            }
        }
    }
}

/// A move, move number, result, glyph: whatever ends at a blank or bracket; and its length.
fn word(rest: &[u8]) -> Option<(Token<'static>, usize)> {
    let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'{' | b'}' | b'(' | b')' | b';');
    let length = rest.iter().position(ends).unwrap_or(rest.len());
    let text = &rest[..length];
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match text {
        [] => None,
        b"*" => Some((Token::Result(None), length)),
        [b'$', glyph @ ..] => {
            (!glyph.is_empty() && glyph.iter().all(u8::is_ascii_digit)).then_some((Token::Nothing, length))
        }
        [b'!' | b'?', ..] => text.iter().all(|byte| matches!(byte, b'!' | b'?')).then_some((Token::Nothing, length)),
        b"e.p." => Some((Token::Nothing, length)),
        _ if digits > 0 => {
            if let Some(result) = game_result(text) {
                return Some((Token::Result(result), length));
            }
            if let Some(castling) = castling_in_digits(text) {
                return Some((Token::San(castling), length));
            }
            // A number stands alone or before dots, after which a move may follow at once.
            (digits == length || text[digits] == b'.').then_some((Token::Nothing, digits))
        }
        _ => san(text).map(|san| (Token::San(san), length)),
    }
}

fn san(text: &[u8]) -> Option<SanPlus> {
    let end = text.iter().rposition(|byte| !matches!(byte, b'!' | b'?'))?;
    SanPlus::from_ascii(&text[..=end]).ok()
}

/// `0-0` and `0-0-0`, as many programs write castling.
fn castling_in_digits(text: &[u8]) -> Option<SanPlus> {
    let end = text.iter().rposition(|byte| *byte == b'0')?;
    let (body, suffix) = text.split_at(end + 1);
    let side = match body {
        b"0-0" => CastlingSide::KingSide,
        b"0-0-0" => CastlingSide::QueenSide,
        _ => return None,
    };
    let known = suffix.iter().all(|byte| matches!(byte, b'+' | b'#' | b'!' | b'?'));
    known.then_some(SanPlus { san: San::Castle(side), suffix: None })
}

struct Tags {
    start: Chess,
    /// None where there is no (known) `Result` tag; inner none for `*`.
    result: Option<Option<GameResult>>,
}

/// Name and value of `[Name "value"]`; quotes inside the value need no escape.
fn tag(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let inner = line.trim_ascii().strip_prefix(b"[")?.strip_suffix(b"]")?;
    let open = memchr::memchr(b'"', inner)?;
    let close = memchr::memrchr(b'"', inner).filter(|close| *close > open)?;
    let name = inner[..open].trim_ascii();
    let valid = !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    (valid && inner[close + 1..].trim_ascii().is_empty()).then_some((name, &inner[open + 1..close]))
}

fn is_standard(variant: &[u8]) -> bool {
    [&b"standard"[..], b"chess", b"normal", b"from position", b"?", b""]
        .iter()
        .any(|name| variant.trim_ascii().eq_ignore_ascii_case(name))
}

fn start_position(fen: &[u8]) -> Option<Chess> {
    let fen = Fen::from_ascii(fen.trim_ascii()).ok()?;
    let position: Chess = match fen.into_position(CastlingMode::Standard) {
        Ok(position) => position,
        Err(error) => error.ignore_invalid_ep_square().ok()?,
    };
    (position.board().occupied().count() <= 32).then_some(position)
}

/// White's view of a result as it is written; the outer none for what is not a result.
fn game_result(text: &[u8]) -> Option<Option<GameResult>> {
    match text {
        b"1-0" => Some(Some(GameResult::Win)),
        b"0-1" => Some(Some(GameResult::Loss)),
        b"1/2-1/2" => Some(Some(GameResult::Draw)),
        b"*" => Some(None),
        _ => None,
    }
}

/// What stands behind `[%eval` in a comment.
fn eval_text(comment: &[u8]) -> Option<&[u8]> {
    const MARK: &[u8] = b"[%eval ";
    let start = memchr::memmem::find(comment, MARK)? + MARK.len();
    let rest = &comment[start..];
    Some(&rest[..memchr::memchr(b']', rest).unwrap_or(rest.len())])
}

#[cfg(test)]
mod tests {
    use super::*;
    use shakmaty::uci::UciMove;

    fn parsed(text: &str) -> Vec<Result<Game, SkippedGame>> {
        let mut games = Vec::new();
        parse(text.as_bytes(), 100, &mut games);
        games
    }

    fn only(text: &str) -> Game {
        let mut games = parsed(text);
        assert_eq!(games.len(), 1, "{text}");
        games.remove(0).unwrap_or_else(|skipped| panic!("{text}: {skipped}"))
    }

    fn moves(game: &Game) -> String {
        let text: Vec<_> =
            game.moves.iter().map(|m| UciMove::from_move(m.mv, CastlingMode::Standard).to_string()).collect();
        text.join(" ")
    }

    #[test]
    fn movetext() {
        let check = |text: &str, expected: &str| assert_eq!(moves(&only(text)), expected, "{text}");
        check("1. e4 e5 2. Nf3 *", "e2e4 e7e5 g1f3");
        check("\u{feff}1.e4 e5 2.Nf3!? Nc6?! *", "e2e4 e7e5 g1f3 b8c6");
        check("1. e4 $1 {good} (1. d4 {[%eval 9]} d5 (1... Nf6)) 1... e5 ! ; 2. d4\n2. Nf3 1-0", "e2e4 e7e5 g1f3");
        check("1. e4\n% 1. d4\ne5 *", "e2e4 e7e5");
        check("1. e4 e5 2. Nf3 Nc6 3. Bc4 Bc5 4. 0-0! *", "e2e4 e7e5 g1f3 b8c6 f1c4 f8c5 e1g1");
        check("*", "");
        assert_eq!(parsed("1. e4 * 1. d4 1-0\n\n1. c4 0-1").iter().flatten().count(), 3);
        assert!(parsed(" \n\n ").is_empty());
    }

    #[test]
    fn results() {
        let check = |text: &str, expected| assert_eq!(only(text).result, expected, "{text}");
        check("1. e4 1-0", Some(GameResult::Win));
        check("1. e4 0-1", Some(GameResult::Loss));
        check("1. e4 1/2-1/2", Some(GameResult::Draw));
        check("1. e4 *", None);
        check("[Result \"0-1\"]\n\n1. e4 *", Some(GameResult::Loss));
        check("[Result \"?\"]\n\n1. e4 1-0", Some(GameResult::Win));
    }

    #[test]
    fn evals() {
        let check = |comment: &str, expected| {
            assert_eq!(only(&format!("1. e4 {{ {comment} }} *")).moves[0].eval, expected, "{comment}");
        };
        let score = |centipawns| Some(Eval::Score(Centipawn(centipawns)));
        check("[%eval 0.35]", score(35));
        check("[%eval -1.2] [%clk 0:01:00]", score(-120));
        check("[%clk 0:01:00] [%eval 0.0]", score(0));
        check("book [%eval 12.34,18]", score(1234));
        check("[%eval #3]", Some(Eval::Mate(3)));
        check("[%eval #-3]", Some(Eval::Mate(-3)));
        check("nothing", None);
        assert_eq!(only("{[%eval 1]} 1. e4 *").moves[0].eval, None);
    }

    #[test]
    fn one_number_orders_mates_beyond_scores() {
        let check = |eval: Eval, expected| assert_eq!(eval.centipawns(), expected, "{eval:?}");
        check(Eval::Score(Centipawn(-35)), -35);
        check(Eval::Score(Centipawn(40_000)), 30_000);
        check(Eval::Mate(1), 31_998);
        check(Eval::Mate(-3), -31_994);
        check(Eval::Mate(5_000), 30_002);
        check(Eval::Mate(i32::MIN), -30_002);
    }

    #[test]
    fn starting_positions() {
        let game = only("[FEN \"4k3/8/8/8/8/8/4P3/4K3 b - - 3 20\"]\n\n20... Kd8 21. e4 *");
        assert_eq!(moves(&game), "e8d8 e2e4");
        assert_eq!(game.first_ply(), Ply(39));
        assert_eq!(only("1. e4 *").first_ply(), Ply(0));
    }

    #[test]
    fn broken_games_say_why_and_where() {
        let check = |text: &str, reason, offset: u64, excerpt: &str| {
            let skipped = parsed(text).remove(0).expect_err(text);
            assert_eq!((skipped.reason, skipped.offset), (reason, 100 + offset), "{text}");
            assert_eq!((skipped.game_offset, skipped.text.as_str()), (100, excerpt), "{text}");
        };
        check("1. e4 e5 2. Ke3 *", SkipReason::IllegalMove, 12, "Ke3");
        check("1. e4 @#!x e5 *", SkipReason::Garbage, 6, "@#!x");
        check("1. e4 e5) *", SkipReason::Garbage, 8, ")");
        check("1. e4 12x *", SkipReason::Garbage, 6, "12x");
        check("1. e4 e5", SkipReason::Unfinished, 8, "");
        check("1. e4 { never closed", SkipReason::Unfinished, 6, "{");
        check("1. e4 {[%eval x]} *", SkipReason::MalformedEval, 6, "{[%eval");
        check("[Event x]\n\n1. e4 *", SkipReason::MalformedTag, 0, "[Event");
        assert_eq!(parsed("1. e4 *\n\n1. e4 e4\n2. d4 *\n\n1. d4 *").iter().flatten().count(), 2);
        assert_eq!(parsed("[Variant \"Atomic\"]\n\n1. e4 *\n\n1. d4 *").len(), 1);
        check("[Variant \"Atomic\"]\n\n1. e4 *", SkipReason::Variant, 0, "[Variant");
        check("[FEN \"no\"]\n\n1. e4 *", SkipReason::StartPosition, 0, "[FEN");
        check("[FEN \"8/8/8/8/8/8/8/8 w - - 0 1\"]\n\n1. e4 *", SkipReason::StartPosition, 0, "[FEN");
    }

    proptest::proptest! {
        /// Whatever the bytes: no panic, and offsets inside the text.
        #[test]
        fn any_bytes(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200), cut in 0usize..60) {
            let mut text = b"[Result \"1-0\"]\n\n1. e4 {[%eval 0.2]} e5 2. Nf3 (2. f4) Nc6 1-0\n"[..cut].to_vec();
            text.extend(bytes);
            let mut games = Vec::new();
            parse(&text, 0, &mut games);
            for skipped in games.into_iter().filter_map(Result::err) {
                assert!(skipped.offset <= text.len() as u64);
            }
        }
    }
}
