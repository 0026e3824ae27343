//! The variables in scope of a generated function: their names, and what their loops already say of role and colour.

use std::ops::Range;

use crate::features::spec::{ENEMY_KING, Entity, OWN_KING};

/// A variable of a block, as generated code sees it.
#[derive(Clone, Debug)]
pub struct GeneratedVariable {
    /// The author's letter in lower case.
    pub letter: String,
    /// The roles and colours that it can have here.
    pub roles: Range<u32>,
    pub colors: Range<u32>,
}

/// The variables by slot.
#[derive(Clone, Debug)]
pub struct SourceScope {
    variables: Vec<Option<GeneratedVariable>>,
}

impl SourceScope {
    /// With both kings bound.
    pub fn with_kings(slots: usize) -> SourceScope {
        let mut scope = SourceScope { variables: vec![None; slots.max(2)] };
        for (slot, letter, color) in [(OWN_KING, "k", 0), (ENEMY_KING, "e", 1)] {
            let king = GeneratedVariable { letter: letter.to_owned(), roles: 5..6, colors: color..color + 1 };
            scope.variables[slot] = Some(king);
        }
        scope
    }

    pub fn bind(&mut self, slot: usize, variable: GeneratedVariable) {
        self.variables[slot] = Some(variable);
    }

    /// A bound variable. The specification binds every slot before it is read.
    pub fn variable(&self, slot: usize) -> &GeneratedVariable {
        self.variables[slot].as_ref().expect("variables are bound before they are read")
    }

    pub fn square(&self, slot: usize) -> String {
        format!("{}_square", self.variable(slot).letter)
    }

    /// The role as a number or a name.
    pub fn role(&self, slot: usize) -> String {
        let variable = self.variable(slot);
        constant(&variable.roles).map_or_else(|| format!("{}_role", variable.letter), |role| role.to_string())
    }

    pub fn color(&self, slot: usize) -> String {
        let variable = self.variable(slot);
        constant(&variable.colors).map_or_else(|| format!("{}_color", variable.letter), |color| color.to_string())
    }

    /// The role, if it is known.
    pub fn known_role(&self, slot: usize) -> Option<u32> {
        constant(&self.variable(slot).roles)
    }

    pub fn known_color(&self, slot: usize) -> Option<u32> {
        constant(&self.variable(slot).colors)
    }

    /// The entities that the variable can be, on all squares.
    pub fn entities(&self, slot: usize) -> impl Iterator<Item = Entity> + '_ {
        let variable = self.variable(slot);
        let kinds = variable.colors.clone().flat_map(|color| variable.roles.clone().map(move |role| (color, role)));
        kinds.flat_map(|(color, role)| (0..64).map(move |square| Entity { square, role, color }))
    }
}

fn constant(range: &Range<u32>) -> Option<u32> {
    (range.len() == 1).then_some(range.start)
}
