//! Functions of a C library that is loaded at run time.

/// Declares a struct of functions of a C library, each under a shorter name, and how all of them are found by theirs.
/// Whoever uses it depends on `libloading`.
///
/// ```ignore
/// lockstep_base::c_functions! {
///     /// XGBoost's.
///     version = "XGBoostVersion": fn(*mut c_int, *mut c_int, *mut c_int) -> ();
/// }
/// ```
#[macro_export]
macro_rules! c_functions {
    (
        $(#[doc = $doc:literal])*
        $($name:ident = $symbol:literal: fn($($argument:ty),* $(,)?) -> $result:ty;)*
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug)]
        pub(crate) struct Functions {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Functions {
            /// Finds all of them, or says which is missing.
            ///
            /// # Safety
            /// The functions must have the types that are declared for them, and the library must stay loaded for as long
            /// as they are called.
            pub(crate) unsafe fn of(library: &::libloading::Library) -> Result<Self, &'static str> {
                Ok(Self {
                    $($name: {
                        // SAFETY: the caller promises that the function has this type.
                        let found = unsafe {
                            library.get::<unsafe extern "C" fn($($argument),*) -> $result>($symbol.as_bytes())
                        };
                        *found.map_err(|_| $symbol)?
                    },)*
                })
            }
        }
    };
}
