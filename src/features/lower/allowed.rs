//! The squares on which conditions with one of the kings allow pieces.

use crate::features::code::{Builder, Memory, Operand, Register};
use crate::features::spec::{ConditionSpec, ENEMY_KING, Entity, OWN_KING};

use super::context::{Context, turn};

/// Bitboards by perspective and code, on the board as it stands.
pub struct AllowedSquares {
    by_pov: [Vec<KingMasks>; 2],
}

/// The squares that a king's square allows, by king's square · 16 + code.
struct KingMasks {
    masks: Memory,
    /// King's square · 16; with 1,024 added in one of the mirrored halves.
    first: Register,
}

impl AllowedSquares {
    /// For conditions on the variable `slot` and one king each; `None` if there are no conditions or others.
    pub fn of(
        builder: &mut Builder,
        context: &Context<'_>,
        slot: usize,
        conditions: &[&ConditionSpec],
    ) -> Option<AllowedSquares> {
        let kings = context.kings?;
        let is_such = |condition: &&ConditionSpec| {
            let slots = condition.slots();
            slots.len() == 2 && slots[0] <= ENEMY_KING && slots[1] == slot
        };
        if conditions.is_empty() || !conditions.iter().all(is_such) {
            return None;
        }
        let by_pov = [0, 1].map(|pov: usize| {
            let mut all = Vec::new();
            for king in [OWN_KING, ENEMY_KING] {
                let own: Vec<&ConditionSpec> =
                    conditions.iter().copied().filter(|condition| condition.slots()[0] == king).collect();
                if !own.is_empty() {
                    all.push(KingMasks::of(builder, context, king, slot, &own, pov, kings));
                }
            }
            all
        });
        Some(AllowedSquares { by_pov })
    }

    /// The squares for pieces of a code.
    pub fn by_code(&self, builder: &mut Builder, code: Register, pov: usize) -> Register {
        let mut allowed: Option<Register> = None;
        for king in &self.by_pov[pov] {
            let index = builder.add(king.first, code);
            let masks = builder.load(king.masks, index);
            allowed = Some(match allowed {
                None => masks,
                Some(other) => builder.and(other, masks),
            });
        }
        allowed.unwrap_or_else(|| builder.constant(!0))
    }
}

impl KingMasks {
    fn of(
        builder: &mut Builder,
        context: &Context<'_>,
        king: usize,
        slot: usize,
        conditions: &[&ConditionSpec],
        pov: usize,
        kings: [Register; 2],
    ) -> KingMasks {
        let spec = context.spec;
        let reads_piece = conditions.iter().any(|condition| condition.reads_piece(slot));
        // The turn that orients the board is known from the own king's square; for the enemy king there are two halves.
        let masks = |square: u32, turn: u32| {
            let king_entity = Entity { square: square ^ (turn & 63), role: 5, color: u32::from(king == ENEMY_KING) };
            let mut by_code = [0u64; 16];
            for code in (0..16u32).filter(|code| code & 7 <= 5) {
                if code > 0 && !reads_piece {
                    by_code[code as usize] = by_code[0];
                    continue;
                }
                for square in 0..64u32 {
                    let state = (code << 6 | square) ^ turn;
                    let piece = Entity { square: state & 63, role: state >> 6 & 7, color: state >> 9 };
                    let entity = |of: usize| if of == king { king_entity } else { piece };
                    let holds = conditions.iter().all(|condition| condition.holds(&entity));
                    by_code[code as usize] |= u64::from(holds) << square;
                }
            }
            by_code
        };
        let mut table = Vec::new();
        let first = if king == OWN_KING {
            for square in 0..64 {
                table.extend(masks(square, turn(spec, pov, square) as u32));
            }
            builder.shift_left(kings[pov], 4)
        } else {
            let mut turns: Vec<u32> = (0..64).map(|square| turn(spec, pov, square) as u32).collect();
            turns.sort_unstable_by_key(|turn| turn & 1);
            turns.dedup();
            for turn in turns {
                for square in 0..64 {
                    table.extend(masks(square, turn));
                }
            }
            let of_king = builder.shift_left(kings[1 - pov], 4);
            match context.orientation[pov] {
                Operand::Constant(_) => of_king,
                Operand::Register(turn) => {
                    let half = builder.and(turn, 1);
                    let half = builder.shift_left(half, 10);
                    builder.add(of_king, half)
                }
            }
        };
        KingMasks { masks: builder.bitboards(table), first }
    }
}
