//! The parts of dates, from seconds: the calendar in whole numbers, as `lockstep_base::calendar` has it.
//!
//! Years begin in March here, so that the day that some years have more is the last. ONNX's `Div` of whole numbers
//! rounds toward 0, so all that is divided is made to be 0 or more first.

use crate::graph::{Graph, GraphWriter, Value, int};
use crate::proto::element;
use lockstep_data::TimeForm;

/// Days of 400 years, after which the calendar repeats itself.
const ERA: i64 = 146_097;
/// Days from the first of March of the year 0 to 1970.
const TO_1970: i64 = 719_468;
const DAY: i64 = 86_400;
/// The seconds of what is no date: what numpy has for one.
const NO_DATE: i64 = i64::MIN;

/// Arithmetic of whole numbers in a graph.
struct Whole<'a> {
    graph: &'a mut Graph,
    /// The input that all of it is of.
    of: &'a str,
}

impl Whole<'_> {
    fn constant(&mut self, number: i64) -> Value {
        let name = format!("{}.{number}", self.of);
        self.graph.integer(&name, number)
    }

    fn of_two(&mut self, operator: &str, a: &Value, b: &Value) -> Value {
        let name = format!("{}.{}", self.of, operator.to_lowercase());
        self.graph.node(operator, &name, &[a, b], &[])
    }

    fn with(&mut self, operator: &str, a: &Value, number: i64) -> Value {
        let number = self.constant(number);
        self.of_two(operator, a, &number)
    }

    /// What is left of a division, 0 or more; and the rest of the number divided.
    fn divided(&mut self, a: &Value, by: i64) -> (Value, Value) {
        let left = self.with("Mod", a, by);
        let rest = self.of_two("Sub", a, &left);
        (self.with("Div", &rest, by), left)
    }

    fn choose(&mut self, condition: &Value, then: &Value, otherwise: &Value) -> Value {
        let name = format!("{}.where", self.of);
        self.graph
            .node("Where", &name, &[condition, then, otherwise], &[])
    }

    /// Year, month and day of so many days after 1970.
    fn date(&mut self, days: &Value) -> [Value; 3] {
        let days = self.with("Add", days, TO_1970);
        let (era, day) = self.divided(&days, ERA);
        // The days of the era less those that some years have more, by which all years have 365.
        let mut even = day.clone();
        for (operator, span) in [("Sub", 1460), ("Add", 36_524), ("Sub", 146_096)] {
            let leap = self.with("Div", &day, span);
            even = self.of_two(operator, &even, &leap);
        }
        let year = self.with("Div", &even, 365);
        let mut of_year = day;
        for (operator, factor, span) in [("Sub", 365, 1), ("Sub", 1, 4), ("Add", 1, 100)] {
            let before = self.with("Mul", &year, factor);
            let before = self.with("Div", &before, span);
            of_year = self.of_two(operator, &of_year, &before);
        }
        // Five months have 153 days, from March and from August on.
        let fives = self.with("Mul", &of_year, 5);
        let fives = self.with("Add", &fives, 2);
        let month = self.with("Div", &fives, 153);
        let before = self.with("Mul", &month, 153);
        let before = self.with("Add", &before, 2);
        let before = self.with("Div", &before, 5);
        let day = self.of_two("Sub", &of_year, &before);
        let day = self.with("Add", &day, 1);
        let is_early = self.with("Less", &month, 10);
        let [late, early] = [-9, 3].map(|shift| self.with("Add", &month, shift));
        let month = self.choose(&is_early, &early, &late);
        let years = self.with("Mul", &era, 400);
        let year = self.of_two("Add", &year, &years);
        let next = self.with("Add", &year, 1);
        let year = self.choose(&is_early, &year, &next);
        [year, month, day]
    }

    /// A whole number, or NaN where `gap` is true.
    fn number(&mut self, whole: &Value, gap: &Value) -> Value {
        let to = [int("to", i64::from(element::FLOAT))];
        let name = format!("{}.number", self.of);
        let number = self.graph.node("Cast", &name, &[whole], &to);
        let name = format!("{}.none", self.of);
        let none = self.graph.numbers(&name, &[], &[f32::NAN]);
        self.choose(gap, &none, &number)
    }
}

/// The numbers that the seconds of `input` become, in the order and the precision that training has them in.
pub(crate) fn parts(graph: &mut Graph, input: &Value, form: TimeForm) -> Vec<Value> {
    let mut whole = Whole { graph, of: input };
    let gap = whole.with("Equal", input, NO_DATE);
    let zero = whole.constant(0);
    let known = whole.choose(&gap, &zero, input);
    let (days, seconds) = whole.divided(&known, DAY);
    let mut parts = Vec::new();
    if form != TimeForm::Clock {
        let [year, month, day] = whole.date(&days);
        // The first day of 1970 was a Thursday.
        let weekday = whole.with("Add", &days, 3);
        let weekday = whole.with("Mod", &weekday, 7);
        parts.extend([year, month, day, weekday].map(|part| whole.number(&part, &gap)));
    }
    if form != TimeForm::Day {
        let seconds = whole.number(&seconds, &gap);
        let name = format!("{input}.hour");
        let of_hour = whole.graph.numbers(&name, &[], &[3600.0]);
        parts.push(
            whole
                .graph
                .node("Div", &format!("{name}s"), &[&seconds, &of_hour], &[]),
        );
    }
    parts
}
