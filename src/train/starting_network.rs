//! The network that a learning loop starts with: a network of the loop's set and shape, or one whose evaluation is
//! material.
//!
//! A network of material values has random weights but for its last layer, which is zero, and PSQT values: each feature
//! of a piece has the piece's value. Its scores are exact, and it can be trained further. A shape without PSQT values
//! gets them; and where a set cannot count material, as where two pawns on a file are one feature, the network is one on
//! [`COUNTING_SET`]. Nothing else is learned from such networks than their games.

use shakmaty::{Chess, Position};

use super::start::TrainedSet;
use super::{TrainConfig, TrainError, init};
use crate::chess::{Board, Perspective, random_move};
use crate::features::FeatureSet;
use crate::features::piece_sums::PieceSums;
use crate::net::{FloatNet, NetFile, Origin, OutputBuckets, Scheme, Shape, load_float, load_quantised, quantise};
use crate::units::Seed;

/// Centipawns of a pawn, knight, bishop, rook, queen and king.
const VALUES: [i32; 6] = [100, 300, 300, 500, 900, 0];

/// A set that counts the material of every position, of one square, role and colour per feature.
const COUNTING_SET: &str = "piece";

/// Random games whose positions are evaluated, and positions per game.
const GAMES: u64 = 20;
const PLIES: usize = 120;

impl TrainConfig {
    /// The network to start a loop of such trainings with: that of `start`, or one whose evaluation is material. Also
    /// whether the trainings can begin with it.
    ///
    /// # Errors
    /// When the network of `start` cannot be read or is of another set or shape, or the scheme has no PSQT values.
    pub fn starting_network(&self) -> Result<(NetFile, bool), TrainError> {
        let trained_set = TrainedSet::resolve(self)?;
        let scheme = self.scheme()?;
        let shape = trained_set.shape(self, &scheme)?;
        let Some(start) = &self.start else {
            let file = material_network(&trained_set.set, &shape, &scheme, self.seed)?;
            let has_shape = file.net.shape == shape && file.origin.expect(&trained_set.set).is_ok();
            return Ok((file, has_shape));
        };
        // Weights of a checkpoint are quantised as a training would.
        let of_training = load_float(start).is_ok().then_some(&scheme);
        let file = load_quantised(start, of_training)?.0;
        let wrong = |why: String| TrainError::Config(format!("the loop cannot start with {}: {why}", start.display()));
        file.origin.expect(&trained_set.set).map_err(|other| wrong(other.to_string()))?;
        if file.net.shape != shape {
            return Err(wrong(format!("it is {}, and {shape} was asked for", file.net.shape)));
        }
        if file.net.scheme != scheme {
            return Err(wrong(format!(
                "it is quantised by scheme `{}`, and `{}` was asked for",
                file.net.scheme.name, scheme.name
            )));
        }
        Ok((file, true))
    }
}

/// A network of that shape, with PSQT values, whose evaluation is material: on the set, or on [`COUNTING_SET`].
fn material_network(set: &FeatureSet, shape: &Shape, scheme: &Scheme, seed: Seed) -> Result<NetFile, TrainError> {
    let counting = FeatureSet::resolve(COUNTING_SET)?;
    let (set, shape, values) = match material_values(set) {
        Some(values) => (set, Shape { psqt: true, ..shape.clone() }, values),
        None => {
            // Buckets may go by the other set's tables, and narrow rows are its own.
            let buckets = OutputBuckets::default();
            let shape = Shape { features: counting.num_features(), narrow: 0, psqt: true, buckets, ..shape.clone() };
            let values = material_values(&counting).unwrap_or_default();
            (&counting, shape, values)
        }
    };
    scheme.admits(&shape).map_err(|error| {
        TrainError::Config(format!("no network of material values can be written: {error}; give the row a `start`"))
    })?;
    let mut net = init::random_network(&shape, seed);
    silence(&mut net);
    // The output 1.0 is `nnue2score` internal units.
    let unit = f64::from(scheme.pawn_value) / f64::from(VALUES[0]) / f64::from(scheme.nnue2score);
    for (row, value) in net.ft_weights.chunks_exact_mut(shape.row_len()).zip(values) {
        row[shape.l1..].fill((f64::from(value) * unit) as f32);
    }
    Ok(NetFile { origin: Origin::of(set), net: quantise(&net, scheme)? })
}

/// Makes the positional output zero in every position.
fn silence(net: &mut FloatNet) {
    let skip = net.shape.skip_outputs();
    for stack in &mut net.stacks {
        if let Some(last) = stack.last_mut() {
            last.weights.fill(0.0);
            last.biases.fill(0.0);
        }
        let Some((added, subtracted)) = skip else { continue };
        for output in [Some(added), subtracted].into_iter().flatten() {
            let first = &mut stack[0];
            first.weights[output * first.inputs..][..first.inputs].fill(0.0);
            first.biases[output] = 0.0;
        }
    }
}

/// A value for each feature, such that the sum over a perspective's active features is the material of its own pieces
/// minus the enemy's; `None` if no block of single pieces has such values.
fn material_values(set: &FeatureSet) -> Option<Vec<i32>> {
    let of_blocks = set.blocks().iter().filter_map(|block| block_values(set, &PieceSums::of(block)?));
    of_blocks.into_iter().find(|values| adds_up(set, values))
}

/// The value of the piece that each feature of a block stands for; `None` if a feature stands for several.
fn block_values(set: &FeatureSet, sums: &PieceSums) -> Option<Vec<i32>> {
    let mut values = vec![None; set.num_features() as usize];
    for start in sums.starts.iter().flatten() {
        for (state, part) in sums.parts.iter().enumerate() {
            let Some(part) = part else { continue };
            let value = VALUES[state / 64 % 6];
            let value = if state < 384 { value } else { -value };
            match &mut values[(start + part) as usize] {
                Some(known) if *known != value => return None,
                known => *known = Some(value),
            }
        }
    }
    Some(values.into_iter().map(Option::unwrap_or_default).collect())
}

/// The material of a perspective's own pieces minus the enemy's, in centipawns.
fn material(board: &Board, pov: Perspective) -> i32 {
    let white: i32 = shakmaty::Role::ALL
        .into_iter()
        .zip(VALUES)
        .map(|(role, value)| {
            let [white, black] = [board.white(), board.black()].map(|side| (board.by_role(role) & side).count() as i32);
            value * (white - black)
        })
        .sum();
    if pov == Perspective::White { white } else { -white }
}

/// Whether the values add up to the material on the boards of random games.
fn adds_up(set: &FeatureSet, values: &[i32]) -> bool {
    let mut active = Vec::new();
    for game in 0..GAMES {
        let mut rng = Seed(0).stream("material", game);
        let mut position = Chess::default();
        for _ in 0..PLIES {
            let board = position.board();
            for pov in Perspective::ALL {
                set.encoder().encode(board, pov, &mut active);
                let sum: i32 = active.iter().map(|feature| values[*feature as usize]).sum();
                if sum != material(board, pov) {
                    return false;
                }
            }
            let Some(mv) = random_move(&position, &mut rng) else { break };
            position.play_unchecked(mv);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Method;
    use crate::net::{Activation, forward_integer};
    use crate::train::{ShapeOptions, TrainSettings};

    fn config(set: &str, settings: TrainSettings) -> TrainConfig {
        TrainConfig::new(set, "", Method::Eval, settings)
    }

    fn settings(change: impl Fn(&mut ShapeOptions)) -> TrainSettings {
        let mut settings = TrainSettings { l1: 16, hidden: vec![8], ..TrainSettings::default() };
        change(&mut settings.shape_options);
        settings
    }

    /// Every score of positions of random games is the material, to the centipawn. Returns the name of the network's
    /// set, and whether trainings can begin with it.
    fn check(set: &str, settings: TrainSettings) -> (String, bool) {
        let config = config(set, settings);
        let (NetFile { origin, net }, has_shape) = config.starting_network().expect(set);
        let set = origin.feature_set().expect("stored");
        let buckets = net.shape.buckets.count;
        let [mut stm, mut nstm] = [Vec::new(), Vec::new()];
        for game in 100..104 {
            let mut rng = Seed(1).stream("material test", game);
            let mut position = Chess::default();
            for ply in 0..100 {
                for pov in Perspective::ALL {
                    set.encoder().encode(position.board(), pov, &mut stm);
                    set.encoder().encode(position.board(), pov.other(), &mut nstm);
                    let raw = forward_integer(&net, ply % buckets, &stm, &nstm);
                    assert_eq!(raw.positional, 0, "{}", set.name());
                    assert_eq!(net.scheme.internal_score(raw.sum()), material(position.board(), pov), "{}", set.name());
                }
                let Some(mv) = random_move(&position, &mut rng) else { break };
                position.play_unchecked(mv);
            }
        }
        (origin.name, has_shape)
    }

    #[test]
    fn scores_are_material_on_sets_of_pieces() {
        for set in ["piece", "king-piece", "half-ka-v2-hm", "half-kp", "chess768-mirrored", "mobility-count + piece"] {
            let (on, has_shape) = check(set, settings(|_| {}));
            assert_eq!((on.as_str(), has_shape), (FeatureSet::resolve(set).expect(set).name(), false));
        }
    }

    #[test]
    fn scores_are_material_in_every_shape() {
        assert!(check("piece", settings(|options| options.psqt = true)).1, "trainings can begin with it");
        check("piece", settings(|options| options.buckets = 4));
        check("piece", settings(|options| options.skip = true));
        check("piece", settings(|options| options.skip_difference = true));
        check("piece", settings(|options| options.concatenated = true));
        check("piece", settings(|options| options.activation = Activation::Pairwise));
        let simple = TrainSettings { hidden: vec![], scheme: Some("simple".into()), ..settings(|_| {}) };
        check("piece", simple);
        check("piece", TrainSettings { compact_dead: true, ..settings(|_| {}) });
    }

    /// Another set's network counts for sets that cannot, and no training begins with it.
    #[test]
    fn sets_that_cannot_count_have_another_sets_network() {
        let cannot = [
            "mobility-count",
            "compact",
            "square(P) * color(P) for P in pieces",
            "square(P) * role(P) * color(P) for P in pieces if role(P) == pawn",
        ];
        for set in cannot {
            let counting = FeatureSet::resolve(COUNTING_SET).expect("shipped").name().to_owned();
            assert_eq!(check(set, settings(|options| options.psqt = true)), (counting, false), "{set}");
        }
    }

    #[test]
    fn a_network_of_another_set_or_shape_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("start.safetensors");
        let with_psqt = settings(|options| options.psqt = true);
        config("piece", with_psqt.clone()).starting_network().expect("made").0.save(&path).expect("saved");
        let start = |set: &str, settings: &TrainSettings| {
            let config = TrainConfig { start: Some(path.clone()), ..config(set, settings.clone()) };
            config.starting_network().map(|(file, _)| file.net.shape.to_string()).map_err(|error| error.to_string())
        };
        assert!(start("piece", &with_psqt).is_ok());
        let other_shape = start("piece", &settings(|_| {})).expect_err("refused");
        assert!(other_shape.contains("was asked for"), "{other_shape}");
        assert!(start("compact", &with_psqt).is_err());
    }
}
