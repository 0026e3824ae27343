//! Factors: coarser features whose rows several features share. During training each factor is a virtual input beside
//! the real ones; on export a real row receives the sum of its virtual rows.

use std::ops::ControlFlow;

use super::analysis::{BindingSearch, Budget, SearchEnd};
use super::error::FeatureError;
use super::reference;
use super::set::FeatureSet;
use super::spec::{BlockFactor, ProductSpec};

/// Most search steps for a set's bindings, where training needs the answer.
pub(super) const MAX_STEPS: u64 = 1 << 32;
/// The same where the answer may stay open.
const MAX_LIMITED_STEPS: u64 = 1 << 26;

/// The result of a check of a set's factors.
#[derive(Debug)]
pub enum FactorCheck {
    /// No block has a factor.
    None,
    /// Every feature determines its virtual inputs.
    Determined(Factors),
    /// There are too many bindings to tell.
    Undecided { size: u32, error: FeatureError },
}

/// Why a feature's virtual inputs are not determined.
pub(super) enum Undetermined {
    OutOfSteps,
    /// Different bindings give the feature different inputs.
    Ambiguous(String),
}

/// The virtual inputs of every feature of a set.
///
/// ```
/// use fsbench::features::{Factors, FeatureSet};
///
/// let text = "features = \"file(K) * square(P) for P in pieces\"\nfactor = \"square(P)\"";
/// let factors = Factors::of(&FeatureSet::from_definition(text)?)?.expect("the block has a factor");
/// assert_eq!((factors.size, factors.inputs(2 * 64 + 12)), (64, &[12][..]));
/// # Ok::<(), fsbench::features::FeatureError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Factors {
    /// Number of virtual inputs, with the blocks' factors side by side.
    pub size: u32,
    /// Feature i has `inputs[starts[i]..starts[i + 1]]`, ascending.
    starts: Vec<u32>,
    inputs: Vec<u32>,
}

impl Factors {
    /// `None` when no block has a factor.
    ///
    /// # Errors
    /// When two bindings yield the same feature and different virtual inputs.
    pub fn of(set: &FeatureSet) -> Result<Option<Factors>, FeatureError> {
        match Factors::check(set, Budget::THOROUGH, MAX_STEPS)? {
            FactorCheck::None => Ok(None),
            FactorCheck::Determined(factors) => Ok(Some(factors)),
            FactorCheck::Undecided { error, .. } => Err(error),
        }
    }

    /// [`Factors::of`] as far as the budget allows.
    ///
    /// # Errors
    /// When some feature is known not to determine its virtual inputs.
    pub fn within(set: &FeatureSet, budget: Budget) -> Result<FactorCheck, FeatureError> {
        Factors::check(set, budget, if budget.limited() { MAX_LIMITED_STEPS } else { u64::MAX })
    }

    fn check(set: &FeatureSet, budget: Budget, mut steps: u64) -> Result<FactorCheck, FeatureError> {
        let mut size = 0u32;
        for factor in set.blocks().iter().filter_map(|block| block.spec().factor.as_ref()) {
            let sum = size.checked_add(factor.product.size);
            size = sum.ok_or_else(|| factor.error("the factors have more than 2^32 − 1 values".into()))?;
        }
        if size == 0 {
            return Ok(FactorCheck::None);
        }
        let mut rows: Vec<Vec<u32>> = vec![Vec::new(); set.num_features() as usize];
        let mut first = 0;
        for block in set.blocks() {
            let spec = block.spec();
            let Some(factor) = &spec.factor else { continue };
            let search = BindingSearch::new(spec, budget);
            for element in 0..spec.product.size {
                let Some(index) = spec.index_of(element) else { continue };
                match inputs(&search, &factor.product, element, &mut steps) {
                    Ok(own) => rows[index as usize] = own.into_iter().map(|input| input + first).collect(),
                    Err(Undetermined::Ambiguous(why)) => return Err(factor.error(why)),
                    Err(Undetermined::OutOfSteps) => {
                        let why = "the block has too many bindings to tell whether its features determine this factor";
                        return Ok(FactorCheck::Undecided { size, error: factor.error(why.into()) });
                    }
                }
            }
            first += factor.product.size;
        }
        Ok(FactorCheck::Determined(Factors::from_rows(size, rows)))
    }

    /// From each feature's inputs below `size`.
    pub(super) fn from_rows(size: u32, rows: Vec<Vec<u32>>) -> Factors {
        let mut starts = vec![0u32];
        let mut inputs = Vec::new();
        for row in rows {
            inputs.extend(row);
            starts.push(inputs.len() as u32);
        }
        Factors { size, starts, inputs }
    }

    /// Number of features.
    pub(super) fn features(&self) -> u32 {
        self.starts.len() as u32 - 1
    }

    /// A hash of all features' virtual inputs.
    #[must_use]
    pub fn hash(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for numbers in [&[self.size][..], &self.starts, &self.inputs] {
            hasher.update(&(numbers.len() as u64).to_le_bytes());
            numbers.iter().for_each(|number| {
                hasher.update(&number.to_le_bytes());
            });
        }
        hasher.finalize().to_hex().to_string()
    }

    /// The virtual inputs of a feature; empty for features that are never active and in blocks without a factor.
    #[must_use]
    pub fn inputs(&self, feature: u32) -> &[u32] {
        let [start, end] = [feature, feature + 1].map(|at| self.starts[at as usize] as usize);
        &self.inputs[start..end]
    }
}

impl BlockFactor {
    fn error(&self, why: String) -> FeatureError {
        self.text.at(why, 0..self.expression.len())
    }
}

/// The elements of a product over the block's variables for one element of the block. They must be the same for every
/// binding that yields it.
pub(super) fn inputs(
    search: &BindingSearch<'_>,
    product: &ProductSpec,
    element: u32,
    budget: &mut u64,
) -> Result<Vec<u32>, Undetermined> {
    *budget = budget.checked_sub(search.decoding_steps()).ok_or(Undetermined::OutOfSteps)?;
    let Some(constraints) = search.constraints(element) else { return Ok(Vec::new()) };
    let mut found: Option<Vec<u32>> = None;
    let mut other = None;
    let ended = search.bindings(&constraints, budget, &mut |_, entities| {
        let mut values = reference::elements(product, entities);
        values.sort_unstable();
        match &found {
            Some(known) if *known != values => {
                other = Some(values);
                return ControlFlow::Break(());
            }
            _ => found = Some(values),
        }
        ControlFlow::Continue(())
    });
    let known = found.unwrap_or_default();
    match (ended, other) {
        (SearchEnd::OutOfBudget, _) => Err(Undetermined::OutOfSteps),
        (_, Some(other)) => Err(Undetermined::Ambiguous(format!(
            "feature {element} of the block does not determine this factor: different positions give it the values \
             {known:?} and {other:?}"
        ))),
        _ => Ok(known),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factors(text: &str) -> Result<Factors, String> {
        let set = FeatureSet::from_definition(text).expect("a definition");
        Factors::of(&set).map(|factors| factors.expect("a factor")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_piece_on_its_square_without_the_king() {
        let half_kp = "features = \"square(K) * (reserved(1) + role(P, pawn..queen) * color(P) * square(P)) for P in \
            pieces\"\nfactor = \"role(P, pawn..queen) * color(P) * square(P)\"\n";
        let factors = factors(half_kp).expect("determined");
        assert_eq!(factors.size, 640);
        assert_eq!(factors.inputs(0), [] as [u32; 0], "reserved");
        // An own knight on c3 seen from e1, and the same on the king's own square, where it never stands.
        assert_eq!(factors.inputs(641 * 4 + 1 + 128 + 18), [128 + 18]);
        assert_eq!(factors.inputs(641 * 4 + 1 + 128 + 4), [] as [u32; 0]);
    }

    #[test]
    fn the_kings_plane_tells_whose_king_it_is() {
        let half_ka = "features = \"square(K) * (role(P, pawn..queen) * color(P) + role(P, king)) * square(P) for P in \
            pieces\"\nfactor = \"role(P) * color(P) * square(P)\"\n";
        let factors = factors(half_ka).expect("determined");
        let feature = |king: u32, plane: u32, square: u32| king * 704 + plane * 64 + square;
        assert_eq!(factors.size, 768);
        assert_eq!(factors.inputs(feature(4, 10, 4)), [10 * 64 + 4]);
        assert_eq!(factors.inputs(feature(4, 10, 60)), [11 * 64 + 60]);
        assert_eq!(factors.inputs(feature(4, 10, 12)), [] as [u32; 0], "the kings would touch");
        assert_eq!(factors.inputs(feature(4, 2, 33)), [2 * 64 + 33]);
    }

    #[test]
    fn sums_give_several_inputs_and_terms_have_their_own() {
        let text = "features = \"square(P) * role(P) for P in pieces + file(P) for P in pieces + axis-v\"\n\
            factor = [\"(square(P) + role(P))\", \"\"]\n";
        let factors = factors(text).expect("determined");
        assert_eq!(factors.size, 70);
        assert_eq!(factors.inputs(9 * 6 + 3), [9, 64 + 3]);
        assert_eq!(factors.inputs(384), [] as [u32; 0]);
    }

    #[test]
    fn a_factor_that_the_feature_does_not_determine_is_refused() {
        let check = |features: &str, factor: &str, expected: &str| {
            let text = format!("features = \"{features}\"\nfactor = \"{factor}\"\n");
            let error = factors(&text).expect_err("not determined");
            assert!(error.contains(expected), "{error}");
        };
        check(
            "square(P) * color(P) for P in pieces",
            "role(P)",
            "feature 0 of the block does not determine this factor",
        );
        check("file(P) for P in pieces", "square(P)", "does not determine");
        check("square(P) for P in pieces", "square(K)", "does not determine");
        check("(file(K) - file(P)) for P in pieces", "file(P)", "does not determine");
    }
}
