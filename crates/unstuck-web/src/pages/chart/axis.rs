//! The length and the marks of a chart axis.

/// An axis from 0 to a round number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Axis {
    /// Distance between two marks: 1, 2 or 5 times a power of ten.
    pub(crate) step: f64,
    /// Number of steps, at least one.
    pub(crate) steps: u32,
}

/// The unit of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Whole numbers.
    Count,
    /// Shares from 0 to 1.
    Share,
    /// Seconds.
    Seconds,
}

/// Returns the minimum length of an axis, so that zero values are drawn as zero.
const fn minimum_extent(unit: Unit) -> f64 {
    match unit {
        Unit::Count => 1.0,
        Unit::Share => 0.05,
        Unit::Seconds => 1.0,
    }
}

impl Axis {
    /// Returns the shortest axis with at most `most` steps that covers the greatest value.
    pub(crate) fn covering(greatest: f64, unit: Unit, most: u32) -> Self {
        let greatest = if greatest.is_finite() {
            greatest.clamp(minimum_extent(unit), 1e15)
        } else {
            minimum_extent(unit)
        };
        let most = most.max(1);
        let rough = greatest / f64::from(most);
        let power = 10_f64.powf(rough.log10().floor());
        let round = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
        let fits = |step: &f64| *step * f64::from(most) >= greatest * (1.0 - 1e-9);
        let step = round.into_iter().find(fits).unwrap_or(10.0 * power);
        let step = match unit {
            Unit::Count => step.max(1.0),
            _ => step,
        };
        let steps = (greatest / step - 1e-9).ceil().max(1.0) as u32;
        Self { step, steps }
    }

    /// Returns the end of the axis.
    pub(crate) fn top(self) -> f64 {
        self.step * f64::from(self.steps)
    }

    /// Returns the marks, from 0 up.
    pub(crate) fn marks(self) -> impl DoubleEndedIterator<Item = f64> {
        (0..=self.steps).map(move |n| self.step * f64::from(n))
    }

    /// Returns the position of a value on the axis, from 0 to 1.
    pub(crate) fn fraction(self, value: f64) -> f64 {
        if value.is_finite() {
            (value / self.top()).clamp(0.0, 1.0)
        } else {
            0.0
        }
    }
}

impl Unit {
    /// Formats a value with its unit.
    pub(crate) fn format(self, value: f64) -> String {
        match self {
            Self::Count => format_count(value),
            Self::Share => format!("{} %", format_decimals(value * 100.0, 1)),
            Self::Seconds => format_seconds(value),
        }
    }
}

fn format_count(value: f64) -> String {
    match value.abs() {
        0.0..10_000.0 => format_decimals(value, 1),
        10_000.0..1e6 => format!("{}k", format_decimals(value / 1e3, 1)),
        1e6..1e9 => format!("{}M", format_decimals(value / 1e6, 1)),
        _ => format!("{}G", format_decimals(value / 1e9, 1)),
    }
}

fn format_seconds(value: f64) -> String {
    match value {
        0.0..1.0 if value > 0.0 => format!("{} ms", format_decimals(value * 1e3, 0)),
        0.0..120.0 => format!("{} s", format_decimals(value, 1)),
        120.0..7200.0 => format!("{} min", format_decimals(value / 60.0, 1)),
        _ => format!("{} h", format_decimals(value / 3600.0, 1)),
    }
}

/// Formats a number with at most this many decimals, without trailing zeros.
fn format_decimals(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn units() -> impl Strategy<Value = Unit> {
        prop_oneof![Just(Unit::Count), Just(Unit::Share), Just(Unit::Seconds)]
    }

    proptest! {
        #[test]
        fn axis_covers_the_data_and_is_not_much_longer(
            greatest in prop_oneof![0.0..1.0, 0.0..1e3, 0.0..1e12],
            unit in units(),
            most in 1_u32..8,
        ) {
            let axis = Axis::covering(greatest, unit, most);
            prop_assert!(axis.top() >= greatest * (1.0 - 1e-6));
            prop_assert!(axis.steps >= 1 && axis.steps <= most);
            prop_assert!(axis.top() - axis.step <= greatest.max(minimum_extent(unit)), "{axis:?}");
        }

        #[test]
        fn steps_are_round_and_count_steps_are_whole(greatest in 0.0..1e9, most in 1_u32..8) {
            let axis = Axis::covering(greatest, Unit::Count, most);
            prop_assert!(axis.step.fract().abs() < 1e-9);
            let lead = axis.step / 10_f64.powf(axis.step.log10().floor());
            prop_assert!([1.0, 2.0, 5.0, 10.0].iter().any(|one| (lead - one).abs() < 1e-6), "{lead}");
        }

        #[test]
        fn marks_have_distinct_labels(greatest in 0.0..1e9, unit in units(), most in 1_u32..6) {
            let axis = Axis::covering(greatest, unit, most);
            let mut marks: Vec<_> = axis.marks().map(|mark| unit.format(mark)).collect();
            let all = marks.len();
            marks.dedup();
            prop_assert_eq!(marks.len(), all, "{:?} {:?}", axis, marks);
        }

        #[test]
        fn position_is_always_within_the_axis(greatest in 0.0..1e9, value in any::<f64>()) {
            let share = Axis::covering(greatest, Unit::Seconds, 4).fraction(value);
            prop_assert!((0.0..=1.0).contains(&share));
        }
    }

    #[test]
    fn values_are_short_and_have_a_unit() {
        let shown = |unit: Unit, value| unit.format(value);
        assert_eq!(shown(Unit::Count, 1234.0), "1234");
        assert_eq!(shown(Unit::Count, 12_340.0), "12.3k");
        assert_eq!(shown(Unit::Share, 0.125), "12.5 %");
        assert_eq!(shown(Unit::Seconds, 300.0), "5 min");
        assert_eq!(shown(Unit::Seconds, 0.3), "300 ms");
    }

    #[test]
    fn non_finite_value_gives_an_empty_axis() {
        let axis = Axis::covering(f64::NAN, Unit::Count, 4);
        assert_eq!((axis.top(), axis.fraction(f64::INFINITY)), (1.0, 0.0));
    }
}
