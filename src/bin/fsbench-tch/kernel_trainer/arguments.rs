//! The structures that the kernels take, as kernels.cu declares them.

use std::ffi::{c_int, c_void};
use std::ptr;

use fsbench::train::trainer::Adam;
use fsbench::train::{EvalLoss, LossForm, PqrLoss};

/// Memory of the device.
pub type Memory = *mut c_void;

#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct Step {
    number: c_int,
    rate: f32,
    correction: f32,
    decay: f32,
    longest: f32,
    synchronise: c_int,
}

impl Step {
    /// `longest`: the longest gradient.
    #[must_use]
    pub fn new(number: u64, adam: Adam, longest: Option<f64>, synchronise: bool) -> Step {
        Step {
            // Named as soon as it is noted; no run takes 2³¹ steps.
            number: c_int::try_from(number).unwrap_or(c_int::MAX),
            rate: adam.rate,
            correction: adam.correction.unwrap_or(0.0),
            decay: adam.decay_factor,
            longest: longest.unwrap_or(0.0) as f32,
            synchronise: synchronise.into(),
        }
    }
}

#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct Loss {
    form: c_int,
    power: f64,
    output_scale: f64,
    output_offset: f64,
    asymmetry: f64,
    epsilon: f64,
    kappa: f64,
    centipawns: f64,
    weight: f64,
}

impl Loss {
    /// `weight`: of one sample's loss in the loss that is minimised.
    #[must_use]
    pub fn eval(loss: &EvalLoss, centipawns: f64, weight: f64) -> Loss {
        let form = match loss.form {
            LossForm::Power => 0,
            LossForm::Epsilon => 1,
        };
        let EvalLoss { power, output_scale, output_offset, qp_asymmetry: asymmetry, epsilon, .. } = *loss;
        Loss { form, power, output_scale, output_offset, asymmetry, epsilon, kappa: 0.0, centipawns, weight }
    }

    /// See [`Loss::eval`].
    #[must_use]
    pub fn pqr(loss: &PqrLoss, centipawns: f64, weight: f64) -> Loss {
        let PqrLoss { kappa, output_scale } = *loss;
        let none = 0.0;
        Loss {
            form: 0,
            power: none,
            output_scale,
            output_offset: none,
            asymmetry: none,
            epsilon: none,
            kappa,
            centipawns,
            weight,
        }
    }
}

#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct Lists {
    pub indices: [Memory; 2],
    pub offsets: [Memory; 2],
}

#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct Array {
    pub values: Memory,
    pub first: Memory,
    pub second: Memory,
    pub gradient: Memory,
    pub slow: Memory,
    pub copy: Memory,
    pub half_copy: Memory,
    pub starts: Memory,
    pub list: Memory,
    pub listed: Memory,
    pub sums_gradients: c_int,
    pub rows: c_int,
    pub stride: c_int,
    pub limit: f32,
    pub narrow: f32,
    pub narrow_rows: c_int,
    pub narrow_columns: c_int,
    pub bias_column: c_int,
    pub decays: c_int,
    pub grid: f64,
}

const MOST_ARRAYS: usize = 6;

#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct Arrays {
    number: c_int,
    each: [Array; MOST_ARRAYS],
}

impl Arrays {
    /// At least one array and at most six.
    #[must_use]
    pub fn new(arrays: &[Array]) -> Arrays {
        let each = std::array::from_fn(|index| arrays[index.min(arrays.len() - 1)]);
        Arrays { number: arrays.len() as c_int, each }
    }
}

#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct Head {
    pub z1: Memory,
    pub weights_2: Memory,
    pub weights_3: Memory,
    pub table: Memory,
    pub lists: Lists,
    pub pieces: Memory,
    pub gradients_1: Memory,
    pub inputs_2: Memory,
    pub inputs_3: Memory,
    pub gradients_2: Memory,
    pub gradients_3: Memory,
    pub output_gradients: Memory,
    pub losses: Memory,
    pub preferred: Memory,
}

impl Head {
    /// Without layers, gradients and single losses.
    #[must_use]
    pub fn new(z1: Memory, table: Memory, lists: Lists, pieces: Memory) -> Head {
        let none = ptr::null_mut();
        Head {
            z1,
            weights_2: none,
            weights_3: none,
            table,
            lists,
            pieces,
            gradients_1: none,
            inputs_2: none,
            inputs_3: none,
            gradients_2: none,
            gradients_3: none,
            output_gradients: none,
            losses: none,
            preferred: none,
        }
    }
}
