//! What the kings decide for a block, before any variable is bound: how the board is oriented, and their part of the
//! rows.

use crate::chess::{Mirror, Perspective, Square};
use crate::features::code::{Binary, BoardTime, Builder, Operand, Register};
use crate::features::compiled::{CompiledBlock, NONE, TableTerm};
use crate::features::set::Block;
use crate::features::spec::{
    BlockSpec, ConditionSpec, CountSpec, ENEMY_KING, Entity, GuardSpec, OWN_KING, VariableKind,
};

use super::conditions::Conditions;
use super::rows::Rows;

/// The squares of White's and of Black's king, on the board as it stands.
pub type KingSquares = [Register; 2];

/// A block and what the kings decide for it, for each perspective.
pub struct Context<'a> {
    pub block: &'a CompiledBlock,
    /// As compiled: without axes of two variables.
    pub spec: &'a BlockSpec,
    /// Only where the block reads a king or is mirrored.
    pub kings: Option<KingSquares>,
    /// The exclusive or with a state, code · 64 + square, that gives the relative code and the oriented square.
    pub orientation: [Operand; 2],
    /// What the kings decide for all rows.
    pub(super) hold: Conditions,
    /// By term; empty if there are many.
    pub(super) bases: Vec<TermBase>,
    /// The set's index of the block's first element; 0 if a table gives indices.
    pub(super) first: u32,
}

/// The part of a term's rows that the kings decide.
pub struct TermBase {
    part: KingPart,
    pub(super) conditions: Conditions,
}

enum KingPart {
    Constant(u32),
    /// For both perspectives, and both in one register.
    Registers {
        each: [Register; 2],
        packed: Option<Register>,
    },
}

impl TermBase {
    pub(super) const fn constant(&self) -> Option<u32> {
        match self.part {
            KingPart::Constant(value) => Some(value),
            KingPart::Registers { .. } => None,
        }
    }

    /// One perspective's part.
    pub(super) const fn part(&self, pov: usize) -> Operand {
        match self.part {
            KingPart::Constant(value) => Operand::Constant(value as u64),
            KingPart::Registers { each, .. } => Operand::Register(each[pov]),
        }
    }

    pub(super) fn rows(&self, builder: &mut Builder) -> Rows {
        match self.part {
            KingPart::Constant(value) => Rows::Packed(builder.constant(u64::from(value) | u64::from(value) << 32)),
            KingPart::Registers { packed: Some(packed), .. } => Rows::Packed(packed),
            KingPart::Registers { each, packed: None } => Rows::Each(each.map(Some)),
        }
    }
}

/// The squares of the kings; each side has one.
pub fn king_squares(builder: &mut Builder, time: BoardTime) -> KingSquares {
    [5, 13].map(|code: u64| {
        let king = builder.by_code(time, code);
        builder.lowest(king)
    })
}

impl<'a> Context<'a> {
    /// Writes what is to be known of the kings. Not inside of loops: `kings` are shared by all blocks of a program; those
    /// of the board before if there are none yet.
    pub fn new(builder: &mut Builder, block: &'a Block, kings: &mut Option<KingSquares>) -> Context<'a> {
        let compiled = &block.compiled;
        let spec = compiled.spec();
        let mut context = Context {
            block: compiled,
            spec,
            kings: None,
            orientation: [0, 1].map(|pov| Operand::Constant(turn(spec, pov, 0))),
            hold: Conditions::ALWAYS,
            bases: Vec::new(),
            first: block.first_element(),
        };
        if context.reads_kings() {
            let squares = *kings.get_or_insert_with(|| king_squares(builder, BoardTime::Before));
            context.kings = Some(squares);
            if spec.orientation.mirror != Mirror::None {
                context.orientation = [0, 1].map(|pov| {
                    let turns = (0..64).map(|king| turn(spec, pov, king) as u32).collect();
                    let memory = builder.words(turns);
                    Operand::Register(builder.load(memory, squares[pov]))
                });
            }
        }
        context.hold = context.decided_by_kings(builder);
        if compiled.terms().len() <= super::MOST_TERMS {
            for term in compiled.terms() {
                let base = context.base(builder, term);
                context.bases.push(base);
            }
        }
        context
    }

    /// The part of a term's rows that is not its variables', if the kings have none in it.
    pub fn constant_base(&self, term: usize) -> Option<u32> {
        self.bases.get(term).and_then(TermBase::constant)
    }

    pub fn is_mirrored(&self) -> bool {
        self.spec.orientation.mirror != Mirror::None
    }

    /// The table that gives the indices of elements.
    pub(super) fn renumbering(&self) -> Option<&'a [u32]> {
        self.spec.renumbering.as_deref()
    }

    /// All values that a perspective's orientation of a kind of variable may have.
    pub fn turns(&self, pov: usize, kind: VariableKind) -> Vec<usize> {
        let among = if kind == VariableKind::Square { 63 } else { 1023 };
        let mut turns: Vec<usize> = (0..64).map(|king| turn(self.spec, pov, king) as usize & among).collect();
        turns.sort_unstable();
        turns.dedup();
        turns
    }

    /// The exclusive or that orients the states of a kind of variable.
    pub fn orientation_of(&self, builder: &mut Builder, kind: VariableKind) -> [Operand; 2] {
        match kind {
            VariableKind::Piece => self.orientation,
            VariableKind::Square => self.orientation.map(|turn| match turn {
                Operand::Constant(turn) => Operand::Constant(turn & 63),
                Operand::Register(turn) => Operand::Register(builder.and(turn, 63)),
            }),
        }
    }

    /// The conditions over several variables that are not decided by the kings alone.
    pub fn joint_conditions(&self) -> Vec<&'a ConditionSpec> {
        let conjuncts = self.spec.condition.iter().flat_map(ConditionSpec::conjuncts);
        conjuncts.filter(|condition| condition.slots().len() > 1 && !is_of_kings(condition)).collect()
    }

    fn reads_kings(&self) -> bool {
        let spec = self.spec;
        let is_king = |slot: &usize| *slot <= ENEMY_KING;
        let conditions = spec.condition.iter().flat_map(ConditionSpec::slots);
        let guards = spec.guards.iter().flat_map(GuardSpec::slots);
        let counts = spec.counts().into_iter().flat_map(CountSpec::outer_slots);
        let sources = spec.binders.iter().filter_map(|binder| binder.source.of());
        self.is_mirrored()
            || self.block.terms().iter().any(|term| !reads_nothing(term))
            || conditions.chain(guards).chain(counts).chain(sources).any(|slot| is_king(&slot))
    }

    /// Conditions that the kings decide together, or nothing decides.
    fn king_conditions(&self) -> Vec<&'a ConditionSpec> {
        let conjuncts = self.spec.condition.iter().flat_map(ConditionSpec::conjuncts);
        conjuncts.filter(|condition| is_of_kings(condition) && condition.slots().len() != 1).collect()
    }

    /// Whether the conditions that the kings decide together hold.
    fn decided_by_kings(&self, builder: &mut Builder) -> Conditions {
        let conditions = self.king_conditions();
        if conditions.is_empty() {
            return Conditions::ALWAYS;
        }
        let Some(kings) = self.kings else {
            let holds = conditions.iter().all(|condition| condition.holds(&|_: usize| Entity::bare(0)));
            return if holds { Conditions::ALWAYS } else { Conditions::both(builder.constant(0)) };
        };
        Conditions([0, 1].map(|pov: usize| {
            let allowed = (0..64).map(|own| self.allowed_enemies(&conditions, pov, own)).collect();
            let memory = builder.bitboards(allowed);
            let allowed = builder.load(memory, kings[pov]);
            let allowed = builder.shift_right(allowed, kings[1 - pov]);
            Some(builder.and(allowed, 1))
        }))
    }

    /// The squares of the own and the enemy king as a perspective sees them.
    pub(super) fn oriented_kings(&self, builder: &mut Builder, kings: KingSquares, pov: usize) -> [Register; 2] {
        let turn = self.orientation_of(builder, VariableKind::Square)[pov];
        [pov, 1 - pov].map(|color| builder.xor(kings[color], turn))
    }

    fn base(&self, builder: &mut Builder, term: &TableTerm) -> TermBase {
        let first = self.first;
        let Some(kings) = self.kings.filter(|_| !reads_nothing(term)) else {
            return TermBase { part: KingPart::Constant(term.base + first), conditions: self.hold };
        };
        let mut conditions = Conditions::ALWAYS;
        let each = [0, 1].map(|pov: usize| {
            let mut all = Vec::new();
            let oriented = |king: u32| king ^ (turn(self.spec, pov, king) as u32 & 63);
            let own = |king: u32| match term.tables[OWN_KING][oriented(king) as usize] {
                NONE => NONE,
                entry => entry + term.base + first,
            };
            let mut sum = entry(builder, (0..64).map(own).collect(), kings[pov], &mut all);
            if term.tables[ENEMY_KING].iter().any(|entry| *entry != 0) {
                let [_, square] = self.oriented_kings(builder, kings, pov);
                let enemy = entry(builder, term.tables[ENEMY_KING].clone(), square, &mut all);
                sum = builder.add(sum, enemy);
            }
            conditions.0[pov] = all.into_iter().reduce(|left, right| builder.binary(Binary::And, left, right));
            sum
        });
        // No sum of a row that is not there runs over into the other half.
        let can_pack = !self.is_mirrored() && conditions == Conditions::ALWAYS;
        let conditions = self.hold.and(builder, conditions);
        let packed = can_pack.then(|| {
            let black = builder.shift_left(each[1], 32);
            builder.or(black, each[0])
        });
        TermBase { part: KingPart::Registers { each, packed }, conditions }
    }

    /// The squares of the enemy king, on the board as it stands, where conditions over both kings hold.
    fn allowed_enemies(&self, conditions: &[&ConditionSpec], pov: usize, own: u32) -> u64 {
        let mask = turn(self.spec, pov, own) as u32 & 63;
        let king =
            |slot: usize, square: u32| Entity { square: square ^ mask, role: 5, color: u32::from(slot == ENEMY_KING) };
        let holds = |enemy: u32| {
            let entity = |slot: usize| king(slot, if slot == OWN_KING { own } else { enemy });
            conditions.iter().all(|condition| condition.holds(&entity))
        };
        (0..64).filter(|enemy| holds(*enemy)).fold(0, |squares, enemy| squares | 1 << enemy)
    }
}

/// A king's entry in a table; what must hold for it goes to `conditions`.
fn entry(builder: &mut Builder, table: Vec<u32>, square: Register, conditions: &mut Vec<Register>) -> Register {
    let may_fail = table.contains(&NONE);
    let memory = builder.words(table);
    let entry = builder.load(memory, square);
    if may_fail {
        conditions.push(builder.not_equal(entry, u64::from(NONE)));
    }
    entry
}

/// Perspective · 512 + the mask that orients squares, for a square of the own king.
pub fn turn(spec: &BlockSpec, pov: usize, own: u32) -> u64 {
    let mask = spec.orientation.mask(Square::new(own), Perspective::ALL[pov]);
    (pov as u64) << 9 | u64::from(mask)
}

/// Whether the kings add nothing to a term's rows and decide nothing.
fn reads_nothing(term: &TableTerm) -> bool {
    term.tables[..=ENEMY_KING].iter().flatten().all(|entry| *entry == 0)
}

fn is_of_kings(condition: &ConditionSpec) -> bool {
    condition.slots().iter().all(|slot| *slot <= ENEMY_KING)
}
