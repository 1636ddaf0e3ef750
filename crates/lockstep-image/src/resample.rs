//! Resampling as Pillow does it.
//!
//! fast_image_resize does the arithmetic, on integers, with the same bits whatever vectors the machine has. Left to
//! itself it takes the columns first and then the rows, Pillow the other way round. That is faster and the same to one
//! unit for bilinear weights. Weights that overshoot are clipped in between, though, and then the order makes
//! differences of tens at an edge; so for those each direction is a call of its own, rows first. What remains is a
//! unit in some bytes of a hundred: weights have 16 bits here and 32 in Pillow.

use fast_image_resize::images::TypedImage;
use fast_image_resize::pixels::U8x4;
use fast_image_resize::{FilterType, ResizeAlg, ResizeOptions, Resizer};

use crate::Filter;
use crate::decode::{KEEP, Pixel, grown, trim};
use crate::view::Overlap;

/// Resamples parts of pictures with one filter.
#[derive(Debug)]
pub(crate) struct Resampler {
    filter: Filter,
    resizer: Resizer,
    /// The picture between the two directions.
    rows: Vec<Pixel>,
}

/// Pixels, and their width and height.
pub(crate) struct Pixels<'a> {
    /// Nothing changes them. The resizer compiles all of its kernels for each type of images that it reads from, and its
    /// own between two directions can be changed.
    pub(crate) pixels: &'a mut [Pixel],
    pub(crate) size: (u32, u32),
}

/// Where a part lies in the picture before it is resized, in fractions of pixels.
#[derive(Debug, Clone, Copy)]
struct Area {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

impl Area {
    /// Of what is shown of a picture of `decoded` size once it is `resized`.
    fn new(decoded: (u32, u32), resized: (u32, u32), shown: &Overlap) -> Area {
        let (left, width) = span(decoded.0, resized.0, shown.source.0, shown.size.0);
        let (top, height) = span(decoded.1, resized.1, shown.source.1, shown.size.1);
        Area {
            left,
            top,
            width,
            height,
        }
    }
}

/// Start and length before resizing of what `start` and `length` are after it.
fn span(decoded: u32, resized: u32, start: u32, length: u32) -> (f64, f64) {
    let scale = f64::from(decoded) / f64::from(resized);
    let from = f64::from(start) * scale;
    // Rounding must not reach beyond the picture.
    (
        from,
        (f64::from(length) * scale).min(f64::from(decoded) - from),
    )
}

impl Resampler {
    pub(crate) fn new(filter: Filter) -> Resampler {
        Resampler {
            filter,
            resizer: Resizer::new(),
            rows: Vec::new(),
        }
    }

    /// Writes what is shown of a picture once it is `resized` into `out`, which has the size of what is shown.
    pub(crate) fn resample(
        &mut self,
        source: Pixels<'_>,
        resized: (u32, u32),
        shown: &Overlap,
        out: &mut [Pixel],
    ) {
        let (area, size) = (Area::new(source.size, resized, shown), shown.size);
        let (kernel, reach) = match self.filter {
            Filter::Nearest => return nearest(source, resized, shown, out),
            Filter::Bilinear => {
                return run(
                    &mut self.resizer,
                    FilterType::Bilinear,
                    source,
                    &area,
                    out,
                    size,
                );
            }
            Filter::Bicubic => (FilterType::CatmullRom, 2.0),
            Filter::Lanczos => (FilterType::Lanczos3, 3.0),
        };
        // The rows that the filter reaches from the area.
        let margin = reach * (area.height / f64::from(size.1)).max(1.0);
        let first = (area.top - margin).floor().max(0.0);
        let last = (area.top + area.height + margin)
            .ceil()
            .min(f64::from(source.size.1));
        let band = Area {
            top: first,
            height: last - first,
            ..area
        };
        let between = (size.0, (last - first) as u32);
        let rows = grown(&mut self.rows, between.0 as usize * between.1 as usize);
        run(&mut self.resizer, kernel, source, &band, rows, between);
        let source = Pixels {
            pixels: rows,
            size: between,
        };
        let down = Area {
            left: 0.0,
            top: area.top - first,
            width: f64::from(size.0),
            height: area.height,
        };
        run(&mut self.resizer, kernel, source, &down, out, size);
    }

    /// Gives memory back that only an unusually large picture needed.
    pub(crate) fn trim(&mut self) {
        trim(&mut self.rows);
        if self.resizer.size_of_internal_buffers() > KEEP {
            self.resizer.reset_internal_buffers();
        }
    }
}

/// The pixels that the middles of the new ones lie in.
fn nearest(source: Pixels<'_>, resized: (u32, u32), shown: &Overlap, out: &mut [Pixel]) {
    let columns = middles(source.size.0, resized.0, shown.source.0, shown.size.0);
    let rows = middles(source.size.1, resized.1, shown.source.1, shown.size.1);
    for (row, out) in rows.iter().zip(out.chunks_exact_mut(columns.len())) {
        let row = &source.pixels[row * source.size.0 as usize..];
        for (&column, out) in columns.iter().zip(out) {
            *out = row[column];
        }
    }
}

/// Where the middles of some pixels lie along a side before it is resized. Added up as Pillow does it, so that ties
/// fall to the same pixel.
fn middles(decoded: u32, resized: u32, start: u32, length: u32) -> Vec<usize> {
    let scale = f64::from(decoded) / f64::from(resized);
    let all = std::iter::successors(Some(0.5 * scale), |at| Some(at + scale));
    let last = decoded as usize - 1;
    all.skip(start as usize)
        .take(length as usize)
        .map(|at| (at as usize).min(last))
        .collect()
}

fn run(
    resizer: &mut Resizer,
    kernel: FilterType,
    source: Pixels<'_>,
    area: &Area,
    out: &mut [Pixel],
    size: (u32, u32),
) {
    let Area {
        left,
        top,
        width,
        height,
    } = *area;
    let options = ResizeOptions::new()
        .resize_alg(ResizeAlg::Convolution(kernel))
        .crop(left, top, width, height)
        .use_alpha(false);
    let length = "as many bytes as pixels ask for";
    // Typed images: the others bring all kinds of pixels with them, which takes minutes to compile.
    let image = |(width, height), pixels| {
        TypedImage::<U8x4>::from_buffer(width, height, pixels).expect(length)
    };
    let from = image(source.size, source.pixels.as_flattened_mut());
    let mut to = image(size, out.as_flattened_mut());
    resizer
        .resize_typed(&from, &mut to, &options)
        .expect("an area inside of the picture");
}

#[cfg(test)]
mod tests {
    use fast_image_resize::CpuExtensions;
    use proptest::prelude::*;

    use super::*;

    const FILTERS: [Filter; 4] = [
        Filter::Bilinear,
        Filter::Bicubic,
        Filter::Lanczos,
        Filter::Nearest,
    ];

    /// What comes out of a whole picture with these vector instructions.
    fn resampled(
        filter: Filter,
        pixels: &mut [Pixel],
        (from, size): ((u32, u32), (u32, u32)),
        extensions: CpuExtensions,
    ) -> Vec<Pixel> {
        let mut resampler = Resampler::new(filter);
        // SAFETY: callers ask for extensions that this machine supports only.
        unsafe { resampler.resizer.set_cpu_extensions(extensions) };
        let mut out = vec![[0; 4]; size.0 as usize * size.1 as usize];
        let whole = Overlap {
            source: (0, 0),
            target: (0, 0),
            size,
        };
        let source = Pixels { pixels, size: from };
        resampler.resample(source, size, &whole, &mut out);
        out
    }

    fn noise(size: (u32, u32), seed: u64) -> Vec<Pixel> {
        let mut state = seed;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            // Every other picture is of extremes only, so that filters overshoot.
            if seed.is_multiple_of(2) {
                (state >> 56) as u8
            } else {
                ((state >> 63) as u8).wrapping_neg()
            }
        };
        (0..size.0 as usize * size.1 as usize)
            .map(|_| [next(), next(), next(), next()])
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn the_bits_are_the_same_with_any_vector_instructions(
            from in (1..200u32, 1..120u32), to in (1..150u32, 1..150u32), seed: u64,
        ) {
            let mut pixels = noise(from, seed);
            for filter in FILTERS {
                let plain = resampled(filter, &mut pixels, (from, to), CpuExtensions::None);
                #[cfg(target_arch = "x86_64")]
                for extensions in [CpuExtensions::Sse4_1, CpuExtensions::Avx2] {
                    if extensions.is_supported() {
                        prop_assert!(resampled(filter, &mut pixels, (from, to), extensions) == plain, "{filter:?}");
                    }
                }
                prop_assert!(resampled(filter, &mut pixels, (from, to), CpuExtensions::default()) == plain, "{filter:?}");
            }
        }

        #[test]
        fn cutting_first_is_cutting_last(
            from in (8..90u32, 8..90u32), to in (8..90u32, 8..90u32), part in (0.0..1.0f64, 0.0..1.0f64), seed: u64,
        ) {
            let mut pixels = noise(from, seed);
            let size = (to.0 / 2, to.1 / 2);
            let corner = ((part.0 * f64::from(to.0 - size.0)) as u32, (part.1 * f64::from(to.1 - size.1)) as u32);
            let shown = Overlap { source: corner, target: (0, 0), size };
            for filter in FILTERS {
                let whole = resampled(filter, &mut pixels, (from, to), CpuExtensions::default());
                let mut cut = vec![[0; 4]; size.0 as usize * size.1 as usize];
                let source = Pixels { pixels: &mut pixels, size: from };
                Resampler::new(filter).resample(source, to, &shown, &mut cut);
                for row in 0..size.1 as usize {
                    let start = (corner.1 as usize + row) * to.0 as usize + corner.0 as usize;
                    let length = size.0 as usize;
                    let pairs = whole[start..][..length].iter().flatten().zip(cut[row * length..][..length].iter().flatten());
                    // Weights have as many bits as the largest of them leaves: twice rounded, differently.
                    let far = pairs.filter(|(a, b)| a.abs_diff(**b) > 3).count();
                    prop_assert!(far == 0, "{filter:?}, row {row}: {far} bytes");
                }
            }
        }
    }
}
