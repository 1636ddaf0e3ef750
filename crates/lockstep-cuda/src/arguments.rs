//! What kernels are launched with: one struct a kernel, declared here and in the kernel's file.
//!
//! The two declarations must be the same. [`Arguments::declaration`] says how C would have ours, and the emulated GPU,
//! which has the kernels' text, refuses a kernel whose file does not have just that.

use std::fmt;
use std::marker::PhantomData;

/// A type that is the same in C and in Rust.
///
/// # Safety
/// Size, alignment and meaning are those of the type that [`CType::declare`] names.
pub(crate) unsafe trait CType: Copy + Send + Sync + fmt::Debug + 'static {
    /// How C declares a field of this type.
    fn declare(field: &str) -> String;
}

macro_rules! c_types {
    ($($rust:ty = $c:literal,)*) => {
        $(
            // SAFETY: the kernels' header has these names for types of this size, which are numbers in both languages.
            unsafe impl CType for $rust {
                fn declare(field: &str) -> String {
                    format!(concat!($c, " {};"), field)
                }
            }
        )*
    };
}

c_types! {
    u32 = "u32",
    u64 = "u64",
    f32 = "float",
    f64 = "double",
}

/// A pointer into the device's memory. C has `T*`.
#[repr(transparent)]
pub(crate) struct Pointer<T> {
    at: u64,
    of: PhantomData<fn() -> T>,
}

impl<T> Pointer<T> {
    /// To this place.
    pub(crate) fn to(at: u64) -> Self {
        Self {
            at,
            of: PhantomData,
        }
    }
}

impl<T> Clone for Pointer<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Pointer<T> {}

impl<T> fmt::Debug for Pointer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.at)
    }
}

// SAFETY: pointers of the devices that there are have 64 bits, and so has the address.
unsafe impl<T: CType> CType for Pointer<T> {
    fn declare(field: &str) -> String {
        T::declare(&format!("*{field}"))
    }
}

// SAFETY: arrays lie in both languages as their elements do, one after the other.
unsafe impl<T: CType, const N: usize> CType for [T; N] {
    fn declare(field: &str) -> String {
        T::declare(&format!("{field}[{N}]"))
    }
}

/// The arguments of a kernel.
///
/// # Safety
/// The type is laid out as C lays out the struct of [`Arguments::declaration`].
pub unsafe trait Arguments: Send + Sync + fmt::Debug {
    /// How C would declare this struct, in one line.
    fn declaration(&self) -> String;
}

/// Declares arguments of kernels, whose fields lie as C has them.
macro_rules! arguments {
    ($(
        $(#[doc = $doc:literal])*
        $visible:vis struct $name:ident {
            $($(#[doc = $field_doc:literal])* $field:ident: $type:ty,)*
        }
    )*) => {
        $(
            $(#[doc = $doc])*
            #[repr(C)]
            #[derive(Debug, Clone, Copy)]
            $visible struct $name {
                $($(#[doc = $field_doc])* pub(crate) $field: $type,)*
            }

            // SAFETY: `repr(C)`, and every field is as C has it.
            unsafe impl $crate::arguments::CType for $name {
                fn declare(field: &str) -> String {
                    format!(concat!(stringify!($name), " {};"), field)
                }
            }

            // SAFETY: as above.
            unsafe impl $crate::arguments::Arguments for $name {
                fn declaration(&self) -> String {
                    let fields: &[String] = &[
                        $(<$type as $crate::arguments::CType>::declare(stringify!($field)),)*
                    ];
                    format!(concat!("struct ", stringify!($name), " {{ {} }};"), fields.join(" "))
                }
            }
        )*
    };
}
pub(crate) use arguments;

#[cfg(test)]
mod tests {
    use super::*;

    arguments! {
        /// A part.
        struct Part {
            /// A number.
            number: u64,
        }
        /// Some arguments.
        struct Some {
            x: Pointer<f32>,
            tables: Pointer<Pointer<f32>>,
            rows: u32,
            scales: [f64; 2],
            parts: [Part; 3],
        }
    }

    #[test]
    fn arguments_say_how_c_would_declare_them() {
        let part = Part { number: 1 };
        let some = Some {
            x: Pointer::to(0),
            tables: Pointer::to(0),
            rows: 2,
            scales: [0.0; 2],
            parts: [part; 3],
        };
        assert_eq!(
            some.declaration(),
            "struct Some { float *x; float **tables; u32 rows; double scales[2]; Part parts[3]; };"
        );
    }
}
