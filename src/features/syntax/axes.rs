//! The axes of an expression, wherever they stand.

use super::{Axis, Condition, Count, Factor, Product, ProductBlock, Term};

impl ProductBlock {
    /// The axes of its factors and of all conditions.
    pub fn axes(&self) -> Vec<&Axis> {
        let mut axes = self.product.axes();
        self.condition.iter().for_each(|condition| condition.add_axes(&mut axes));
        axes
    }
}

impl Product {
    /// The axes of its factors, with the conditions of counts.
    pub fn axes(&self) -> Vec<&Axis> {
        let mut axes = Vec::new();
        self.add_axes(&mut axes);
        axes
    }

    fn add_axes<'a>(&'a self, axes: &mut Vec<&'a Axis>) {
        for factor in &self.factors {
            match factor {
                Factor::Axis(axis) => axes.push(axis),
                Factor::Difference(left, right, _) => axes.extend([left, right]),
                Factor::Sum(products, _) => products.iter().for_each(|product| product.add_axes(axes)),
                Factor::Pair(products, _) => products.iter().for_each(|product| product.add_axes(axes)),
                Factor::Count(count) => count.add_axes(axes),
                Factor::Reserved(..) | Factor::Reach(_) => {}
            }
        }
    }
}

impl Count {
    fn add_axes<'a>(&'a self, axes: &mut Vec<&'a Axis>) {
        self.condition.iter().for_each(|condition| condition.add_axes(axes));
    }
}

impl Condition {
    fn add_axes<'a>(&'a self, axes: &mut Vec<&'a Axis>) {
        match self {
            Condition::Any(parts) | Condition::All(parts) => parts.iter().for_each(|part| part.add_axes(axes)),
            Condition::Not(part) => part.add_axes(axes),
            Condition::Compare(left, _, right) => [left, right].into_iter().for_each(|term| term.add_axes(axes)),
        }
    }
}

impl Term {
    fn add_axes<'a>(&'a self, axes: &mut Vec<&'a Axis>) {
        match self {
            Term::Number(_) | Term::Named(..) => {}
            Term::Axis(axis) => axes.push(axis),
            Term::Count(count) => count.add_axes(axes),
            Term::Negative(term) | Term::Absolute(term) => term.add_axes(axes),
            Term::Sum(left, right) | Term::Difference(left, right) => {
                [left, right].into_iter().for_each(|term| term.add_axes(axes));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BlockExpr, parse};

    #[test]
    fn axes_are_found_wherever_they_stand() {
        let text = "(file(P) - rank(Q)) * (role(P) + color(P)) * count(3 for R in pieces if square(R) == e4) for P in \
                    pieces, Q in pieces if not (abs(diagonal(P) - file(Q)) > 1 or bucket( K , zones ) == 2)";
        let terms = parse(text).expect("an expression");
        let [BlockExpr::Product(block)] = &terms[..] else { panic!("{terms:?}") };
        let found: Vec<String> =
            block.axes().iter().map(|axis| format!("{}({})", axis.kind.name(), axis.variable.letter.0)).collect();
        let expected =
            ["file(P)", "rank(Q)", "role(P)", "color(P)", "square(R)", "diagonal(P)", "file(Q)", "bucket(K)"];
        assert_eq!(found, expected);
    }
}
