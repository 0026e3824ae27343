//! How a generated game begins: its players, its opening and the random moves after it.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use shakmaty::{Chess, Move, Position};

use crate::alpha_beta::see_at_least;
use crate::chess::random_move;
use crate::pipeline::generation::{BookOrder, GenerateSettings};
use crate::play::{Book, BookError, Fixture, GameLine, GameMove, GameStart, RandomMoves, TournamentType, fixture};

/// Attempts at a number of random moves before one move fewer is tried.
const ATTEMPTS: usize = 100;

/// Draws of a move after which one that loses material is taken.
const DRAWS: usize = 8;

/// The players of a game among so many engines. A single engine plays itself, and every game is an encounter of its
/// own; of several, every two meet in turn.
pub fn fixture_of(number: u64, engines: usize) -> Fixture {
    match engines {
        0 | 1 => Fixture { white: 0, black: 0, encounter: number },
        _ => fixture(number, &TournamentType::RoundRobin.pairings(engines)),
    }
}

/// The book that the settings ask for.
pub fn book_of(settings: &GenerateSettings) -> Result<Option<Book>, BookError> {
    let Some(spec) = &settings.book else { return Ok(None) };
    let Some(source) = spec.source() else { return Ok(None) };
    Book::open(&source, spec.plies, None).map(Some)
}

/// Game `number`, which depends on the settings, the book and the number of engines only.
pub fn begin(
    number: u64,
    engines: usize,
    settings: &GenerateSettings,
    book: Option<&Book>,
) -> Result<GameStart, BookError> {
    let Fixture { white, black, encounter } = fixture_of(number, engines);
    let order = settings.book.as_ref().map_or_else(BookOrder::default, |spec| spec.order);
    let opening = match book {
        Some(book) => book.opening(encounter, order, settings.seed)?,
        None => (Chess::default(), Vec::new()),
    };
    let mut line = GameLine::of_opening(opening);
    let mut rng = settings.seed.stream("self-play", encounter);
    let (least, most) = settings.random_plies;
    let plies = rng.random_range(least..=most);
    play_random_moves(&mut line, plies, &mut rng);
    let random_moves = RandomMoves { rng, rate: settings.random_move_rate, until: settings.random_move_until };
    Ok(GameStart { white, black, line, random_moves: Some(random_moves) })
}

/// Plays `plies` random moves that do not end the game, or fewer where that is impossible.
fn play_random_moves(line: &mut GameLine, plies: u16, rng: &mut ChaCha8Rng) {
    for plies in (1..=plies).rev() {
        for _ in 0..ATTEMPTS {
            let mut attempt = line.clone();
            let goal = attempt.moves.len() + usize::from(plies);
            while attempt.moves.len() < goal
                && let Some(mv) = sound_move(attempt.position(), rng)
            {
                attempt.play(GameMove { mv, search: None });
            }
            if attempt.moves.len() == goal && attempt.result_by_rule().is_none() {
                *line = attempt;
                return;
            }
        }
    }
}

/// A random move; one that loses material by static exchange evaluation is drawn again, up to [`DRAWS`] times.
fn sound_move(position: &Chess, rng: &mut ChaCha8Rng) -> Option<Move> {
    let mut mv = random_move(position, rng)?;
    for _ in 0..DRAWS {
        if see_at_least(position.board(), position.turn(), mv, 0) {
            break;
        }
        mv = random_move(position, rng)?;
    }
    Some(mv)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::parse_fen;
    use crate::units::Seed;
    use shakmaty::Color;

    #[test]
    fn random_moves_stop_before_the_game_ends() {
        let mut line = GameLine::new(parse_fen("7k/8/6K1/8/8/8/8/R7 b - - 98 80").unwrap());
        play_random_moves(&mut line, 5, &mut Seed(1).stream("test", 0));
        assert_eq!(line.moves.len(), 1);
    }

    #[test]
    fn moves_that_lose_material_are_drawn_again() {
        let italian = parse_fen("r1bqk1nr/pppp1ppp/2n5/2b1p3/2B1P3/5N2/PPPP1PPP/RNBQK2R w KQkq - 4 4").unwrap();
        let loses = |mv: &Move| !see_at_least(italian.board(), Color::White, *mv, 0);
        let mut rng = Seed(1).stream("test", 1);
        let losing = |draws: &mut dyn FnMut() -> Option<Move>| (0..1000).filter_map(|_| draws()).filter(loses).count();
        assert!(losing(&mut || random_move(&italian, &mut rng)) > 100);
        assert_eq!(losing(&mut || sound_move(&italian, &mut rng)), 0);
        // The only legal move.
        let forced = parse_fen("7k/8/8/8/8/7q/5r2/6QK w - - 0 1").unwrap();
        let mv = sound_move(&forced, &mut rng).unwrap();
        assert!(!see_at_least(forced.board(), Color::White, mv, 0));
    }

    #[test]
    fn one_engine_plays_itself_and_several_swap_colours() {
        let check = |engines: usize, expected: &[(usize, usize, u64)]| {
            let games = (0..expected.len() as u64).map(|number| fixture_of(number, engines));
            let games: Vec<_> = games.map(|game| (game.white, game.black, game.encounter)).collect();
            assert_eq!(games, expected);
        };
        check(1, &[(0, 0, 0), (0, 0, 1), (0, 0, 2)]);
        check(2, &[(0, 1, 0), (1, 0, 0), (0, 1, 1), (1, 0, 1)]);
    }
}
