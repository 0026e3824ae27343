//! Reads any game from its tokens and locates its errors.

use std::ops::ControlFlow;

use super::eval_options::EvalRules;
use super::notation::{is_judgement, read_move};
use super::open_game::{OpenGame, ReadGame};
use super::tags::{Tags, says_illegal};
use super::tokenizer::{MalformedGame, MovetextToken, TagLine, Tokenizer};
use super::{GameVisitor, SkipReason};
use crate::data::GameResult;

/// Reads the game at which `tokenizer` stands; the text begins at byte `offset` of its file. Afterwards the tokenizer
/// is at the game's end, or at the error in its text.
pub fn read<V: GameVisitor>(
    visitor: &V,
    rules: EvalRules,
    tokenizer: &mut Tokenizer<'_>,
    offset: u64,
) -> Result<ReadGame<V::Output>, MalformedGame> {
    let mut tags = Tags::new(offset + tokenizer.at() as u64);
    loop {
        let at = tokenizer.at();
        match tokenizer.next_tag()? {
            Some(TagLine::Pair { name, value }) => tags.take(name, value, at),
            Some(TagLine::Malformed) => tags.malformed += 1,
            None => break,
        }
    }
    if let Some(problem) = tags.problem() {
        skip_to_result(tokenizer);
        return Err(problem);
    }
    let tags_say_illegal = tags.says_illegal;
    let mut game = match OpenGame::begin(visitor, tags, tokenizer.text().len()) {
        ControlFlow::Continue(game) => game,
        ControlFlow::Break(game) => {
            skip_to_result(tokenizer);
            return Ok(game);
        }
    };
    let (at, result) = loop {
        match tokenizer.next()? {
            MovetextToken::Comment(comment) => game.comment(visitor, rules, comment),
            MovetextToken::Result { at, result } => break (at, result),
            MovetextToken::Word { text, .. } if is_judgement(text) => {}
            MovetextToken::Word { at, text } => match read_move(text, &game.position) {
                Ok(mv) => game.play(visitor, mv),
                Err(reason) => {
                    let Some(end) = illegal_end(tokenizer, tags_say_illegal) else {
                        return Err(MalformedGame { reason, offset: at });
                    };
                    game.note_illegal_end();
                    break end;
                }
            },
        }
    };
    if game.contradicts(result) {
        return Err(MalformedGame { reason: SkipReason::ContradictoryResult, offset: at });
    }
    Ok(game.end(visitor, result))
}

/// Goes on to the result after a move that is not legal. Returns the result and its place if that move was the last one
/// and lost the game, as a comment or the tags say: then the moves before it are a whole game.
fn illegal_end(tokenizer: &mut Tokenizer<'_>, tags_say_illegal: bool) -> Option<(usize, Option<GameResult>)> {
    let mut is_last = true;
    let mut is_illegal = tags_say_illegal;
    loop {
        match tokenizer.next().ok()? {
            MovetextToken::Comment(comment) => is_illegal |= says_illegal(comment),
            MovetextToken::Word { text, .. } => is_last &= is_judgement(text),
            MovetextToken::Result { at, result } => return (is_last && is_illegal).then_some((at, result)),
        }
    }
}

fn skip_to_result(tokenizer: &mut Tokenizer<'_>) {
    while let Ok(token) = tokenizer.next() {
        if matches!(token, MovetextToken::Result { .. }) {
            return;
        }
    }
}
