//! Random samples, and networks that tests train on them; used by the tests of the kernels and of `fsbench-tch`, which
//! compare both.

use rand::RngExt;

use super::{
    ActiveFeatures, Batch, Csr, EvalLoss, Factors, FeatureSet, Labels, Loss, Method, Optimisation, PqrLoss, Scheme,
    Seed, TrainingRules,
};

pub const FEATURES: u32 = 40;

/// The rules of a run by both methods.
pub fn rules(optimisation: Optimisation) -> TrainingRules {
    let loss = Loss { eval: EvalLoss::default(), pqr: PqrLoss { kappa: 0.7, output_scale: 300.0 } };
    TrainingRules { optimisation, loss, scheme: Scheme::stockfish() }
}

/// 40 features of 8 files and 5 roles; files and roles are the virtual inputs.
pub fn factors() -> Factors {
    let text = "features = \"file(P) * role(P, pawn..queen) for P in pieces\"\n\
        factor = \"(file(P) + role(P, pawn..queen))\"\n";
    let set = FeatureSet::from_definition(text).expect("a good definition");
    assert_eq!(set.num_features(), FEATURES);
    Factors::of(&set).expect("determined").expect("a factor")
}

/// Random samples with up to 12 features per perspective, including repeated features and empty positions.
pub struct RandomSamples {
    pub method: Method,
    /// Offsets and indices of either perspective.
    pub sides: [(Vec<i32>, Vec<i32>); 2],
    pub bucket_inputs: Vec<u8>,
    pub targets: Vec<f32>,
}

impl RandomSamples {
    pub fn new(method: Method, samples: usize, index: u64) -> RandomSamples {
        let mut rng = Seed(9).stream("samples", index);
        let positions = if method == Method::Pqr { 3 * samples } else { samples };
        let mut side = || {
            let mut offsets = vec![0];
            let mut indices = Vec::new();
            for _ in 0..positions {
                let active = rng.random_range(0..=12);
                indices.extend((0..active).map(|_| rng.random_range(0..FEATURES as i32)));
                offsets.push(indices.len() as i32);
            }
            (offsets, indices)
        };
        let sides = [side(), side()];
        let targets = (0..samples).map(|_| rng.random_range(0.0..1.0)).collect();
        let bucket_inputs = (0..positions).map(|_| rng.random_range(2..=32)).collect();
        RandomSamples { method, sides, bucket_inputs, targets }
    }

    pub fn batch(&self) -> Batch<'_> {
        let active = self.sides.each_ref().map(|(offsets, indices)| ActiveFeatures::from(Csr { offsets, indices }));
        let labels = if self.method == Method::Eval { Labels::Eval(&self.targets) } else { Labels::Pqr };
        Batch { samples: self.targets.len(), active, bucket_inputs: &self.bucket_inputs, labels }
    }
}
