//! A look into a network: the weights of its neurons by the axes of its features, and the contribution of each feature
//! and piece of a position to the score.

use std::collections::HashMap;

use shakmaty::{Position, Role};

use super::MeasureError;
use crate::chess::{Board, Color, Perspective, Square};
use crate::features::{AxisValue, Block, FeatureSet, Place};
use crate::net::{BucketChooser, NetFile, QuantNet, forward_integer};
use crate::record::{FeatureContribution, NeuronWeights, PieceContribution, PositionRecord, WeightPanel};
use crate::units::{SortedMap, sort_by, sort_by_key};

/// Most panels of a neuron; further ones are too many to look at.
pub const MOST_PANELS: usize = 36;
/// An axis of fewer values is not drawn along a side of a panel.
const LEAST_SIDE: usize = 7;

/// A condition on the features that are drawn: the axis and its value as written, `("square(K)", "e1")`.
pub type AxisChoice = (String, String);

/// The neurons with the largest influence on the score, the largest first.
#[must_use]
pub fn most_influential(net: &QuantNet, count: usize) -> Vec<usize> {
    let mut neurons: Vec<(usize, f64)> = influences(net).into_iter().enumerate().collect();
    sort_by(&mut neurons, &|a, b| b.1.total_cmp(&a.1));
    neurons.into_iter().take(count).map(|(neuron, _)| neuron).collect()
}

/// The weights of neurons, drawn along the axes of the features: squares, files and ranks of pieces as on a board, else
/// the largest axes; the other axes of pieces make panels. Axes of kings are averaged over unless `chosen` has a value.
///
/// # Errors
/// When the feature set cannot be rebuilt.
pub fn neuron_weights(
    file: &NetFile,
    neurons: &[usize],
    chosen: &[AxisChoice],
) -> Result<Vec<NeuronWeights>, MeasureError> {
    let set = file.origin.feature_set()?;
    let influences = influences(&file.net);
    let has_blocks = set.blocks().len() > 1;
    let layout = |block: &Block| PanelLayout::of(block, chosen, has_blocks);
    let layouts: Vec<PanelLayout> = set.blocks().iter().map(layout).collect();
    let l1 = file.net.shape.l1;
    let scale = file.net.scheme.feature_transformer_scale();
    let of_neuron = |neuron: &usize| {
        let weight = |row: u32| f64::from(file.net.ft_weights[row as usize * l1 + neuron]) / scale;
        let mut panels: Vec<WeightPanel> = layouts.iter().flat_map(|layout| layout.panels(weight)).collect();
        let left_out = panels.len().saturating_sub(MOST_PANELS);
        if left_out > 0 {
            let size = |panel: &WeightPanel| panel.weights.iter().flatten().map(|weight| weight * weight).sum::<f64>();
            sort_by(&mut panels, &|a, b| size(b).total_cmp(&size(a)));
            panels.truncate(MOST_PANELS);
        }
        let bias = f64::from(file.net.ft_biases[*neuron]) / scale;
        NeuronWeights { neuron: *neuron, influence: influences[*neuron], bias, panels, left_out }
    };
    Ok(neurons.iter().map(of_neuron).collect())
}

/// Spread of each neuron's weights over the features, times the absolute weights of its output.
fn influences(net: &QuantNet) -> Vec<f64> {
    let l1 = net.shape.l1;
    let units = net.units();
    let mut sums = vec![[0.0; 2]; l1];
    for row in net.ft_weights.chunks_exact(l1) {
        for ([sum, squares], weight) in sums.iter_mut().zip(row) {
            *sum += f64::from(*weight);
            *squares += f64::from(*weight).powi(2);
        }
    }
    let rows = (net.ft_weights.len() / l1.max(1)).max(1) as f64;
    let mut outgoing = vec![0.0; units];
    for layer in net.stacks.iter().filter_map(|stack| stack.first()) {
        for row in layer.weights.chunks_exact(2 * units) {
            row.iter().enumerate().for_each(|(input, weight)| outgoing[input % units] += f64::from(*weight).abs());
        }
    }
    let spread = |[sum, squares]: &[f64; 2]| (squares / rows - (sum / rows).powi(2)).max(0.0).sqrt();
    sums.iter().enumerate().map(|(neuron, sums)| spread(sums) * outgoing[neuron % units]).collect()
}

/// Where each feature of a block is drawn.
struct PanelLayout {
    columns: usize,
    rows: usize,
    panels: Vec<(String, Vec<(usize, u32)>)>,
}

impl PanelLayout {
    /// `named`: titles begin with the block's name.
    fn of(block: &Block, chosen: &[AxisChoice], named: bool) -> PanelLayout {
        let is_chosen = |coordinates: &[AxisValue]| {
            chosen.iter().all(|(axis, value)| match coordinates.iter().find(|own| own.axis == *axis) {
                Some(own) => own.value == *value,
                None => true,
            })
        };
        let features: Vec<(u32, Vec<AxisValue>)> =
            block.coordinates().filter(|(_, coordinates)| is_chosen(coordinates)).collect();
        let sides = Sides::of(&features);
        let mut numbers: HashMap<String, usize> = HashMap::new();
        let mut panels: Vec<(String, Vec<(usize, u32)>)> = Vec::new();
        for (index, coordinates) in &features {
            let (cell, rest) = sides.place(coordinates);
            let values: Vec<&str> = rest.iter().map(|own| own.value.as_str()).collect();
            let title = match (values.is_empty(), named) {
                (true, _) => block.name.clone(),
                (false, true) => format!("{}: {}", block.name, values.join(", ")),
                (false, false) => values.join(", "),
            };
            let number = *numbers.entry(title.clone()).or_insert_with(|| {
                panels.push((title, Vec::new()));
                panels.len() - 1
            });
            panels[number].1.push((cell, *index));
        }
        PanelLayout { columns: sides.columns, rows: sides.rows, panels }
    }

    fn panels(&self, weight: impl Fn(u32) -> f64) -> Vec<WeightPanel> {
        let panel = |(title, features): &(String, Vec<(usize, u32)>)| {
            let mut sums = vec![(0.0, 0u32); self.columns * self.rows];
            for (cell, index) in features {
                sums[*cell].0 += weight(*index);
                sums[*cell].1 += 1;
            }
            let mean = |(sum, count): (f64, u32)| (count > 0).then(|| sum / f64::from(count));
            WeightPanel { title: title.clone(), columns: self.columns, weights: sums.into_iter().map(mean).collect() }
        };
        self.panels.iter().map(panel).collect()
    }
}

/// The axes that are drawn along the two sides of a panel.
struct Sides {
    /// A square axis takes both sides.
    square: Option<String>,
    x: Option<String>,
    y: Option<String>,
    columns: usize,
    rows: usize,
}

impl Sides {
    fn of(features: &[(u32, Vec<AxisValue>)]) -> Sides {
        let mut sizes: SortedMap<&str, u32> = SortedMap::new();
        let mut order: Vec<&AxisValue> = Vec::new();
        for own in features.iter().flat_map(|(_, coordinates)| coordinates).filter(|own| !own.of_king) {
            if !sizes.contains_key(own.axis.as_str()) {
                order.push(own);
            }
            let size = match own.place {
                Place::Other(element) => element + 1,
                _ => 8,
            };
            let largest = sizes.get_or_default(&own.axis);
            *largest = size.max(*largest);
        }
        let first =
            |is_wanted: fn(&Place) -> bool| order.iter().find(|own| is_wanted(&own.place)).map(|own| own.axis.clone());
        let square = first(|place| matches!(place, Place::Square(_)));
        if square.is_some() {
            return Sides { square, x: None, y: None, columns: 8, rows: 8 };
        }
        let mut x = first(|place| matches!(place, Place::File(_)));
        let mut y = first(|place| matches!(place, Place::Rank(_)));
        let size = |axis: &Option<String>| axis.as_ref().map_or(1, |axis| sizes[axis.as_str()] as usize);
        let is_long =
            |own: &&&AxisValue| matches!(own.place, Place::Other(_)) && sizes[own.axis.as_str()] as usize >= LEAST_SIDE;
        let mut long: Vec<&&AxisValue> = order.iter().filter(is_long).collect();
        sort_by_key(&mut long, &|own| std::cmp::Reverse(sizes[own.axis.as_str()]));
        let mut long = long.into_iter().map(|own| own.axis.clone());
        x = x.or_else(|| long.next());
        y = y.or_else(|| long.next());
        let columns = size(&x);
        let rows = size(&y);
        Sides { square: None, x, y, columns, rows }
    }

    /// A feature's cell, and its other coordinates without the kings'.
    fn place<'a>(&self, coordinates: &'a [AxisValue]) -> (usize, Vec<&'a AxisValue>) {
        let mut x = 0;
        let mut y = 0;
        let mut rest = Vec::new();
        for own in coordinates.iter().filter(|own| !own.of_king) {
            let is = |axis: &Option<String>| axis.as_ref() == Some(&own.axis);
            match own.place {
                Place::Square(square) if is(&self.square) => (x, y) = (square as usize % 8, square as usize / 8),
                Place::File(number) | Place::Rank(number) | Place::Other(number) if is(&self.x) => x = number as usize,
                Place::File(number) | Place::Rank(number) | Place::Other(number) if is(&self.y) => y = number as usize,
                _ => rest.push(own),
            }
        }
        (y * self.columns + x, rest)
    }
}

/// The contributions of a position's features and pieces to its score, the largest first.
///
/// # Errors
/// When the feature set or the rule of its output buckets cannot be rebuilt.
pub fn contributions(file: &NetFile, position: &impl Position, fen: &str) -> Result<PositionRecord, MeasureError> {
    let set = file.origin.feature_set()?;
    let board = position.board();
    let turn = position.turn();
    let net = &file.net;
    let buckets = BucketChooser::new(&net.shape.buckets, &set)?;
    let active = Active::of(&set, board, buckets.of(board, turn));
    let score = active.score(net, turn);
    let mut features = Vec::new();
    for (side, perspective) in ["white", "black"].into_iter().enumerate() {
        for &index in &active.features[side] {
            let mut without = active.clone();
            without.features[side].retain(|other| *other != index);
            let text = set.describe(index);
            let (block, values) = text.map(|text| (text.block, text.values)).unwrap_or_default();
            let contribution = score - without.score(net, turn);
            features.push(FeatureContribution { perspective: perspective.into(), index, block, values, contribution });
        }
    }
    let mut pieces = Vec::new();
    for square in Square::ALL {
        let Some(piece) = board.piece_at(square).filter(|piece| piece.role != Role::King) else { continue };
        let mut without = board.clone();
        without.discard_piece_at(square);
        let contribution = score - Active::of(&set, &without, buckets.of(&without, turn)).score(net, turn);
        pieces.push(PieceContribution { piece: piece.char(), square: square.to_string(), contribution });
    }
    sort_by(&mut features, &|a, b| b.contribution.abs().total_cmp(&a.contribution.abs()));
    sort_by(&mut pieces, &|a, b| b.contribution.abs().total_cmp(&a.contribution.abs()));
    Ok(PositionRecord { fen: fen.to_owned(), score, features, pieces })
}

/// A network's view of a position.
#[derive(Clone)]
struct Active {
    /// The active features of both perspectives, White's first.
    features: [Vec<u32>; 2],
    /// The output bucket.
    bucket: usize,
}

impl Active {
    fn of(set: &FeatureSet, board: &Board, bucket: usize) -> Active {
        let encode = |pov| {
            let mut active = Vec::new();
            set.encoder().encode(board, pov, &mut active);
            active
        };
        Active { features: Perspective::ALL.map(encode), bucket }
    }

    /// In centipawns, from the side to move's view.
    fn score(&self, net: &QuantNet, turn: Color) -> f64 {
        let Active { features: [white, black], bucket } = self;
        let (stm, nstm) = if turn.is_white() { (white, black) } else { (black, white) };
        let raw = forward_integer(net, *bucket, stm, nstm);
        f64::from(net.scheme.score(raw)) * 100.0 / f64::from(net.scheme.pawn_value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{FloatNet, Origin, Scheme, Shape, quantise};

    fn layout(set: &str, chosen: &[AxisChoice]) -> PanelLayout {
        PanelLayout::of(&FeatureSet::resolve(set).expect("a set").blocks()[0], chosen, false)
    }

    /// Titles, columns and rows of the panels.
    fn shape(set: &str) -> (usize, usize, Vec<String>) {
        let PanelLayout { columns, rows, panels } = layout(set, &[]);
        (columns, rows, panels.into_iter().map(|(title, _)| title).collect())
    }

    #[test]
    fn axes_become_boards_strips_and_panels() {
        let (columns, rows, titles) = shape("piece");
        assert_eq!((columns, rows, titles.len(), titles[0].as_str()), (8, 8, 12, "pawn, own"));
        let (columns, rows, titles) = shape("axis-h");
        assert_eq!((columns, rows, titles.len()), (8, 1, 12), "files");
        assert_eq!((shape("half-ka-v2-hm").0, shape("half-ka-v2-hm").2.len()), (8, 11), "kings are averaged over");
        let (columns, rows, titles) = shape("relative-king-hv");
        assert_eq!((columns, rows, titles.len()), (15, 15, 10));
        assert_eq!(
            shape("file(P) * rank(P) for P in pieces"),
            (8, 8, vec!["file(P) * rank(P) for P in pieces".into()])
        );
    }

    #[test]
    fn a_chosen_king_square_selects_its_rows() {
        let all: usize = layout("half-ka", &[]).panels.iter().map(|(_, features)| features.len()).sum();
        let chosen = layout("half-ka", &[("square(K)".into(), "e1".into())]);
        let of_e1: usize = chosen.panels.iter().map(|(_, features)| features.len()).sum();
        assert_eq!((all, of_e1), (49_152, 768));
        assert!(chosen.panels[0].1.iter().all(|(cell, index)| *cell < 64 && index / 768 == 4));
    }

    #[test]
    fn a_weight_is_drawn_where_its_feature_is() {
        let set = FeatureSet::shipped("piece").expect("shipped");
        let mut float = FloatNet::zeros(&Shape::plain(768, 8, vec![]));
        // White pawn on e4 in its own view: square 28, role 0, colour 0.
        float.ft_weights[(28 * 12) * 8 + 3] = 0.5;
        let file =
            NetFile { origin: Origin::of(&set), net: quantise(&float, &Scheme::stockfish()).expect("quantised") };
        let drawn = neuron_weights(&file, &[3], &[]).expect("drawn");
        let panel = drawn[0].panels.iter().find(|panel| panel.title == "pawn, own").expect("a panel");
        let others = panel.weights.iter().enumerate().filter(|(cell, weight)| *cell != 28 && **weight != Some(0.0));
        assert!((panel.weights[28].expect("a weight") - 0.5).abs() < 0.01 && others.count() == 0);
    }

    /// The contribution of a feature of a linear network is its weight.
    #[test]
    fn contributions_of_a_linear_network_are_its_weights() {
        let set = FeatureSet::shipped("piece").expect("shipped");
        let mut float = FloatNet::zeros(&Shape { psqt: true, ..Shape::plain(768, 8, vec![]) });
        // The last number of a row is its PSQT value.
        for (row, weights) in float.ft_weights.chunks_exact_mut(9).enumerate() {
            weights[8] = (row % 97) as f32 / 97.0;
        }
        let file =
            NetFile { origin: Origin::of(&set), net: quantise(&float, &Scheme::stockfish()).expect("quantised") };
        let fen = "4k3/8/8/8/8/8/4P3/4K3 w - - 0 1";
        let position = crate::chess::parse_fen(fen).expect("legal");
        let found = contributions(&file, &position, fen).expect("measured");
        assert_eq!((found.features.len(), found.pieces.len()), (6, 1));
        let pawn = &found.pieces[0];
        let of_pawn: f64 =
            found.features.iter().filter(|feature| feature.values.contains("pawn")).map(|own| own.contribution).sum();
        assert_eq!((pawn.piece, pawn.square.as_str()), ('P', "e2"));
        assert!((pawn.contribution - of_pawn).abs() < 3.0, "{} {of_pawn}", pawn.contribution);
    }
}
