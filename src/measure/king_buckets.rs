//! King buckets from a network that has rows for every king square: squares are merged, two at a time, into as many
//! buckets as wanted, those first whose merging changes the accumulators least.

use super::MeasureError;
use super::frequency::Frequencies;
use crate::chess::{Perspective, Square};
use crate::features::spec::{AxisSpec, FactorKind, OWN_KING, Property};
use crate::features::{Block, FeatureSet};
use crate::net::FloatNet;

/// The rows of a king square and how often each is active; the same features in the same order for every square.
#[derive(Clone, Debug, PartialEq)]
pub struct KingSquareRows {
    pub square: Square,
    /// Row after row.
    pub weights: Vec<f32>,
    pub active: Vec<u64>,
}

/// The rows of each king square in a network on a set with a block over `square(K)`, as `square(K) * square(P) * …`:
/// of the first such block.
///
/// # Errors
/// When no block has the factor `square(K)`, or a selection has renumbered it.
pub fn king_square_rows(
    set: &FeatureSet,
    net: &FloatNet,
    frequencies: &Frequencies,
) -> Result<Vec<KingSquareRows>, MeasureError> {
    let no_block = || MeasureError::NoKingSquares { set: set.name().into() };
    let (block, size, stride) = set.blocks().iter().find_map(by_king_square).ok_or_else(no_block)?;
    let width = net.shape.row_len();
    let orientation = block.spec().orientation;
    let of_square = |square: Square| {
        let is_of_square = |element: &u32| element / stride % size == u32::from(square);
        let features = (0..block.size).filter(is_of_square).map(|element| (block.offset + element) as usize);
        let mut rows = KingSquareRows { square, weights: Vec::new(), active: Vec::new() };
        for feature in features {
            rows.weights.extend_from_slice(&net.ft_weights[feature * width..][..width]);
            rows.active.push(frequencies.counts[feature]);
        }
        rows
    };
    // On a mirrored board, the own king is on one half.
    let squares = Square::ALL.into_iter().filter(|square| orientation.mask(*square, Perspective::White) == 0);
    Ok(squares.map(of_square).collect())
}

/// The block with size and stride of its factor `square(K)`, if it has one.
fn by_king_square(block: &Block) -> Option<(&Block, u32, u32)> {
    let is_king_square = |kind: &FactorKind| {
        matches!(kind, FactorKind::Axis(AxisSpec { property: Property::Square, slot: OWN_KING, domain: None }))
    };
    let factor = block.axes().iter().find(|factor| is_king_square(&factor.kind))?;
    block.spec().renumbering.is_none().then_some((block, factor.size, factor.stride))
}

/// A bucket for each of the squares a1, b1, … h8, for `[buckets]`; −1 for squares that are not in `squares`. Buckets are
/// numbered in the order of their first squares; there are fewer than `buckets` if there are fewer squares.
///
/// Greedy: merging rows x and y that are active n and m times costs n·m / (n + m) · |x − y|², and the merged row is their
/// mean (Ward 1963, Hierarchical grouping to optimize an objective function). Of merges that cost the same, as those of
/// squares without a king, the one of the nearest squares is made.
///
/// # Panics
/// When squares have different numbers of rows or weights.
#[must_use]
pub fn merged_king_buckets(squares: &[KingSquareRows], buckets: usize) -> [i32; 64] {
    let mut clusters: Vec<Cluster> = squares.iter().map(Cluster::of).collect();
    let mut costs: Vec<Vec<f64>> = Vec::new();
    for (number, cluster) in clusters.iter().enumerate() {
        costs.push(clusters[..number].iter().map(|other| cluster.cost(other)).collect());
    }
    while clusters.len() > buckets.max(1) {
        let pairs = (0..clusters.len()).flat_map(|high| (0..high).map(move |low| (high, low)));
        let key = |&(high, low): &(usize, usize)| (costs[high][low], clusters[high].distance(&clusters[low]));
        let cheapest = pairs.min_by(|a, b| {
            let [(cost, distance), (other_cost, other_distance)] = [key(a), key(b)];
            cost.total_cmp(&other_cost).then(distance.cmp(&other_distance))
        });
        let Some((high, low)) = cheapest else { break };
        let merged = clusters.remove(high);
        costs.remove(high);
        costs.iter_mut().skip(high).for_each(|row| {
            row.remove(high);
        });
        clusters[low].merge(&merged);
        for other in (0..clusters.len()).filter(|other| *other != low) {
            costs[other.max(low)][other.min(low)] = clusters[low].cost(&clusters[other]);
        }
    }
    let mut table = [-1; 64];
    for (bucket, cluster) in (0..).zip(&clusters) {
        cluster.squares.iter().for_each(|square| table[usize::from(*square)] = bucket);
    }
    table
}

/// Squares that share their rows.
struct Cluster {
    squares: Vec<Square>,
    weights: Vec<f64>,
    active: Vec<f64>,
}

impl Cluster {
    fn of(rows: &KingSquareRows) -> Cluster {
        Cluster {
            squares: vec![rows.square],
            weights: rows.weights.iter().copied().map(f64::from).collect(),
            active: rows.active.iter().map(|count| *count as f64).collect(),
        }
    }

    /// The rows of both clusters, with how often each is active.
    fn rows<'a>(&'a self, other: &'a Cluster) -> impl Iterator<Item = [(&'a [f64], f64); 2]> {
        assert_eq!((self.weights.len(), self.active.len()), (other.weights.len(), other.active.len()));
        let width = (self.weights.len() / self.active.len().max(1)).max(1);
        let rows = |cluster: &'a Cluster| cluster.weights.chunks_exact(width).zip(cluster.active.iter().copied());
        rows(self).zip(rows(other)).map(|(a, b)| [a, b])
    }

    fn cost(&self, other: &Cluster) -> f64 {
        let cost = |[(x, n), (y, m)]: [(&[f64], f64); 2]| {
            let squared: f64 = x.iter().zip(y).map(|(x, y)| (x - y) * (x - y)).sum();
            if n + m > 0.0 { n * m / (n + m) * squared } else { 0.0 }
        };
        self.rows(other).map(cost).sum()
    }

    fn distance(&self, other: &Cluster) -> u32 {
        let to_other = |square: &Square| other.squares.iter().map(|to| square.distance(*to)).min();
        self.squares.iter().filter_map(to_other).min().unwrap_or(0)
    }

    fn merge(&mut self, other: &Cluster) {
        let mean = |[(x, n), (y, m)]: [(&[f64], f64); 2]| {
            let share = if n + m > 0.0 { m / (n + m) } else { 0.5 };
            x.iter().zip(y).map(|(x, y)| x + share * (y - x)).collect::<Vec<f64>>()
        };
        let weights = self.rows(other).flat_map(mean).collect();
        self.weights = weights;
        self.active.iter_mut().zip(&other.active).for_each(|(sum, count)| *sum += count);
        self.squares.extend(&other.squares);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Shape;
    use crate::units::Seed;
    use rand::RngExt;

    /// Zones of a mirrored board: home corner, home centre, second rank, all ahead.
    fn zone(square: Square) -> usize {
        match (u32::from(square) / 8, u32::from(square) % 8) {
            (0, 0 | 1) => 0,
            (0, _) => 1,
            (1, _) => 2,
            _ => 3,
        }
    }

    /// A network whose rows differ by zone and, a little, by square.
    fn planted(noise: f32) -> Vec<KingSquareRows> {
        let text = "features = \"square(K) * role(P) * file(P) for P in pieces\"\nmirror = \"king-left\"";
        let set = FeatureSet::from_definition(text).expect("a definition");
        let mut net = FloatNet::zeros(&Shape::plain(set.num_features(), 8, vec![4]));
        let mut rng = Seed(1).stream("planted zones", 0);
        let of_zones: Vec<f32> = (0..4 * 48 * 8).map(|_| rng.random_range(-1.0..1.0)).collect();
        for square in Square::ALL {
            let at = usize::from(square) * 48 * 8;
            for (number, weight) in net.ft_weights[at..][..48 * 8].iter_mut().enumerate() {
                *weight = of_zones[zone(square) * 48 * 8 + number] + noise * rng.random_range(-1.0..1.0);
            }
        }
        let counts = (0..set.num_features()).map(|_| rng.random_range(0..100)).collect();
        king_square_rows(&set, &net, &Frequencies { positions: 1000, counts }).expect("rows")
    }

    #[test]
    fn planted_zones_are_found() {
        for noise in [0.0, 0.2] {
            let table = merged_king_buckets(&planted(noise), 4);
            for square in Square::ALL {
                let left = u32::from(square) % 8 < 4;
                let expected = if left { zone(square) as i32 } else { -1 };
                assert_eq!(table[usize::from(square)], expected, "{square}, noise {noise}");
            }
        }
    }

    #[test]
    fn a_rare_row_counts_less_than_a_frequent_one() {
        let rows =
            |square, weights: [f32; 2]| KingSquareRows { square, weights: weights.into(), active: vec![1, 1000] };
        // The first two differ much in a rare row, the last two a little in a frequent one.
        let squares = [rows(Square::A1, [0.0, 0.0]), rows(Square::B1, [3.0, 0.0]), rows(Square::C1, [3.0, 0.5])];
        let table = merged_king_buckets(&squares, 2);
        assert_eq!(table[..3], [0, 0, 1]);
    }

    #[test]
    fn squares_without_a_king_join_their_neighbours() {
        let rows = |square, weight: f32, count| KingSquareRows { square, weights: vec![weight], active: vec![count] };
        let squares =
            [rows(Square::A1, 0.0, 10), rows(Square::H8, 1.0, 10), rows(Square::G8, 0.0, 0), rows(Square::B2, 1.0, 0)];
        let table = merged_king_buckets(&squares, 2);
        let at = |square: Square| table[usize::from(square)];
        assert_eq!([Square::A1, Square::B2, Square::H8, Square::G8].map(at), [0, 0, 1, 1]);
        assert_eq!(table.iter().filter(|bucket| **bucket >= 0).count(), 4);
    }
}
