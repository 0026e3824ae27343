//! Stands in for machine code in builds without it.

use super::executable::{Inputs, Obstacle};
use super::form::Program;

#[derive(Debug)]
pub(super) enum MachineCode {}

impl MachineCode {
    pub(super) fn compile(_: &Program) -> Result<MachineCode, Obstacle> {
        Err(Obstacle::Build)
    }

    pub(super) fn run<const KINDS: usize>(
        &self,
        _: &Program,
        _: &mut Inputs<'_>,
        _: &mut [u8],
        _: &mut [[&mut Vec<u32>; 2]; KINDS],
    ) -> bool {
        match *self {}
    }
}
