//! Curves over two axes.

use crate::chart::{STYLE, TITLE, colour, escaped};
use crate::svg::{Anchor, Canvas};
use std::fmt::Write;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 40.0;
/// Curves with at most so many points have a dot on each.
const DOTTED: usize = 20;
/// A line of the legend.
const LEGEND: f64 = 18.0;

/// A curve: what it is called, and its points.
#[derive(Debug, Clone)]
pub struct Curve {
    /// What it is called.
    pub name: String,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
    /// Whether it is what others are held against: drawn with dashes.
    pub dashed: bool,
}

impl Curve {
    /// A curve of what was measured.
    pub fn new(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        let name = name.into();
        let dashed = false;
        Self {
            name,
            points,
            dashed,
        }
    }
}

/// Some curves that are drawn together.
#[derive(Debug)]
pub struct Picture {
    /// The title.
    pub name: String,
    /// Each with its number, by which its colour is chosen.
    pub curves: Vec<(usize, Curve)>,
    /// Whether the axis at the side begins with 0, so that heights can be compared.
    pub from_zero: bool,
    /// How the numbers below the picture are written.
    pub across: fn(f64) -> String,
    /// How those beside it are.
    pub down: fn(f64) -> String,
}

/// Pictures below each other as one file, with a legend above: a name for each number.
pub fn stacked(legend: &[&str], pictures: &[Picture]) -> String {
    let top = LEGEND * legend.len() as f64 + 16.0;
    let height = HEIGHT * pictures.len() as f64 + top;
    let mut canvas = Canvas::file(WIDTH, height, "");
    canvas.push(format_args!("<style>{STYLE}</style>\n"));
    for (number, name) in legend.iter().enumerate() {
        let y = 12.0 + LEGEND * number as f64;
        canvas.rect((LEFT, y + 4.0), (14.0, 4.0), colour(number), None);
        canvas.label((LEFT + 22.0, y + 10.0), Anchor::Start, name);
    }
    for (number, picture) in pictures.iter().enumerate() {
        let down = top + HEIGHT * number as f64;
        canvas.push(format_args!("<g transform=\"translate(0 {down})\">\n"));
        curves(&mut canvas, picture);
        canvas.push(format_args!("</g>\n"));
    }
    canvas.finish()
}

/// One picture on a page.
pub fn single(picture: &Picture) -> String {
    let mut canvas = Canvas::part(WIDTH, HEIGHT, &picture.name);
    curves(&mut canvas, picture);
    canvas.finish()
}

fn curves(canvas: &mut Canvas, picture: &Picture) {
    let finite = |(x, y): &&(f64, f64)| x.is_finite() && y.is_finite();
    let points = || {
        picture
            .curves
            .iter()
            .flat_map(|(_, curve)| curve.points.iter().filter(finite))
    };
    let bounds = |of: fn(&(f64, f64)) -> f64| {
        let (low, high) = points()
            .map(of)
            .fold((f64::MAX, f64::MIN), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        match low < high {
            true => (low, high),
            false => (low - 0.5, low + 0.5),
        }
    };
    canvas.words((LEFT, 20.0), TITLE, &picture.name);
    if points().next().is_none() {
        return;
    }
    let (xs, mut ys) = (bounds(|point| point.0), bounds(|point| point.1));
    if picture.from_zero {
        ys.0 = ys.0.min(0.0);
    }
    let across = |x: f64| LEFT + (x - xs.0) / (xs.1 - xs.0) * (WIDTH - LEFT - RIGHT);
    let down = |y: f64| TOP + (ys.1 - y) / (ys.1 - ys.0) * (HEIGHT - TOP - BOTTOM);
    for part in 0..=4 {
        let share = f64::from(part) / 4.0;
        let (x, y) = (xs.0 + share * (xs.1 - xs.0), ys.0 + share * (ys.1 - ys.0));
        let side = WIDTH - RIGHT;
        let height = down(y);
        canvas.push(format_args!(
            "<line class=\"g\" x1=\"{LEFT}\" x2=\"{side}\" y1=\"{height:.1}\" y2=\"{height:.1}\"/>\n"
        ));
        let beside = (LEFT - 8.0, height + 4.0);
        canvas.label(beside, Anchor::End, &(picture.down)(y));
        let below = (across(x), HEIGHT - BOTTOM + 18.0);
        canvas.label(below, Anchor::Middle, &(picture.across)(x));
    }
    for (number, curve) in &picture.curves {
        let mut path = String::new();
        for point in curve.points.iter().filter(finite) {
            let _ = write!(path, "{:.1},{:.1} ", across(point.0), down(point.1));
        }
        let class = if curve.dashed { "c d" } else { "c" };
        let (colour, path, name) = (colour(*number), path.trim_end(), escaped(&curve.name));
        canvas.push(format_args!(
            "<polyline class=\"{class}\" stroke=\"{colour}\" points=\"{path}\"><title>{name}</title></polyline>\n"
        ));
        // A line through one point is none: few points are seen as such.
        for point in curve.points.iter().filter(finite).take(DOTTED) {
            if curve.points.len() <= DOTTED && !curve.dashed {
                let (x, y) = (across(point.0), down(point.1));
                canvas.push(format_args!(
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>\n"
                ));
            }
        }
    }
}
