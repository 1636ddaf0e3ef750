//! Colours: blue for what is right, orange for what is wrong, the darker the more.

/// The colour of a cell, and one that can be read on it.
pub(super) struct Shade {
    pub(super) fill: String,
    pub(super) ink: &'static str,
}

/// From nothing to all, evenly spaced.
const RIGHT: [[f64; 3]; 5] = [
    [239.0, 244.0, 250.0],
    [188.0, 212.0, 238.0],
    [113.0, 163.0, 214.0],
    [47.0, 109.0, 176.0],
    [17.0, 64.0, 124.0],
];
const WRONG: [[f64; 3]; 5] = [
    [253.0, 244.0, 234.0],
    [251.0, 211.0, 168.0],
    [243.0, 158.0, 92.0],
    [217.0, 95.0, 40.0],
    [150.0, 45.0, 16.0],
];

impl Shade {
    /// A cell without samples.
    pub(super) const EMPTY: &'static str = "#f7f8fa";

    /// For a share of a row, from 0 to 1.
    pub(super) fn of(share: f64, right: bool) -> Self {
        let scale = if right { &RIGHT } else { &WRONG };
        let last = scale.len() - 1;
        let at = share.clamp(0.0, 1.0).sqrt() * last as f64;
        let below = (at as usize).min(last - 1);
        let part = at - below as f64;
        let [red, green, blue] =
            [0, 1, 2].map(|i| scale[below][i] + part * (scale[below + 1][i] - scale[below][i]));
        let brightness = 0.299 * red + 0.587 * green + 0.114 * blue;
        Self {
            fill: format!("#{:02x}{:02x}{:02x}", red as u8, green as u8, blue as u8),
            ink: if brightness < 150.0 {
                "#ffffff"
            } else {
                "#1f2933"
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_darker_and_text_is_light_on_dark() {
        for right in [true, false] {
            let brightness = |share| {
                let shade = Shade::of(share, right);
                u32::from_str_radix(&shade.fill[3..5], 16).unwrap()
            };
            let shades: Vec<u32> = (0..=10).map(|i| brightness(f64::from(i) / 10.0)).collect();
            assert!(shades.is_sorted_by(|a, b| a > b), "{shades:?}");
            assert_eq!(Shade::of(1.0, right).ink, "#ffffff");
            assert_ne!(Shade::of(0.0, right).ink, "#ffffff");
        }
    }
}
