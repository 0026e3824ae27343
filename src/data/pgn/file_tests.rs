//! Whole files as other programs write them: every score with the right unit and view, and unread parts are named.

use super::games::GameCollector;
use super::*;
use crate::data::Record;
use crate::data::formats::all_positions;
use crate::data::input::{Input, InputPath};
use crate::units::Centipawn;

const CP: EvalOptions = EvalOptions { eval_unit: Some(EvalUnit::Cp), eval_view: None };
const PAWNS: EvalOptions = EvalOptions { eval_unit: Some(EvalUnit::Pawns), eval_view: None };
const MOVER: EvalOptions = EvalOptions { eval_unit: None, eval_view: Some(EvalView::Mover) };
const AUTO: EvalOptions = EvalOptions { eval_unit: None, eval_view: None };

struct Found {
    /// The score of each position for the side to move, or `-`, games separated by `|`.
    scores: String,
    results: String,
    notes: PgnNotes,
    skipped: SkippedGames,
}

fn read(text: &str, evals: EvalOptions) -> Found {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), text).expect("written");
    let mut scores = Vec::new();
    let mut results = Vec::new();
    let totals = all_positions(&InputPath::File(file.path().into()), evals, |records| {
        let score = |record: &Record| record.score().map_or("-".to_owned(), |score| score.to_string());
        scores.push(records.iter().map(score).collect::<Vec<_>>().join(" "));
        let first = records.first().and_then(Record::result);
        results.push(first.map_or("*".to_owned(), |result| result.pgn().to_owned()));
        Ok(true)
    });
    let totals = totals.expect("readable");
    Found { scores: scores.join(" | "), results: results.join(" "), notes: totals.notes, skipped: totals.skipped }
}

/// Checks the scores of one game with these moves.
fn check(movetext: &str, evals: EvalOptions, scores: &str) -> PgnNotes {
    let found = read(&format!("[Event \"x\"]\n[Result \"1-0\"]\n\n{movetext} 1-0\n"), evals);
    assert_eq!(found.scores, scores, "{movetext} {:?}", found.skipped);
    found.notes
}

fn said(notes: &PgnNotes, text: &str) {
    assert!(notes.lines().iter().any(|line| line.contains(text)), "{text}: {:?}", notes.lines());
}

#[test]
fn whole_numbers_are_centipawns_in_a_file_without_a_point() {
    let chess_base = "1. d4 {[%eval 23,14] [%emt 0:00:27]} d5 {[%eval -17,27]} 2. c4 {[%eval 270,18]} e6 \
                      {[%eval -24600,31]} 3. Nc3";
    let notes = check(chess_base, AUTO, "- -23 -17 -270 -24600");
    said(&notes, "4 scores without a point (`[%eval 23,14] [%emt 0:00:27]`) were read as centipawns, White's view");
    said(&notes, "--eval-unit");
    assert!(notes.concerns_scores());
    let notes = check(chess_base, MOVER, "- -23 17 -270 24600");
    said(&notes, "the mover's view");
    assert!(!check(chess_base, CP, "- -23 -17 -270 -24600").concerns_scores());
    let notes = check("1. e4 {[%eval 25]} e5 {[%eval -8]} 2. Nf3", AUTO, "- -25 -8");
    said(&notes, "2 scores without a point (`[%eval 25]`) were read as centipawns");
    // Any score with a point in the file, however late or of whichever program, makes all pawns.
    let notes = check("1. e4 {[%eval 25]} e5 {[%eval -8.0]} 2. Nf3", AUTO, "- -2500 -800");
    said(&notes, "1 scores without a point (`[%eval 25]`) were read as pawns, White's view, since other scores");
    check("1. e4 {[%eval 1]} e5 {+0.30/12 1s} 2. Nf3", AUTO, "- -100 -");
    let far = format!("1. e4 {{[%eval 25]}} e5 {} 2. Nf3 {{[%eval 0.1]}} Nc6", "{x} ".repeat(400_000));
    check(&far, AUTO, "- -2500 - -10");
    check("1. e4 {[%eval 25]} e5 {[%eval -8]} 2. Nf3", PAWNS, "- -2500 -800");
    check("1. e4 {[%eval 25.4]} e5 2. Nf3", CP, "- -25 -");
    check("1. e4 {+0.6/3 1s} e5 {+40/3 1s} 2. Nf3", CP, "1 40 -");
    // A plain zero is the same in both units.
    assert!(check("1. e4 {[%eval 0]} e5 {[%eval 0]} 2. Nf3", AUTO, "- 0 0").is_empty());
    // Points in a variation or in a game that is skipped do not count.
    check("1. e4 {[%eval 25]} (1. d4 {[%eval 0.3]}) e5", AUTO, "- -25");
    check("1. e4 {+25/14 0.2s} e5 {-8/13 0.1s}", AUTO, "25 -8");
}

#[test]
fn decimal_commas() {
    let notes = check("1. e4 {[%eval 0,25]} e5 {[%eval -0,25]} 2. Nf3 {[%eval 1,2]} Nc6", AUTO, "- -25 -25 -120");
    said(&notes, "pawns with a decimal comma");
    check("1. e4 {[%eval 0,05]} e5 {[%eval 1,20]}  2. Nf3", AUTO, "- -5 120");
    check("1. e4 {[%eval 0,35,18]} e5 {[%eval -1,20,20]} 2. Nf3", AUTO, "- -35 -120");
    check("1. e4 {+0,31/14 0,25s} e5 {-1,05/13 0,1s}", AUTO, "31 -105");
    // Nothing shows whether 25 and 20 are decimals or depths: said, and the options decide.
    let doubtful = "1. e4 {[%eval 0,25]} e5 {[%eval -1,20]} 2. Nf3";
    said(&check(doubtful, AUTO, "- 0 -1"), "2 scores without a point (`[%eval 0,25]`) were read as centipawns");
    check(doubtful, PAWNS, "- -25 -120");
}

#[test]
fn scores_of_every_dialect_reach_their_position() {
    // Lichess, wrapped lines, with mates.
    let wrapped = "1. e4 { [%eval\n0.35] } e5 {[%eval\t0.21]} 2. Nf3 {Good. [%eval\n-0.41]} Nc6 {[%eval\n#3]} 3. Bb5";
    assert!(check(wrapped, AUTO, "- -35 21 41 31994").is_empty());
    // Arena, CCRL: book moves have no score.
    let ccrl = "1. f4 {+0.00/1 0s} d5 {+0.00/1 0s} 2. b3 {-0.36/32 45s} Bg4 {(h6) +0.59/28 20s} 3. Bb2\n\
                {(Bb2) -0.24/30 10s} Nc6 {(Nc6)\n+0.62/28 18s} 4. h3";
    said(&check(ccrl, AUTO, "- - -36 59 -24 62 -"), "2 zeros beside book moves");
    check("1. e4 {book} e5 {+M5/20 1s} 2. Nf3 {-M4/20}", AUTO, "- 31994 -31996");
    // TCEC: White's view, after the move.
    check("1. e4 {d=30, sd=30, wv=0.30,} e5 {d=30, wv=-M4,} 2. Nf3", MOVER, "- -30 -31996");
    // PyChess: the mover's view unless the options say otherwise.
    let notes = check("1. e4 {[%eval 0.16/16]} e5 {[%eval 0.47/16]} 2. Nf3", AUTO, "- -16 -47");
    said(&notes, "2 scores with a depth after a slash");
    let white = EvalOptions { eval_view: Some(EvalView::White), ..AUTO };
    check("1. e4 {[%eval 0.16/16]} e5 {[%eval 0.47/16]} 2. Nf3", white, "- -16 47");
    check("1. e4 {[%eval 0.3]} e5 {[%eval 0.2]} 2. Nf3", MOVER, "- -30 -20");
}

/// Before the first move `[%eval …]` is the start position's score; other comments there introduce the game.
#[test]
fn scores_before_the_first_move() {
    assert!(check("{[%eval 0.2]} 1. e4 {[%eval 0.3]} e5", AUTO, "20 -30").is_empty());
    check("{[%eval #5]} 1. e4 e5", AUTO, "31990 -");
    let black =
        "[FEN \"4k3/8/8/8/8/8/4P3/4K3 b - - 3 20\"]\n\n{ [%eval 1.50] } 20... Kd8 { [%eval 1.60] } 21. e4 1-0\n";
    assert_eq!(read(black, AUTO).scores, "-150 160");
    for comment in ["+0.31/14 0.25s", "0.00/0 0s", "[%eval ?]", "0.31", "d=30, wv=0.30", "a good game"] {
        assert!(check(&format!("{{{comment}}} 1. e4 e5"), AUTO, "- -").is_empty(), "{comment}");
    }
}

#[test]
fn a_comment_never_costs_a_game() {
    for comment in ["[%eval M5]", "[%eval ?]", "[%eval 0.35 18]", "[%eval]", "[%eval", "d=22, sd=30", "+0.3", "[", "%"]
    {
        check(
            &format!("1. e4 {{[%eval 0.1]}} e5 {{{comment}}} 2. Nf3 {{[%eval 0.2]}} Nc6"),
            AUTO,
            match comment {
                "[%eval M5]" => "- -10 31990 -20",
                _ => "- -10 - -20",
            },
        );
    }
    let notes = check("1. e4 {[%eval ?]} e5 {d=22,\nsd=30} 2. Nf3 {[%eval ?]}", AUTO, "- - -");
    said(&notes, "3 comments look like scores and were not read: `[%eval ?]`, `d=22, sd=30`");
    assert_eq!(notes.unread_scores, 3);
    let notes = check("1. e4 {[%eval 400.00]} e5 {+999.00/3 1s} 2. Nf3 {[%eval 300.0]} Nc6", AUTO, "- -30000 - -30000");
    said(&notes, "2 scores were cut to 30,000 centipawns");
}

#[test]
fn results_and_games() {
    let check = |text: &str, results: &str, scores: &str| {
        for ends in ["\n", "\r\n", "\r"] {
            let found = read(&text.replace('\n', ends), AUTO);
            assert_eq!(
                (found.results.as_str(), found.scores.as_str()),
                (results, scores),
                "{text} {:?}",
                found.skipped
            );
        }
    };
    let game = "[Event \"x\"]\n[Result \"*\"]\n\n1. d4 {[%eval 0.3]} d5 {[%eval 0.2]} 2. c4 1-0\n\n";
    check(&format!("{game}{game}"), "1-0 1-0", "- -30 20 | - -30 20");
    let draw = game.replace("1-0", "0.5-0.5");
    check(&format!("{draw}{game}"), "1/2-1/2 1-0", "- -30 20 | - -30 20");
    check(&format!("% written by a program\n{game}{game}"), "1-0 1-0", "- -30 20 | - -30 20");
    check(&game.replace("2. c4 1-0", "; a remark\n2. c4 1-0").repeat(2), "1-0 1-0", "- -30 20 | - -30 20");
    let atomic = "[Event \"x\"]\n[Variant \"Atomic\"]\n\n1. e4 e5 1-0\n\n";
    check(&format!("{game}{atomic}{game}"), "1-0 1-0", "- -30 20 | - -30 20");
    let broken = "[Event \"x\"]\n\n1. e4 {[%eval 0.3]} e9 2. Nf3 0-1\n\n";
    check(&format!("{broken}{game}{game}"), "1-0 1-0", "- -30 20 | - -30 20");
    // Only a whole tag pair begins a game, and not within a comment.
    let diagram = game.replace("[%eval 0.3]", "[%eval 0.3] refers to the\n[Diagram 1] White has more space.");
    check(&format!("{diagram}{game}"), "1-0 1-0", "- -30 20 | - -30 20");
    let other = game.replace("[%eval 0.3]", "[%eval 0.3] see\n[Event \"other\"]\n[Result \"0-1\"]\n\n1. d4 d5 0-1\n");
    check(&format!("{other}{game}"), "1-0 1-0", "- -30 20 | - -30 20");
    // A comment that is left open does not swallow the next game.
    let open = game.replace("0.2]}", "0.2]");
    check(&format!("{game}{open}{game}"), "1-0 1-0", "- -30 20 | - -30 20");
    // A malformed tag before the others belongs to its game.
    check(&format!("{game}[Site nowhere]\n{game}"), "1-0 1-0", "- -30 20 | - -30 20");
    assert_eq!(read(&format!("{game}[Site nowhere]\n{game}"), AUTO).notes.malformed_tags, 1);
}

#[test]
fn games_that_an_illegal_move_ended() {
    let check = |movetext: &str, tags: &str, expected: Result<&str, SkipReason>| {
        let found = read(&format!("[Event \"x\"]\n{tags}\n{movetext}\n"), AUTO);
        match expected {
            Ok(scores) => {
                assert_eq!((found.scores.as_str(), found.results.as_str()), (scores, "0-1"), "{movetext}");
                said(&found.notes, "1 games ended by an illegal move");
            }
            Err(reason) => assert_eq!(found.skipped.by_reason, [(reason, 1)].into(), "{movetext}"),
        }
    };
    let tag = "[Termination \"illegal move\"]\n";
    check(
        "1. e4 {+0.30/14 0.39s} Nf6 {-0.22/16 0.45s} 2. d2d9 {-0.59/19, A made an illegal move} 0-1",
        "",
        Ok("30 -22"),
    );
    check("1. e4 e5 2. Kxe8 {White makes an illegal move} 0-1", "", Ok("- -"));
    check("1. e4 e5 2. Kxe8 0-1", tag, Ok("- -"));
    check("1. e4 e5 2. Kxe8 0-1", "[Termination \"Rules Infraction\"]\n", Ok("- -"));
    check("1. e4 e5 2. Kxe8 0-1", "", Err(SkipReason::IllegalMove));
    check("1. e4 e5 2. d2d9 0-1", "", Err(SkipReason::Garbage));
    // Moves after it could not be trusted.
    check("1. e4 e5 2. Kxe8 Nc6 0-1", tag, Err(SkipReason::IllegalMove));
}

/// The same bytes give the same games and notes whatever the number of threads, also where the unit is decided late.
#[test]
fn threads_do_not_matter() {
    let whole = "[Event \"x\"]\n\n1. e4 {[%eval 25]} e5 {[%eval ?]} 2. Nf3 {[%eval -8]} Nc6 1-0\n\n".repeat(16_000);
    let point = whole.clone() + "[Event \"x\"]\n\n1. e4 {[%eval 0.1]} e5 1-0\n\n";
    for (text, first) in [(whole, 25), (point, 2500)] {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), text).expect("written");
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            let input = Input::open(&InputPath::File(file.path().into())).expect("readable");
            let mut reader = GameReader::new(input, GameCollector, AUTO);
            let mut games = Vec::new();
            while let Some(batch) = pool.install(|| reader.next_batch()).expect("readable") {
                games.extend(batch);
            }
            (games, reader.notes(), reader.skipped)
        };
        let one = with(1);
        assert_eq!(one.0[0].moves[0].eval, Some(Eval::Score(Centipawn(first))));
        assert!(one == with(4));
    }
}
