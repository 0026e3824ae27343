//! A finished game, its entry in the journal, and its output as PGN or records.

use serde::{Deserialize, Serialize};
use shakmaty::{Chess, Move, Position};

use crate::chess::{legal_move, start_fen, uci_move};
use crate::data::{Eval, GameResult, PgnWriter, Record, RecordError, Sample, first_ply};
use crate::pipeline::uci::{Answer, EngineFault};
use crate::units::{self, Centipawn};

/// A move and the search of the position before it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PlayedPly {
    /// `None` for the last search of an adjudicated game.
    pub mv: Option<Move>,
    pub search: Option<Answer>,
}

/// A finished game.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedGame {
    pub number: u32,
    /// The players, by engine number.
    pub white: usize,
    pub black: usize,
    pub start: Chess,
    pub plies: Vec<PlayedPly>,
    /// White's view.
    pub result: GameResult,
}

/// A game in the journal. `line` has one word per ply: the move in UCI notation; after it, where the position was
/// searched, `@` and the score (side to move's view: centipawns, or `#` and moves to mate); and, where the move played
/// is not the engine's best move, `>` and the best move. The move `-` stands for a search after which the game was
/// adjudicated.
#[derive(Serialize, Deserialize)]
struct JournalEntry {
    number: u32,
    white: usize,
    black: usize,
    #[serde(rename = "fen", default, with = "start_fen", skip_serializing_if = "start_fen::is_initial")]
    start: Chess,
    result: GameResult,
    line: String,
}

/// What a line of the journal is about; the moves of a finished game are not checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntrySummary {
    pub number: u32,
    /// Why the game was dropped; `None` for a finished game.
    pub dropped: Option<EngineFault>,
}

impl EntrySummary {
    /// The journal's line for a dropped game.
    pub fn to_entry(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }

    pub fn parse(entry: &str) -> Result<EntrySummary, String> {
        let summary: EntrySummary = serde_json::from_str(entry).map_err(|error| error.to_string())?;
        if summary.dropped.is_none() {
            serde_json::from_str::<JournalEntry>(entry).map_err(|error| error.to_string())?;
        }
        Ok(summary)
    }
}

impl FinishedGame {
    /// Number of moves played.
    pub fn move_count(&self) -> usize {
        self.plies.iter().filter(|ply| ply.mv.is_some()).count()
    }

    pub fn to_entry(&self) -> serde_json::Result<String> {
        let words: Vec<String> = self.plies.iter().map(ply_word).collect();
        serde_json::to_string(&JournalEntry {
            number: self.number,
            white: self.white,
            black: self.black,
            start: self.start.clone(),
            result: self.result,
            line: words.join(" "),
        })
    }

    pub fn from_entry(entry: &str) -> Result<FinishedGame, String> {
        let JournalEntry { number, white, black, start, result, line } =
            serde_json::from_str(entry).map_err(|error| error.to_string())?;
        let mut position = start.clone();
        let mut plies = Vec::new();
        for word in line.split_ascii_whitespace() {
            let ply = parse_ply_word(word, &position).ok_or_else(|| format!("{word:?} is not a ply of this game"))?;
            if let Some(mv) = ply.mv {
                position.play_unchecked(mv);
            }
            plies.push(ply);
        }
        Ok(FinishedGame { number, white, black, start, plies, result })
    }

    /// The game as PGN. The comment after a move holds the score of the position after it, White's view. `names` are
    /// the players' names, by number; `None` where one engine plays itself.
    pub fn pgn(&self, names: Option<&[String]>) -> String {
        let mut pgn = PgnWriter::new();
        pgn.tag("Event", "Self-play");
        pgn.tag("Round", &(u64::from(self.number) + 1).to_string());
        if let Some(names) = names {
            pgn.tag("White", &names[self.white]);
            pgn.tag("Black", &names[self.black]);
        }
        pgn.tag("Result", self.result.pgn());
        pgn.start_tags(&self.start);
        pgn.begin_moves(&self.start);
        let mut mover = self.start.turn();
        for (ply, played) in self.plies.iter().enumerate() {
            let Some(mv) = played.mv else { break };
            pgn.play(mv);
            if let Some(next) = self.plies.get(ply + 1).and_then(|next| next.search) {
                // The next search's score is the opponent's view.
                match mover.fold_wb(next.eval.reversed(), next.eval) {
                    Eval::Score(Centipawn(score)) => {
                        pgn.comment(&format!(" [%eval {:.2}] ", f64::from(score) / 100.0));
                    }
                    Eval::Mate(moves) => pgn.comment(&format!(" [%eval #{moves}] ")),
                }
                pgn.repeat_number();
            }
            mover = mover.other();
        }
        pgn.finish(self.result)
    }
}

/// A record for each searched position, in order: the score in centipawns, the engine's best move (not always the move
/// played) and the game's result.
///
/// # Errors
/// When there are more than 32 pieces on the board.
pub fn samples_of(game: &FinishedGame) -> Result<Vec<Record>, RecordError> {
    let mut position = game.start.clone();
    let mut records = Vec::with_capacity(game.plies.len());
    let mut ply = first_ply(&game.start).0;
    for played in &game.plies {
        if let Some(Answer { best, eval }) = played.search {
            let turn = position.turn();
            records.push(Record::pack(&Sample {
                position: position.clone(),
                game: game.number,
                ply: units::Ply(ply),
                mv: Some(best),
                score: Some(eval.centipawns()),
                result: Some(turn.fold_wb(game.result, game.result.reversed())),
            })?);
        }
        if let Some(mv) = played.mv {
            position.play_unchecked(mv);
            ply = ply.saturating_add(1);
        }
    }
    Ok(records)
}

/// A ply as a word of [`JournalEntry`].
fn ply_word(ply: &PlayedPly) -> String {
    let mut text = ply.mv.map_or_else(|| "-".to_owned(), uci_move);
    if let Some(Answer { best, eval }) = ply.search {
        text = text + "@" + &eval.to_word();
        if ply.mv != Some(best) {
            text = text + ">" + &uci_move(best);
        }
    }
    text
}

fn parse_ply_word(word: &str, position: &Chess) -> Option<PlayedPly> {
    let (played, search) = word.split_once('@').map_or((word, None), |(played, search)| (played, Some(search)));
    let mv = if played == "-" { None } else { Some(legal_move(played, position)?) };
    let Some(search) = search else { return Some(PlayedPly { mv, search: None }) };
    let (score, best) = search.split_once('>').map_or((search, None), |(score, best)| (score, Some(best)));
    let eval = Eval::from_word(score)?;
    let best = best.map_or(mv, |best| legal_move(best, position))?;
    Some(PlayedPly { mv, search: Some(Answer { best, eval }) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A game from a position with Black to move: searched, random, adjudicated.
    fn game() -> FinishedGame {
        let entry = r#"{"number":3,"white":1,"black":0,"fen":"rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 2",
            "result":"win","line":"g8f6@-12 d1h5@#-3>b1c3 f6h5@900 b1c3 -@-7>d7d6"}"#;
        FinishedGame::from_entry(entry).unwrap()
    }

    #[test]
    fn entries_round_trip() {
        let game = game();
        assert_eq!(FinishedGame::from_entry(&game.to_entry().unwrap()).unwrap(), game);
        let summary = EntrySummary { number: 3, dropped: None };
        assert_eq!(EntrySummary::parse(&game.to_entry().unwrap()), Ok(summary));
        let dropped = EntrySummary { number: 4, dropped: Some(EngineFault::Silent) };
        assert_eq!(dropped.to_entry().unwrap(), r#"{"number":4,"dropped":"silent"}"#);
        assert_eq!(EntrySummary::parse(&dropped.to_entry().unwrap()), Ok(dropped));
        assert!(EntrySummary::parse(r#"{"number":4}"#).unwrap_err().contains("missing field"));
        assert_eq!((game.move_count(), game.plies.len()), (4, 5));
        let check = |line: &str, message: &str| {
            let entry = format!(r#"{{"number":0,"white":0,"black":0,"result":"draw","line":"{line}"}}"#);
            assert!(FinishedGame::from_entry(&entry).unwrap_err().contains(message), "{line}");
        };
        check("e2e5", "\"e2e5\" is not a ply");
        check("e2e4@x", "not a ply");
        check("e2e4@3>e2e5", "not a ply");
        check("-@3", "not a ply");
    }

    #[test]
    fn pgn_has_scores_names_and_the_start() {
        let names = ["A \"x\"".to_owned(), "B".to_owned()];
        let expected = "[Event \"Self-play\"]\n[Round \"4\"]\n[White \"B\"]\n[Black \"A \\\"x\\\"\"]\n[Result \"1-0\"]\n\
            [SetUp \"1\"]\n[FEN \"rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 2\"]\n\n\
            2... Nf6 { [%eval #-3] } 3. Qh5 { [%eval -9.00] } 3... Nxh5 4. Nc3 { [%eval 0.07] } 1-0\n\n";
        assert_eq!(game().pgn(Some(&names)), expected);
    }

    #[test]
    fn every_search_is_a_sample() {
        let samples: Vec<_> = samples_of(&game()).unwrap().iter().map(|record| record.unpack().unwrap()).collect();
        let facts: Vec<_> = samples
            .iter()
            .map(|sample| (sample.ply.0, uci_move(sample.mv.unwrap()), sample.score.unwrap(), sample.result.unwrap()))
            .collect();
        let (win, loss) = (GameResult::Win, GameResult::Loss);
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
