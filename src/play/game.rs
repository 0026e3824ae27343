//! A finished game, its line in the journal, and its PGN as matches write it.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use shakmaty::{Chess, Move, Position};

use crate::chess::{legal_move, start_fen, uci_move};
use crate::data::{Eval, GameResult, PgnWriter};
use crate::json;
use crate::pipeline::uci::{EngineFault, UciError};
use crate::units::Centipawn;

/// A finished game.
#[derive(Clone, Debug, PartialEq)]
pub struct PlayedGame {
    /// Number of the game in its match or generation.
    pub number: u64,
    /// The players' numbers.
    pub white: usize,
    pub black: usize,
    pub start: Chess,
    pub moves: Vec<GameMove>,
    /// White's view.
    pub result: GameResult,
    pub termination: Termination,
    /// With [`Termination::Forfeit`].
    pub forfeit: Option<Forfeit>,
}

/// The fault by which an engine lost a game by forfeit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Forfeit {
    pub reason: EngineFault,
    /// What happened, on one line: "answered …", "ended …".
    pub message: String,
}

impl Forfeit {
    /// `None` for an error that is not the engine's.
    pub(super) fn of(error: &UciError) -> Option<Forfeit> {
        Some(Forfeit { reason: error.fault()?, message: error.brief() })
    }
}

/// A move of a game, and the search that chose it.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct GameMove {
    pub mv: Move,
    /// `None` for moves of the opening.
    pub search: Option<SearchInfo>,
}

/// A search of the position before a move, as the player reported it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SearchInfo {
    /// The best move; the move played is another one where random moves are mixed in.
    pub best: Move,
    /// The mover's view; `None` if it gave no score.
    pub eval: Option<Eval>,
    pub depth: u32,
    pub nodes: u64,
    pub time: Duration,
}

/// Why a game ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Termination {
    /// Mate, stalemate, repetition, fifty moves, insufficient material.
    Rules,
    Adjudication,
    /// A player exceeded its time.
    Time,
    /// An engine ended, did not answer, or answered with no legal move.
    Forfeit,
    /// The opening's score lies beyond the bound: no move was played after it.
    Opening,
}

impl Termination {
    /// The ends of a match's games.
    pub(super) const ALL: [Termination; 4] =
        [Termination::Rules, Termination::Adjudication, Termination::Time, Termination::Forfeit];
}

/// A game in the journal, as [`PlayedGame::to_journal`] describes it.
#[derive(Serialize, Deserialize)]
struct JournalLine {
    game: u64,
    white: usize,
    black: usize,
    #[serde(rename = "fen", default, with = "start_fen", skip_serializing_if = "start_fen::is_initial")]
    start: Chess,
    result: GameResult,
    termination: Termination,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    forfeit: Option<Forfeit>,
    moves: String,
}

/// The fields of a journal line that counts need.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct GameSummary {
    pub game: u64,
    pub white: usize,
    pub black: usize,
    /// White's view.
    pub result: GameResult,
    pub termination: Termination,
    #[serde(default)]
    pub forfeit: Option<Forfeit>,
    #[serde(rename = "moves", deserialize_with = "count_moves")]
    pub counts: GameLength,
}

/// The length of a game in moves and searches.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct GameLength {
    /// Moves, the opening's included.
    pub plies: u32,
    /// Positions that were searched.
    pub positions: u32,
}

/// Counts the words of a journal's moves, as [`PlayedGame::to_journal`] describes them.
fn count_moves<'de, D: Deserializer<'de>>(moves: D) -> Result<GameLength, D::Error> {
    let moves = String::deserialize(moves)?;
    let count = |letter: char| moves.matches(letter).count() as u32;
    let plies = if moves.is_empty() { 0 } else { count(' ') + 1 };
    Ok(GameLength { plies, positions: count('@') })
}

impl GameSummary {
    pub(super) fn parse(line: &str) -> Result<GameSummary, String> {
        json::from_text(line).map_err(|error| error.to_string())
    }
}

impl PlayedGame {
    /// The game's line in a journal, without the checksum that the journal adds. `moves` has one word per move: the
    /// move in UCI notation and, where its position was searched, `@score/depth/nodes/microseconds` (score from the
    /// mover's view: centipawns, or `#` and moves to mate, or `?`), then `>` and the best move if another one was
    /// played.
    ///
    /// # Errors
    /// Never: its fields all have a JSON form.
    pub fn to_journal(&self) -> serde_json::Result<String> {
        let words: Vec<String> = self.moves.iter().map(word).collect();
        json::to_text(&JournalLine {
            game: self.number,
            white: self.white,
            black: self.black,
            start: self.start.clone(),
            result: self.result,
            termination: self.termination,
            forfeit: self.forfeit.clone(),
            moves: words.join(" "),
        })
    }

    /// Reads what [`PlayedGame::to_journal`] wrote. The players' numbers are not checked.
    ///
    /// # Errors
    /// When the line is not such JSON, or a word is no legal move of its position.
    pub fn from_journal(line: &str) -> Result<PlayedGame, String> {
        let JournalLine { game, white, black, start, result, termination, forfeit, moves } =
            json::from_text(line).map_err(|error| error.to_string())?;
        let mut position = start.clone();
        let mut played = Vec::new();
        for word in moves.split_ascii_whitespace() {
            let found = parse_word(word, &position).ok_or_else(|| format!("{word:?} is no move of game {game}"))?;
            position.play_unchecked(found.mv);
            played.push(found);
        }
        Ok(PlayedGame { number: game, white, black, start, moves: played, result, termination, forfeit })
    }

    /// The game as its line in a journal is counted.
    #[must_use]
    pub fn summary(&self) -> GameSummary {
        let positions = self.moves.iter().filter(|played| played.search.is_some()).count() as u32;
        GameSummary {
            game: self.number,
            white: self.white,
            black: self.black,
            result: self.result,
            termination: self.termination,
            forfeit: self.forfeit.clone(),
            counts: GameLength { plies: self.moves.len() as u32, positions },
        }
    }

    /// The player that lost on time or by forfeit; `None` if the game ended otherwise.
    pub(super) fn defaulter(&self) -> Option<usize> {
        let loser = if self.result == GameResult::Loss { self.white } else { self.black };
        matches!(self.termination, Termination::Time | Termination::Forfeit).then_some(loser)
    }

    /// Whether a player chose a move of the game itself.
    pub(super) fn has_move_of(&self, player: usize) -> bool {
        let mut turn = self.start.turn();
        self.moves.iter().any(|played| {
            let mover = turn.fold_wb(self.white, self.black);
            turn = turn.other();
            mover == player && played.search.is_some()
        })
    }

    /// The value of the PGN tag Termination, from the PGN standard.
    fn termination_tag(&self) -> &'static str {
        match (self.termination, &self.forfeit) {
            (Termination::Rules, _) => "normal",
            (Termination::Adjudication, _) => "adjudication",
            (Termination::Time, _) => "time forfeit",
            (Termination::Forfeit, Some(Forfeit { reason: EngineFault::Nonsense, .. })) => "rules infraction",
            (Termination::Forfeit, _) => "abandoned",
            (Termination::Opening, _) => "unterminated",
        }
    }

    /// The game as PGN. The round is the number of the pair, from 1; comments are `{+0.31/9 0.007s}`: the mover's score
    /// in pawns (`+M9`: mate in nine plies, as cutechess and fastchess write it), the depth and the time. The last
    /// comment of a game lost by forfeit says what happened.
    ///
    /// # Panics
    /// When `names` lacks one of the game's players.
    #[must_use]
    pub fn pgn(&self, names: &[String]) -> String {
        let mut pgn = PgnWriter::new();
        pgn.tag("Event", "fsbench match");
        pgn.tag("Site", "?");
        pgn.tag("Date", "????.??.??");
        pgn.tag("Round", &(self.number / 2 + 1).to_string());
        pgn.tag("White", &names[self.white]);
        pgn.tag("Black", &names[self.black]);
        pgn.tag("Result", self.result.pgn());
        pgn.start_tags(&self.start);
        pgn.tag("PlyCount", &self.moves.len().to_string());
        pgn.tag("Termination", self.termination_tag());
        pgn.begin_moves(&self.start);
        for GameMove { mv, search } in &self.moves {
            pgn.play(*mv);
            if let Some(SearchInfo { eval, depth, time, .. }) = search {
                let seconds = time.as_secs_f64();
                match eval {
                    Some(eval) => pgn.comment(&format!("{}/{depth} {seconds:.3}s", pawns(*eval))),
                    None => pgn.comment(&format!("{seconds:.3}s")),
                }
            }
        }
        if let (Some(player), Some(Forfeit { message, .. })) = (self.defaulter(), &self.forfeit) {
            let text = format!("{} forfeits the game: it {message}", names[player]);
            pgn.comment(&text.replace(['{', '}'], "").replace(char::is_control, " "));
        }
        pgn.finish(self.result)
    }
}

fn pawns(eval: Eval) -> String {
    match eval {
        Eval::Score(Centipawn(score)) => format!("{:+.2}", f64::from(score) / 100.0),
        // The mating side moves first and last; the mated side moves first, but not last.
        Eval::Mate(moves) if moves > 0 => format!("+M{}", 2 * i64::from(moves) - 1),
        Eval::Mate(moves) => format!("-M{}", -2 * i64::from(moves)),
    }
}

fn word(played: &GameMove) -> String {
    let mut text = uci_move(played.mv);
    if let Some(SearchInfo { best, eval, depth, nodes, time }) = played.search {
        let score = eval.map_or_else(|| "?".into(), Eval::to_word);
        text += &format!("@{score}/{depth}/{nodes}/{}", time.as_micros());
        if best != played.mv {
            text += &format!(">{}", uci_move(best));
        }
    }
    text
}

fn parse_word(word: &str, position: &Chess) -> Option<GameMove> {
    let (mv, search) = word.split_once('@').map_or((word, None), |(mv, search)| (mv, Some(search)));
    let mv = legal_move(mv, position)?;
    let Some(search) = search else { return Some(GameMove { mv, search: None }) };
    let (search, best) = match search.split_once('>') {
        Some((search, best)) => (search, legal_move(best, position)?),
        None => (search, mv),
    };
    let mut fields = search.split('/');
    let eval = match fields.next()? {
        "?" => None,
        score => Some(Eval::from_word(score)?),
    };
    let depth = fields.next()?.parse().ok()?;
    let nodes = fields.next()?.parse().ok()?;
    let time = Duration::from_micros(fields.next()?.parse().ok()?);
    let search = SearchInfo { best, eval, depth, nodes, time };
    fields.next().is_none().then_some(GameMove { mv, search: Some(search) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = concat!(
        r#"{"game":5,"white":1,"black":0,"fen":"rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 2","#,
        r#""result":"win","termination":"adjudication","moves":"b8c6 g1f3@31/9/4096/7250 g8f6@#-5/7/100/80>d7d5 f1c4@?/0/5/9"}"#
    );

    #[test]
    fn journal_lines_round_trip() {
        let game = PlayedGame::from_journal(LINE).expect("a game");
        assert_eq!(game.to_journal().expect("JSON"), LINE);
        let summary = GameSummary::parse(LINE).expect("a game");
        assert_eq!((summary.game, summary.white), (5, 1));
        assert_eq!(summary.counts, GameLength { plies: 4, positions: 3 });
        assert_eq!(summary, game.summary());
        let check = |from: &str, to: &str, message: &str| {
            let error = PlayedGame::from_journal(&LINE.replace(from, to)).expect_err("damaged");
            assert!(error.contains(message), "{error}");
        };
        check("b8c6", "b8b6", "\"b8b6\" is no move of game 5");
        check("@31/9", "@31", "is no move of game 5");
        check(">d7d5", ">d7d4", "is no move of game 5");
        check("win", "won", "unknown variant");
    }

    /// A game that White, player 1, loses by forfeit.
    #[test]
    fn forfeits_round_trip_and_have_a_comment() {
        let check = |reason: &str, tag: &str| {
            let forfeit = format!(r#""forfeit","forfeit":{{"reason":"{reason}","message":"answered {{x}}\tnow"}}"#);
            let line = LINE.replace(r#""adjudication""#, &forfeit).replace(r#""win""#, r#""loss""#);
            let game = PlayedGame::from_journal(&line).expect("a game");
            assert_eq!(game.to_journal().expect("JSON"), line);
            assert_eq!((game.defaulter(), game.has_move_of(0), game.has_move_of(1)), (Some(1), true, true));
            let pgn = game.pgn(&["A".to_owned(), "B".to_owned()]);
            assert!(pgn.contains(&format!("[Termination \"{tag}\"]")), "{pgn}");
            assert!(pgn.ends_with("{B forfeits the game: it answered x now} 0-1\n\n"), "{pgn}");
        };
        check("nonsense", "rules infraction");
        check("ended", "abandoned");
        check("silent", "abandoned");
        assert_eq!(PlayedGame::from_journal(LINE).expect("a game").defaulter(), None);
    }

    #[test]
    fn pgn_has_pairs_scores_and_the_start() {
        let names = ["A \"x\"".to_owned(), "B".to_owned()];
        let expected = "[Event \"fsbench match\"]\n[Site \"?\"]\n[Date \"????.??.??\"]\n[Round \"3\"]\n[White \"B\"]\n\
            [Black \"A \\\"x\\\"\"]\n[Result \"1-0\"]\n[SetUp \"1\"]\n\
            [FEN \"rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 2\"]\n[PlyCount \"4\"]\n\
            [Termination \"adjudication\"]\n\n2... Nc6 3. Nf3 {+0.31/9 0.007s} Nf6 {-M10/7 0.000s} 4. Bc4 {0.000s} \
            1-0\n\n";
        assert_eq!(PlayedGame::from_journal(LINE).expect("a game").pgn(&names), expected);
    }
}
