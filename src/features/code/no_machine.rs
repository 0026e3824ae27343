//! Stands in for machine code in builds without it.

use super::executable::{Inputs, Obstacle, Outputs};
use super::form::Program;

#[derive(Debug)]
pub(super) enum MachineCode {}

impl MachineCode {
    pub(super) fn compile(_: &Program) -> Result<MachineCode, Obstacle> {
        Err(Obstacle::Build)
    }

    pub(super) fn is_bare_with(&self, _: u8) -> bool {
        match *self {}
    }

    pub(super) fn run_bare(&self, _: &Inputs<'_>, _: &mut Outputs<'_>) -> bool {
        match *self {}
    }

    pub(super) fn run(&self, _: &mut Inputs<'_>, _: &mut [u8], _: &mut Outputs<'_>) -> bool {
        match *self {}
    }
}
