//! Reads one game and locates its errors. Every call that pgn-reader makes must match the next token of the same text;
//! otherwise pgn-reader skipped text.

use std::ops::ControlFlow;
use std::slice;

use pgn_reader::{RawComment, RawTag, Reader, Skip, Visitor};
use shakmaty::san::{San, SanPlus};
use shakmaty::{CastlingSide, Chess, Color, KnownOutcome, Outcome, Position};

use super::eval::{parse_comment_eval, parse_search_eval};
use super::san::resolve;
use super::tags::{GameHeader, Speed, is_standard, rating, start_position};
use super::tokenizer::{GameError, GameTokens, Token, TokenKind};
use super::{GameVisitor, SkipReason};
use crate::data::GameResult;

/// Reads the game of `text` with these tokens; `text` begins at byte `offset` of its file.
pub fn read<V: GameVisitor>(visitor: &V, text: &[u8], offset: u64, game: &GameTokens) -> Result<V::Output, GameError> {
    let masked = game.masked_text(text);
    let mut reader = Reader::build(&*masked).set_supported_tag_line_length(game.longest_tag).finish();
    let mut strict = StrictReader { visitor, text, offset, game, tokens: game.tokens.iter() };
    match reader.read_game(&mut strict) {
        Ok(Some(output)) => output,
        // There is nothing before the error: tags and comments without an end are no tokens.
        Ok(None) | Err(_) => Err(strict.unexpected_text()),
    }
}

struct StrictReader<'a, V> {
    visitor: &'a V,
    text: &'a [u8],
    offset: u64,
    game: &'a GameTokens,
    /// Tokens not matched yet.
    tokens: slice::Iter<'a, Token>,
}

/// State within the movetext.
struct Movetext<S> {
    header: GameHeader,
    state: S,
    position: Chess,
    /// Whether a move was played that an evaluation can belong to.
    moved: bool,
    /// The beginning of a comment longer than pgn-reader's buffer.
    comment: Vec<u8>,
    outcome: Outcome,
}

type Flow<O, T = ()> = ControlFlow<Result<O, GameError>, T>;

fn break_with<O, T>(reason: SkipReason, offset: usize) -> Flow<O, T> {
    ControlFlow::Break(Err(GameError { reason, offset }))
}

impl<'a, V: GameVisitor> StrictReader<'a, V> {
    fn expect_token(&mut self, kind: TokenKind) -> Flow<V::Output, &'a Token> {
        match self.tokens.next() {
            Some(token) if token.kind == kind => ControlFlow::Continue(token),
            Some(token) => break_with(SkipReason::Garbage, token.start()),
            None => ControlFlow::Break(Err(self.unexpected_text())),
        }
    }

    /// The error where pgn-reader calls for text that is not a token.
    fn unexpected_text(&self) -> GameError {
        self.game.error.unwrap_or(GameError { reason: SkipReason::Garbage, offset: self.game.end })
    }

    fn visit_comment(&self, movetext: &mut Movetext<V::State>, comment: &[u8], offset: usize) -> Flow<V::Output> {
        match parse_comment_eval(comment).filter(|_| movetext.moved) {
            Some(Ok(eval)) => self.visitor.visit_eval(&mut movetext.state, eval),
            Some(Err(())) => return break_with(SkipReason::MalformedEval, offset),
            None if movetext.moved => {
                if let Some(eval) = parse_search_eval(comment) {
                    self.visitor.visit_search_eval(&mut movetext.state, eval);
                }
            }
            None => {}
        }
        ControlFlow::Continue(())
    }
}

impl<V: GameVisitor> Visitor for StrictReader<'_, V> {
    type Tags = GameHeader;
    type Movetext = Movetext<V::State>;
    type Output = Result<V::Output, GameError>;

    fn begin_tags(&mut self) -> Flow<V::Output, GameHeader> {
        ControlFlow::Continue(GameHeader::new(self.offset + self.game.start as u64))
    }

    fn tag(&mut self, header: &mut GameHeader, name: &[u8], value: RawTag<'_>) -> Flow<V::Output> {
        let offset = self.expect_token(TokenKind::Tag)?.start();
        match apply_tag(header, name.trim_ascii(), value.as_bytes()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(reason) => break_with(reason, offset),
        }
    }

    fn begin_movetext(&mut self, header: GameHeader) -> Flow<V::Output, Movetext<V::State>> {
        let state = match self.visitor.begin_game(&header, self.text.len()) {
            ControlFlow::Continue(state) => state,
            ControlFlow::Break(output) => return ControlFlow::Break(Ok(output)),
        };
        let position = header.start.clone();
        let (comment, outcome) = (Vec::new(), Outcome::Unknown);
        ControlFlow::Continue(Movetext { header, state, position, moved: false, comment, outcome })
    }

    fn san(&mut self, movetext: &mut Self::Movetext, san: SanPlus) -> Flow<V::Output> {
        let token = self.expect_token(TokenKind::Word)?;
        if !word_is_move(&self.text[token.range()], san) {
            return break_with(SkipReason::Garbage, token.start());
        }
        let Some(mv) = resolve(san.san, &movetext.position) else {
            return break_with(SkipReason::IllegalMove, token.start());
        };
        self.visitor.visit_move(&mut movetext.state, &movetext.position, mv);
        movetext.position.play_unchecked(mv);
        movetext.moved = true;
        ControlFlow::Continue(())
    }

    fn begin_variation(&mut self, _: &mut Self::Movetext) -> Flow<V::Output, Skip> {
        ControlFlow::Continue(Skip(true))
    }

    fn partial_comment(&mut self, movetext: &mut Self::Movetext, comment: RawComment<'_>) -> Flow<V::Output> {
        movetext.comment.extend_from_slice(comment.as_bytes());
        ControlFlow::Continue(())
    }

    fn comment(&mut self, movetext: &mut Self::Movetext, comment: RawComment<'_>) -> Flow<V::Output> {
        let offset = self.expect_token(TokenKind::Comment)?.start();
        if movetext.comment.is_empty() {
            return self.visit_comment(movetext, comment.as_bytes(), offset);
        }
        let mut joined = std::mem::take(&mut movetext.comment);
        joined.extend_from_slice(comment.as_bytes());
        self.visit_comment(movetext, &joined, offset)
    }

    fn outcome(&mut self, movetext: &mut Self::Movetext, outcome: Outcome) -> Flow<V::Output> {
        self.expect_token(TokenKind::Result)?;
        movetext.outcome = outcome;
        ControlFlow::Continue(())
    }

    fn end_game(&mut self, movetext: Self::Movetext) -> Self::Output {
        if let Some(skipped) = self.tokens.next() {
            return Err(GameError { reason: SkipReason::Garbage, offset: skipped.start() });
        }
        if let Some(error) = self.game.error {
            return Err(error);
        }
        let result = game_result(movetext.header.outcome.unwrap_or(movetext.outcome));
        Ok(self.visitor.end_game(movetext.state, movetext.header, result))
    }
}

/// Whether `word` is this move and nothing else. pgn-reader resumes in the middle of a word that it cannot read.
fn word_is_move(word: &[u8], san: SanPlus) -> bool {
    if !word.starts_with(b"0") {
        return SanPlus::from_ascii(word).is_ok_and(|parsed| parsed == san);
    }
    let body = word.len() - word.iter().rev().take_while(|byte| matches!(byte, b'+' | b'#')).count();
    match &word[..body] {
        b"0-0" => san.san == San::Castle(CastlingSide::KingSide),
        b"0-0-0" => san.san == San::Castle(CastlingSide::QueenSide),
        _ => false,
    }
}

/// Stores a tag's value in the header.
pub(super) fn apply_tag(header: &mut GameHeader, name: &[u8], value: &[u8]) -> Result<(), SkipReason> {
    match name {
        b"FEN" => header.start = start_position(value).ok_or(SkipReason::StartPosition)?,
        b"Variant" if !is_standard(value) => return Err(SkipReason::Variant),
        b"Result" => header.outcome = Outcome::from_ascii(value).ok(),
        b"WhiteElo" => header.ratings.white = rating(value),
        b"BlackElo" => header.ratings.black = rating(value),
        b"TimeControl" => header.speed = Speed::of(value),
        _ => {}
    }
    Ok(())
}

/// The result from White's point of view.
pub(super) fn game_result(outcome: Outcome) -> Option<GameResult> {
    match outcome {
        Outcome::Known(KnownOutcome::Decisive { winner: Color::White }) => Some(GameResult::Win),
        Outcome::Known(KnownOutcome::Decisive { winner: Color::Black }) => Some(GameResult::Loss),
        Outcome::Known(KnownOutcome::Draw) => Some(GameResult::Draw),
        Outcome::Unknown => None,
    }
}
