//! A finished game, its entry in the journal, and its output as PGN or records.

use std::fmt::Write;

use serde::{Deserialize, Serialize};
use shakmaty::fen::Fen;
use shakmaty::san::SanPlus;
use shakmaty::uci::UciMove;
use shakmaty::{CastlingMode, Chess, EnPassantMode, Position};

use super::game_state::PlayedPly;
use crate::data::{Eval, GameResult, Record, RecordError, Sample, first_ply};
use crate::pipeline::uci::{Answer, uci_move};
use crate::units::{self, Centipawn};

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
    /// `None` for the initial position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fen: Option<String>,
    result: GameResult,
    line: String,
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
            fen: self.fen(),
            result: self.result,
            line: words.join(" "),
        })
    }

    /// The game's number; the moves are not checked.
    pub fn number_of(entry: &str) -> Result<u32, String> {
        serde_json::from_str::<JournalEntry>(entry).map(|entry| entry.number).map_err(|error| error.to_string())
    }

    pub fn from_entry(entry: &str) -> Result<FinishedGame, String> {
        let JournalEntry { number, white, black, fen, result, line } =
            serde_json::from_str(entry).map_err(|error| error.to_string())?;
        let start = match fen {
            None => Chess::default(),
            Some(fen) => {
                let fen: Fen = fen.parse().map_err(|error| format!("{fen:?}: {error}"))?;
                fen.into_position(CastlingMode::Standard).map_err(|error| error.to_string())?
            }
        };
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

    fn fen(&self) -> Option<String> {
        let is_initial = self.start == Chess::default();
        (!is_initial).then(|| Fen::from_position(&self.start, EnPassantMode::Legal).to_string())
    }

    /// The game as PGN. The comment after a move holds the score of the position after it, White's view. `names` are
    /// the players' names, by number; `None` where one engine plays itself.
    pub fn pgn(&self, names: Option<&[String]>) -> String {
        let mut text = String::with_capacity(256 + self.plies.len() * 24);
        let mut tag = |name: &str, value: &str| {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"");
            // Writing to a string cannot fail.
            let _ = writeln!(text, "[{name} \"{value}\"]");
        };
        let result = result_text(self.result);
        tag("Event", "Self-play");
        tag("Round", &(u64::from(self.number) + 1).to_string());
        if let Some(names) = names {
            tag("White", &names[self.white]);
            tag("Black", &names[self.black]);
        }
        tag("Result", result);
        if let Some(fen) = self.fen() {
            tag("SetUp", "1");
            tag("FEN", &fen);
        }
        text.push('\n');
        self.movetext(&mut text);
        text + result + "\n\n"
    }

    fn movetext(&self, text: &mut String) {
        let mut position = self.start.clone();
        let mut number_is_known = false;
        for (ply, played) in self.plies.iter().enumerate() {
            let Some(mv) = played.mv else { break };
            let (turn, number) = (position.turn(), position.fullmoves());
            let _ = match (turn.is_white(), number_is_known) {
                (true, _) => write!(text, "{number}. "),
                (false, true) => Ok(()),
                (false, false) => write!(text, "{number}... "),
            };
            let _ = write!(text, "{} ", SanPlus::from_move_and_play_unchecked(&mut position, mv));
            let next = self.plies.get(ply + 1).and_then(|next| next.search);
            let eval = next.map(|search| turn.fold_wb(search.eval.reversed(), search.eval));
            let _ = match eval {
                Some(Eval::Score(Centipawn(score))) => write!(text, "{{ [%eval {:.2}] }} ", f64::from(score) / 100.0),
                Some(Eval::Mate(moves)) => write!(text, "{{ [%eval #{moves}] }} "),
                None => Ok(()),
            };
            // PGN repeats the number of Black's move after a comment.
            number_is_known = eval.is_none();
        }
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

/// The result in PGN notation, White's view.
pub fn result_text(result: GameResult) -> &'static str {
    match result {
        GameResult::Win => "1-0",
        GameResult::Draw => "1/2-1/2",
        GameResult::Loss => "0-1",
    }
}

/// A ply as a word of [`JournalEntry`].
fn ply_word(ply: &PlayedPly) -> String {
    let mut text = ply.mv.map_or_else(|| "-".to_owned(), uci_move);
    if let Some(Answer { best, eval }) = ply.search {
        // Writing to a string cannot fail.
        let _ = match eval {
            Eval::Score(Centipawn(score)) => write!(text, "@{score}"),
            Eval::Mate(moves) => write!(text, "@#{moves}"),
        };
        if ply.mv != Some(best) {
            let _ = write!(text, ">{}", uci_move(best));
        }
    }
    text
}

fn parse_ply_word(word: &str, position: &Chess) -> Option<PlayedPly> {
    let legal = |text: &str| text.parse::<UciMove>().ok()?.to_move(position).ok();
    let (played, search) = word.split_once('@').map_or((word, None), |(played, search)| (played, Some(search)));
    let mv = if played == "-" { None } else { Some(legal(played)?) };
    let Some(search) = search else { return Some(PlayedPly { mv, search: None }) };
    let (score, best) = search.split_once('>').map_or((search, None), |(score, best)| (score, Some(best)));
    let eval = match score.strip_prefix('#') {
        Some(moves) => Eval::Mate(moves.parse().ok()?),
        None => Eval::Score(Centipawn(score.parse().ok()?)),
    };
    let best = best.map_or(mv, legal)?;
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
        assert_eq!(FinishedGame::number_of(&game.to_entry().unwrap()), Ok(3));
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
