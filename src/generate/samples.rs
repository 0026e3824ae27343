//! A generated game in a file: PGN with scores, or a sample for each search.

use shakmaty::Position;

use crate::data::{Eval, PgnWriter, Record, RecordError, Sample, first_ply};
use crate::play::PlayedGame;
use crate::units::{Centipawn, Ply};

/// The game as PGN. The comment before a move, the first one included, holds the score of the position, White's view.
/// `names` are the players' names, by number; `None` where one engine plays itself.
pub fn pgn_of(game: &PlayedGame, names: Option<&[String]>) -> String {
    let mut pgn = PgnWriter::new();
    pgn.tag("Event", "Self-play");
    pgn.tag("Round", &(game.number + 1).to_string());
    if let Some(names) = names {
        pgn.tag("White", &names[game.white]);
        pgn.tag("Black", &names[game.black]);
    }
    pgn.tag("Result", game.result.pgn());
    pgn.start_tags(&game.start);
    pgn.begin_moves(&game.start);
    let mut mover = game.start.turn();
    for played in &game.moves {
        if let Some(eval) = played.search.and_then(|search| search.eval) {
            match mover.fold_wb(eval, eval.reversed()) {
                Eval::Score(Centipawn(score)) => pgn.comment(&format!(" [%eval {:.2}] ", f64::from(score) / 100.0)),
                Eval::Mate(moves) => pgn.comment(&format!(" [%eval #{moves}] ")),
            }
            pgn.repeat_number();
        }
        pgn.play(played.mv);
        mover = mover.other();
    }
    pgn.finish(game.result)
}

/// A record for each searched position, in order: the score in centipawns, the engine's best move (not always the move
/// played) and the game's result.
///
/// # Errors
/// When there are more than 32 pieces on the board.
pub fn samples_of(game: &PlayedGame) -> Result<Vec<Record>, RecordError> {
    let mut position = game.start.clone();
    let mut records = Vec::with_capacity(game.moves.len());
    let mut ply = first_ply(&game.start).0;
    for played in &game.moves {
        if let Some(search) = played.search {
            let turn = position.turn();
            records.push(Record::pack(&Sample {
                position: position.clone(),
                game: game.number as u32,
                ply: Ply(ply),
                mv: Some(search.best),
                score: search.eval.map(Eval::centipawns),
                result: Some(turn.fold_wb(game.result, game.result.reversed())),
            })?);
        }
        position.play_unchecked(played.mv);
        ply = ply.saturating_add(1);
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::uci_move;
    use crate::data::GameResult;

    /// A game from a position with Black to move: searched, random, adjudicated.
    fn game() -> PlayedGame {
        let line = r#"{"game":3,"white":1,"black":0,"fen":"rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 2",
            "result":"win","termination":"adjudication",
            "moves":"g8f6@-12/1/2/3 d1h5@#-3/1/2/3>b1c3 f6h5@900/1/2/3 b1c3 d7d6@-7/1/2/3"}"#;
        PlayedGame::from_journal(line).unwrap()
    }

    #[test]
    fn pgn_has_scores_names_and_the_start() {
        let names = ["A \"x\"".to_owned(), "B".to_owned()];
        let expected = "[Event \"Self-play\"]\n[Round \"4\"]\n[White \"B\"]\n[Black \"A \\\"x\\\"\"]\n\
            [Result \"1-0\"]\n\
            [SetUp \"1\"]\n[FEN \"rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 2\"]\n\n\
            { [%eval 0.12] } 2... Nf6 { [%eval #-3] } 3. Qh5 { [%eval -9.00] } 3... Nxh5 4. Nc3 { [%eval 0.07] } \
            4... d6 1-0\n\n";
        assert_eq!(pgn_of(&game(), Some(&names)), expected);
    }

    #[test]
    fn every_search_is_a_sample() {
        let samples: Vec<_> = samples_of(&game()).unwrap().iter().map(|record| record.unpack().unwrap()).collect();
        let facts: Vec<_> = samples
            .iter()
            .map(|sample| (sample.ply.0, uci_move(sample.mv.unwrap()), sample.score.unwrap(), sample.result.unwrap()))
            .collect();
        let win = GameResult::Win;
        let loss = GameResult::Loss;
        let expected = [
            (3, "g8f6".to_owned(), -12, loss),
            (4, "b1c3".to_owned(), -31_994, win),
            (5, "f6h5".to_owned(), 900, loss),
            (7, "d7d6".to_owned(), -7, loss),
        ];
        assert_eq!(facts, expected);
        assert!(samples.iter().all(|sample| sample.game == 3));
    }
}
