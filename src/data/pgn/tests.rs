//! Well-formed games are read, malformed ones are skipped with reason and offset, and never affect their neighbours.

use shakmaty::CastlingMode;
use shakmaty::uci::UciMove;

use super::games::GameCollector;
use super::splitter::Splitter;
use super::*;
use crate::chess::uci_move;
use crate::data::GameResult;
use crate::data::input::Input;
use crate::units::{Centipawn, Ply};

fn parsed(text: &str) -> Vec<Result<PgnGame, SkippedGame>> {
    let mut games = Vec::new();
    read_into(text.as_bytes(), 100, &mut games);
    games
}

/// Reads a text with both readers, which must agree.
fn read_into(text: &[u8], offset: u64, games: &mut Vec<Result<PgnGame, SkippedGame>>) {
    games.extend(parsed_with(text, offset, RULES).games);
}

const RULES: EvalRules = EvalRules { whole_numbers: WholeNumbers::Pawns, all_centipawns: false, view: None };

fn parsed_with(text: &[u8], offset: u64, rules: EvalRules) -> ParsedGames<PgnGame> {
    let mut parsed = ParsedGames::with_capacity(1);
    let mut by_tokens = ParsedGames::with_capacity(1);
    let text = GameText { rest: text, length: text.len(), offset };
    PgnParser::new(rules).parse(&GameCollector, text, &mut None, &mut parsed);
    PgnParser::new(rules).parse_tokens(&GameCollector, text.rest, offset, &mut by_tokens);
    assert_eq!(parsed.games, by_tokens.games, "{}", String::from_utf8_lossy(text.rest));
    assert_eq!(parsed.notes, by_tokens.notes, "{}", String::from_utf8_lossy(text.rest));
    parsed
}

fn only(text: &str) -> PgnGame {
    let mut games = parsed(text);
    assert_eq!(games.len(), 1, "{text}");
    games.remove(0).unwrap_or_else(|skipped| panic!("{text}: {skipped}"))
}

fn moves(game: &PgnGame) -> String {
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

/// Games with tags, usual and unusual, well-formed and malformed: both readers agree, and the fast one reads the usual
/// ones.
#[test]
fn the_fast_reader_reads_usual_games() {
    let check = |movetext: &str, fast: bool| {
        let text = format!("[Event \"x\"]\n[Result \"1-0\"]\n\n{movetext}\n\n");
        let game_text = GameText { rest: text.as_bytes(), length: text.len(), offset: 100 };
        let found = fast_reader::read(&GameCollector, RULES, game_text, &mut Reader::new(text.as_bytes()));
        let found = found.map(|game| game.output);
        assert_eq!(found.is_some(), fast, "{text}");
        let games = parsed(&text);
        assert!(found.is_none_or(|game| games == [Ok(game)]), "{text}");
    };
    check("1. e4 e5 2. Nf3 Nc6 3. Bc4 Bc5 4. O-O Nf6 1-0", true);
    check("1. e4 { [%eval 0.3] } 1... e5! { [%eval #-3] }\n2. Nf3?? 1-0", true);
    check("1.e4 e5 2.Nf3 *", true);
    check("1. e4 (1. d4) e5 1-0", false);
    check("1. e4 $1 e5 1-0", false);
    check("1. e4 e5 ; x\n1-0", false);
    check("1. e4 e5\n\n2. Nf3 1-0", false);
    check("1. e4 e5", false);
    check("1. e4 e5 1-0 1. d4 *", false);
    check("1. e4 xe5 e5 1-0", false);
    check("1. e4 12x e5 1-0", false);
    check("1. e4 e5x 1-0", false);
    check("1. e4 e5 2. Ke3 1-0", false);
    check("1. e4 { [%eval x] } e5 {+0.31/14 0.25s} 1-0", true);
    check("1. e4 e5 1-0 {Black resigns}", true);
    check("1. e4 e5 0-1", false);
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
    check("[Result \"*\"]\n\n1. e4 1-0", Some(GameResult::Win));
    check("[Result \"*\"]\n\n1. e4 1/2-1/2 {agreed}", Some(GameResult::Draw));
    check("[Result \"*\"]\n\n1. e4 *", None);
    check("[Result \"0.5-0.5\"]\n\n1. e4 *", Some(GameResult::Draw));
    check("[Result \"1/2\"]\n\n1. e4 *", Some(GameResult::Draw));
    check("[Result \" 1-0 \"]\n\n1. e4 *", Some(GameResult::Win));
    for draw in ["1/2-1/2", "1/2", "0.5-0.5", "0,5-0,5", "½-½"] {
        check(&format!("1. e4 e5 {draw}"), Some(GameResult::Draw));
        check(&format!("[Result \"{draw}\"]\n\n1. e4 e5 2. Nf3 {draw}\n"), Some(GameResult::Draw));
    }
    check("1. e4 1:0", Some(GameResult::Win));
    check("1. e4 0:1\n", Some(GameResult::Loss));
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
    check("[%eval #0]", None);
    check("[%eval\n0.35]", score(35));
    check("[%eval x]", None);
    assert_eq!(only("{[%eval 1]} 1. e4 *").moves[0].eval, None);
}

#[test]
fn mates_lie_beyond_scores() {
    let check = |eval: Eval, expected| assert_eq!(eval.centipawns(), expected, "{eval:?}");
    check(Eval::Score(Centipawn(-35)), -35);
    check(Eval::Score(Centipawn(40_000)), 30_000);
    check(Eval::Mate(1), 31_998);
    check(Eval::Mate(-3), -31_994);
    check(Eval::Mate(5_000), 30_002);
    check(Eval::Mate(i32::MIN), -30_002);
    check(Eval::Mate(i32::MIN).reversed(), 30_002);
    check(Eval::Score(Centipawn(i32::MIN)).reversed(), 30_000);
}

#[test]
fn starting_positions() {
    let game = only("[FEN \"4k3/8/8/8/8/8/4P3/4K3 b - - 3 20\"]\n\n20... Kd8 21. e4 *");
    assert_eq!(moves(&game), "e8d8 e2e4");
    assert_eq!(first_ply(&game.start), Ply(39));
    assert_eq!(first_ply(&only("1. e4 *").start), Ply(0));
}

#[test]
fn malformed_games_have_a_reason_and_an_offset() {
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
    check("1. e4 e5e.p.\n\n1. e4", SkipReason::Unfinished, 12, "");
    check("[Result \"1-0\"]\n\n1. e4 0-1 {x}", SkipReason::ContradictoryResult, 22, "0-1");
    check("[FEN x]\n\n1. e4 *", SkipReason::MalformedTag, 0, "[FEN");
    check("[Event \"x\"\n1. e4 *", SkipReason::MalformedTag, 0, "[Event");
    check("[1]\n\n1. e4 *", SkipReason::MalformedTag, 0, "[1]");
    assert_eq!(parsed("1. e4 *\n\n1. e4 e4\n2. d4 *\n\n1. d4 *").iter().flatten().count(), 2);
    assert_eq!(parsed("[Variant \"Atomic\"]\n\n1. e4 *\n\n1. d4 *").len(), 1);
    assert_eq!(parsed("[Result \"1-0\"]\n\n1. e4 0-1 {x}\n\n1. d4 *").iter().flatten().count(), 1);
    check("[Variant \"Atomic\"]\n\n1. e4 *", SkipReason::Variant, 0, "[Variant");
    // Chess960 needs a start position.
    check("[Variant \"Chess960\"]\n\n1. e4 *", SkipReason::Variant, 0, "[Variant");
    check("[Variant \"Chess960\"]\n[FEN \"no\"]\n\n1. e4 *", SkipReason::StartPosition, 21, "[FEN");
    check("[FEN \"8/8/8/8/8/8/8/8 w - - 0 1\"]\n[Variant \"Horde\"]\n\n1. e4 *", SkipReason::Variant, 34, "[Variant");
    check("[FEN \"no\"]\n\n1. e4 *", SkipReason::StartPosition, 0, "[FEN");
    check("[FEN \"8/8/8/8/8/8/8/8 w - - 0 1\"]\n\n1. e4 *", SkipReason::StartPosition, 0, "[FEN");
}

/// Games of Chess960 by their tag, in any order and spelling, or by their castling rights alone.
#[test]
fn games_of_chess960_are_read() {
    let start = "1r3kr1/pppppppp/8/8/8/8/PPPPPPPP/1R3KR1 w";
    let check = |rights: &str, variant: &str, text: &str, expected: &str| {
        let fen = format!("[FEN \"{start} {rights} - 0 1\"]\n");
        let variant = if variant.is_empty() { String::new() } else { format!("[Variant \"{variant}\"]\n") };
        for tags in [format!("{fen}{variant}"), format!("{variant}{fen}")] {
            let game = only(&format!("{tags}\n{text}"));
            let found: Vec<String> = game.moves.iter().map(|played| uci_move(played.mv)).collect();
            assert_eq!(found.join(" "), expected, "{tags}{text}");
        }
    };
    for variant in ["", "chess 960", "Chess960", "fischerandom", "Fischer Random", "FRC", "dfrc"] {
        for rights in ["KQkq", "GBgb"] {
            check(rights, variant, "1. O-O O-O-O *", "f1g1 f8b8");
        }
    }
    check("KQkq", "Standard", "1. 0-0-0 f8g8 2. g4 *", "f1b1 f8g8 g2g4");
    // A step next to the rook is a step.
    check("KQkq", "", "1. Ke1 Ke8 2. Kd1 {+0.31/14 0.25s} Kf8 1-0", "f1e1 f8e8 e1d1 e8f8");
}

#[test]
fn common_variants_of_the_notation_are_read() {
    let check = |text: &str, expected: &str| assert_eq!(moves(&only(text)), expected, "{text}");
    check("[Result \"1-0\"]\r\n\r\n1. e4 e5\r\n2. Nf3 1-0\r\n\r\n", "e2e4 e7e5 g1f3");
    check("\u{feff}[Result \"*\"]\n\n1.e4 e5$1$14 *", "e2e4 e7e5");
    check("% written by hand\n1. e4 {e5} 1... e5\n*", "e2e4 e7e5");
    check("[A \"\"]\n% between tags\n[B \"\"]\n\n% before moves\n1. e4 *", "e2e4");
    check("1. e4 Nf6 2. e5 d5 3. exd6 e.p. exd6 *", "e2e4 g8f6 e4e5 d7d5 e5d6 e7d6");
    check("1. e4 Nf6 2. e5 d5 3. exd6e.p. exd6 *", "e2e4 g8f6 e4e5 d7d5 e5d6 e7d6");
    check("1. d4 d5 2. Nc3 Nc6 3. Bf4 Bf5 4. Qd2 Qd7 5. 0-0-0+ 0-0-0 *", LONG_CASTLING);
    check("1. e4 e5 {[%csl Ga1]\n[%eval 0.1]} 2. Nf3 *", "e2e4 e7e5 g1f3");
    // pgn-reader alone would end the game at these empty lines.
    check("1. e4 e5\n\n2. Nf3 *", "e2e4 e7e5 g1f3");
    check("1. e4 e5 ; open\n\r\n\n\n% x\n\n2. Nf3 (2. d4\n\nd5) *", "e2e4 e7e5 g1f3");
    check("[A \"\"]\n\n{an introduction}\n\n1. e4\n\n1. ... e5 *", "e2e4 e7e5");
    // Unescaped quotes and backslashes, which python-chess accepts too.
    check("[FEN \"4k3/8/8/8/8/8/4P3/4K3 w - - 0 1;\"]\n\n1. e4 *", "e2e4");
    check("[fen \"4k3/8/8/8/4p3/8/4P3/4K3 w - e3 0 1\"]\n\n1. e3 *", "e2e3");
    // Tags that are not needed may be malformed.
    for tag in
        ["[Black+Elo \"x\"]", "[Black-Elo \"x\"]", "[Annotator Nobody]", "[White \"A\"", "[Grösse \"x\"]", "[Event]"]
    {
        check(&format!("[Event \"x\"]\n{tag}\n[Result \"1-0\"]\n\n1. e4 1-0"), "e2e4");
        check(&format!("{tag}\n[Event \"x\"]\n\n1. e4 1-0"), "e2e4");
    }
    check("[Annotator Nobody] 1. e4 *", "e2e4");
    // Old notations, judgements of the position, comments after the result.
    check("1. e2-e4 e7-e5 2. Ng1-f3 Nb8-c6 *", "e2e4 e7e5 g1f3 b8c6");
    check("e2e4 e7e5 g1f3 b8c6 f1b5 a7a6 b5a4 g8f6 e1g1 *", "e2e4 e7e5 g1f3 b8c6 f1b5 a7a6 b5a4 g8f6 e1g1");
    for promotion in ["axb8Q", "axb8=Q", "axb8(Q)", "axb8=(Q)", "axb8/Q", "axb8q+", "ab8Q"] {
        let moves = "a2a4 b7b5 a4b5 a7a6 b5a6 c7c6 a6a7 d7d6 a7b8q";
        check(&format!("1. a4 b5 2. axb5 a6 3. bxa6 c6 4. a7 d6 5. {promotion} 1-0"), moves);
    }
    check("1. e4 d5 2. ed5 Qd5 +- *", "e2e4 d7d5 e4d5 d8d5");
    check("1. e4 e5 2. Bc4 Nc6 3. Qh5 Nf6 4. Qxf7++ 1-0", "e2e4 e7e5 f1c4 b8c6 d1h5 g8f6 h5f7");
    check("1. e4 e5 1-0 {Black resigns} ; at once\n\n", "e2e4 e7e5");
    check("[Event \"x\"]\n\n1. e4\u{b}e5 1-0\n\u{c}\n\u{1a}", "e2e4 e7e5");
    check("[Event \"x\"]\n\n1. e4 e5 * {to be\n\ncontinued}\n", "e2e4 e7e5");
    check("[A \"the \"open\"\"]\n[B \"C:\\\"]\n[C \"a \\\"b\\\" \\\\\"] [D \"\"]\n[ E  \"\" ]\n\n1. e4 *", "e2e4");
    // Longer than pgn-reader's buffers.
    let long = "x".repeat(70_000);
    check(
        &format!("[A \"{long}\"]\n[B \"{long}\"]\n\n1. e4 {{{long}}} e5 ; {long}\n(({long})) 2. Nf3 *"),
        "e2e4 e7e5 g1f3",
    );
    let game = only(&format!("1. e4 {{{long}[%eval 0.5]{long}}} *"));
    assert_eq!(game.moves[0].eval, Some(Eval::Score(Centipawn(50))));
}

const LONG_CASTLING: &str = "d2d4 d7d5 b1c3 b8c6 c1f4 c8f5 d1d2 d8d7 e1c1 e8c8";

/// Unusual blanks and order are read as pgn-reader reads them.
#[test]
fn unusual_text_is_read_as_by_pgn_reader() {
    let check = |text: &str, expected: &str| assert_eq!(moves(&only(text)), expected, "{text}");
    check("[Result \"*\"][FEN \"4k3/8/8/8/8/8/4P3/4K3 w - -\"] 1. e4 *", "e2e4");
    check("1.e4!e5*", "e2e4 e7e5");
    check("1. e4 !e5$2 2. Nf3. *", "e2e4 e7e5 g1f3");
    // It skips variations without reading them, and evaluations in `;` comments.
    check("1. e4 (1. @#!x $ [%eval 12x] 1-0 }) e5 *", "e2e4 e7e5");
    assert_eq!(only("1. e4 ; [%eval 0.5]\n*").moves[0].eval, None);
    assert!(parsed("% nothing\n%\n").is_empty());
}

#[test]
fn text_that_pgn_reader_skips_is_garbage() {
    let check = |movetext: &str, bad: &str| {
        let text = format!("1. e4 {movetext} 1-0");
        let skipped = parsed(&text).remove(0).expect_err(&text);
        assert_eq!(skipped.reason, SkipReason::Garbage, "{text}");
        assert_eq!(skipped.offset, 100 + text.find(bad).unwrap() as u64, "{text}");
        assert!(skipped.text.starts_with(bad), "{text}: {}", skipped.text);
    };
    check("e5 2. Nf3Nc6 Nc6", "Nf3Nc6");
    check("e5 2. Nf3 Nc61-0", "Nc61-0");
    check("e5 2. Nf3 Nc6x", "Nc6x");
    check("e7--e5", "e7--e5");
    check("$", "$");
    check("$x e5", "$x");
    check("$1e5", "$1e5");
    check("1.. 1e5", "1e5");
    check("1-1", "1-1");
    check("½½", "½½");
    check("1-0x e5", "1-0x");
    check("0-1-0", "0-1-0");
    check("0-0x", "0-0x");
    check("} e5", "}");
    check("\n[e5", "[e5");
    check("\n\n[%x] e5", "[%x]");
    check("\n %x", "%x");
    check("\u{a0}e5", "\u{a0}e5");
    check("ee.p.", "ee.p.");
    check("e.p.e5", "e.p.e5");
}

#[test]
fn the_rest_of_a_game_is_not_a_game() {
    let check = |text: &str, offset: u64| {
        let games = parsed(text);
        assert_eq!(games.iter().flatten().count(), 0, "{text}");
        let skipped = games[0].clone().expect_err(text);
        assert_eq!((skipped.reason, skipped.offset), (SkipReason::Garbage, 100 + offset), "{text}");
    };
    check("2. Nf3 Nc6 *", 0);
    check("{cut off} 7. Nf3 Nc6 *", 10);
    check("1... Nf3 *", 0);
    check("1. e4 ) e5\n\n2. Nf3 *\n\n1-0", 6);
    check("1. e4 e5 0-0x\n\n{so} 2. Nf3\n\n*", 9);
}

#[test]
fn no_game_swallows_the_next() {
    const BROKEN: [&str; 16] = [
        "1. e4 e5",
        "1. e4 e5 2.",
        "1. e4 {[%eval 1",
        "1. e4 (1. d4",
        "(",
        "1. e4 )",
        "1. e4 @",
        "1. e4 e4 0-1",
        "1. e4 e4",
        "1. e4 {[%eval 0.1]} e9 1-0",
        "e4 ; e5",
        "1. e4 \u{fffd}\u{1}garbage",
        "1. e4 12x",
        "1. e4 Nf6Nf6",
        "2. e4 e5",
        "1. e4 1-0x",
    ];
    for broken in BROKEN {
        // Without tags only an empty line separates games; an unclosed comment swallows the text after it.
        let text = format!("1. d4 1-0\n\n{broken}\n\n1. c4 {} 0-1", if broken.contains('{') { "" } else { "{}" });
        let games = parsed(&text);
        let first = games.first().unwrap();
        let last = games.last().unwrap();
        assert_eq!((games.len(), games[1].is_err()), (3, true), "{text}: {games:?}");
        assert_eq!(moves(first.as_ref().unwrap()) + &moves(last.as_ref().unwrap()), "d2d4c2c4", "{text}");

        let tags = "[A \"\"]\n\n";
        let text = format!("{tags}1. d4 1-0\n\n{tags}{broken}\n{tags}1. c4 {{}} 0-1");
        let games = split(text.as_bytes());
        assert_eq!((games.len(), games[1].is_err()), (3, true), "{text}: {games:?}");
        assert_eq!(moves(games[2].as_ref().unwrap()), "c2c4", "{text}");
    }
    assert_eq!(parsed("1. e4 e4 * 1. d4 *").iter().flatten().count(), 1);
    assert_eq!(parsed("1. e4 e4 * 1-0").iter().flatten().count(), 0);
}

/// The games of a file; neither the batch size nor sharing readers between games matters.
fn split(text: &[u8]) -> Vec<Result<PgnGame, SkippedGame>> {
    let read = |batch: usize, shared: bool| {
        let mut splitter = Splitter::with_batch(Input::from_bytes(text.to_vec()), batch);
        let mut games = Vec::new();
        let mut parser = PgnParser::new(RULES);
        loop {
            let texts = splitter.next_texts();
            if texts.is_empty() {
                return games;
            }
            let mut reader = None;
            for game in 0..texts.len() {
                let text = texts.text(game);
                if shared {
                    let mut parsed = ParsedGames::with_capacity(1);
                    parser.parse(&GameCollector, text, &mut reader, &mut parsed);
                    games.extend(parsed.games);
                } else {
                    read_into(text.bytes(), text.offset, &mut games);
                }
            }
        }
    };
    let games = read(64, false);
    for (batch, shared) in [(1 << 20, false), (64, true), (1 << 20, true)] {
        assert_eq!(read(batch, shared), games, "{}", String::from_utf8_lossy(text));
    }
    games
}

const LINE: [&str; 8] = ["e4", "e5", "Nf3", "Nc6", "Bc4", "Bc5", "0-0", "Nf6"];
const DECORATIONS: [&str; 14] = [
    "",
    "1.",
    "7...",
    "$1",
    "!?",
    "{c}",
    "{\n\n[x}",
    "(d4 (x) {)})",
    "(\n\n12x)",
    "; (x\n",
    "\n% {x\n",
    "\n\n",
    "\r\n",
    ".",
];
const GARBAGE: [&str; 12] = ["@x", "12x", ")", "}", "$", "e4Nf3", "Ke", "[x", "½½", "e4--", "0-0-1", "1-0x"];

proptest::proptest! {
        /// Arbitrary bytes cause no panic, and offsets lie inside the text.
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200), cut in 0usize..60) {
        let mut text = b"[Result \"1-0\"]\n\n1. e4 {[%eval 0.2]} e5 2. Nf3 (2. f4) Nc6 1-0\n"[..cut].to_vec();
        text.extend(bytes);
        let mut games = Vec::new();
        read_into(&text, 0, &mut games);
        for skipped in games.into_iter().filter_map(Result::err) {
            assert!(skipped.offset <= text.len() as u64);
        }
    }

        /// Decorations between moves are skipped, and garbage is found wherever it stands.
    #[test]
    fn decorated(
        decorations in proptest::collection::vec(0..DECORATIONS.len(), 8 * LINE.len()),
        garbage in (0..LINE.len(), 0..GARBAGE.len()),
    ) {
        let mut good = String::new();
        let mut bad = String::new();
        let mut at = 0;
        for (ply, decorations) in decorations.chunks(8).enumerate() {
            let decorations: Vec<_> = decorations.iter().map(|index| DECORATIONS[*index]).collect();
                        // After an empty line, `1.` would begin another game.
            let between = format!(" {} ", decorations.join(" ")).replace("1.", if ply > 0 { "2." } else { "1." });
            for text in [&mut good, &mut bad] {
                text.push_str(if ply == 0 { "1. " } else { &between });
            }
            if ply == garbage.0 {
                at = bad.len();
                bad += GARBAGE[garbage.1];
                bad += &between;
            }
            for text in [&mut good, &mut bad] {
                text.push_str(LINE[ply]);
            }
        }
        assert_eq!(moves(&only(&(good + " *"))), "e2e4 e7e5 g1f3 b8c6 f1c4 f8c5 e1g1 g8f6");
        let skipped = parsed(&(bad + " *"))[0].clone().unwrap_err();
        assert_eq!((skipped.reason, skipped.offset), (SkipReason::Garbage, 100 + at as u64));
    }

        /// Well-formed games before and after a damaged one are read.
    #[test]
    fn damage_stays_where_it_is(
        edits in proptest::collection::vec((0usize..100, 0usize..4, "[ -~\n]|[\n1.*(){};%$!0e-]"), 1..6),
    ) {
        let mut damaged = b"1. e4 {[%eval 0.2]} e5 2. Nf3 $1 (2. f4\n% x\n) Nc6 ; c\n3. Bc4! Bc5 4. 0-0 1-0".to_vec();
        for (at, length, text) in edits {
            let at = at.min(damaged.len());
            damaged.splice(at..(at + length).min(damaged.len()), text.bytes());
        }
                // A `[` at the beginning of a line begins a game.
        let damaged = String::from_utf8(damaged).unwrap().replace('[', "<");
        let text = format!("[A \"\"]\n\n1. d4 1-0\n\n[A \"\"]\n\n1. {damaged}\n\n[A \"\"]\n\n1. c4 {{x}} 0-1\n");
        let games = split(text.as_bytes());
        assert_eq!(moves(games.first().unwrap().as_ref().unwrap()), "d2d4", "{text}");
        assert_eq!(moves(games.last().unwrap().as_ref().unwrap()), "c2c4", "{text}");
                // Without tags too, unless a comment is left open.
        let text = format!("1. d4 1-0\n\n{}\n\n1. c4 {{x}} 0-1\n", damaged.replace('{', "<"));
        let games = split(text.as_bytes());
        assert_eq!(moves(games.first().unwrap().as_ref().unwrap()), "d2d4", "{text}");
        assert_eq!(moves(games.last().unwrap().as_ref().unwrap()), "c2c4", "{text}");
    }
}
