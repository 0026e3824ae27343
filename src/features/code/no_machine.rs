//! Stands in for machine code in builds without it.

use super::executable::{Inputs, Obstacle, Outputs};
use super::form::Program;
use crate::chess::{BoardChange, PieceBoard};
use crate::features::delta::Delta;

#[derive(Debug)]
pub(super) enum MachineCode {}

impl MachineCode {
    pub(super) fn compile(_: &Program) -> Result<MachineCode, Obstacle> {
        Err(Obstacle::Build)
    }

    pub(super) fn direct(self) -> Result<DirectCode, MachineCode> {
        match self {}
    }

    pub(super) fn run(&self, _: &mut Inputs<'_>, _: &mut [u8], _: &mut Outputs<'_>) -> bool {
        match *self {}
    }
}

#[derive(Debug)]
pub(super) enum DirectCode {}

impl DirectCode {
    pub(super) fn run(&self, _: &PieceBoard, _: &BoardChange, _: &PieceBoard, _: [&mut Delta; 2]) {
        match *self {}
    }
}
