//! [`kinds!`]: a table whose `kind` decides which other keys it has.

/// Declares a table whose `kind` decides which other keys it has.
macro_rules! kinds {
    (
        $(#[doc = $doc:literal])*
        pub enum $name:ident $(given ($($given:ident : $given_type:ty),*))? { $(
            $(#[doc = $kind_doc:literal])*
            $kind:literal $variant:ident $({ $(
                $(#[doc = $key_doc:literal])*
                $key:ident : $type:ty $(as $shown:ty)? = $mode:ident $(($($left:expr),+))? => $check:expr $(, $and:expr)?;
            )* })?
        )* }
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq, serde::Deserialize)]
        #[serde(tag = "kind", deny_unknown_fields)]
        pub enum $name { $(
            $(#[doc = $kind_doc])*
            #[serde(rename = $kind)]
            $variant $({ $(
                $(#[doc = $key_doc])*
                $key: $type,
            )* })?,
        )* }

        impl $name {
            /// The words for its kinds.
            pub(crate) const KINDS: &[&str] = &[$($kind),*];

            /// Reads the keys of a table of one of [`Self::KINDS`], and leaves it to the caller to finish
            /// the section.
            pub(crate) fn read_keys(
                kind: &str,
                section: &mut $crate::section::Section<'_>
                $($(, $given: $given_type)*)?
            ) -> Option<Self> {
                match kind {
                    $($kind => {
                        $($(let $key = $crate::keys::key!(
                            read section stringify!($key), $mode $(($($left),+))?,
                            |field| $crate::keys::key!(value field $check $(, $and)?)
                        );)*)?
                        Some(Self::$variant $({ $($key: $key?),* })?)
                    })*
                    _ => None,
                }
            }
        }

        impl $crate::keys::OfKinds for $name {
            const WORDS: &[&str] = Self::KINDS;
        }

        impl $crate::keys::WriteKeys for $name {
            fn write_keys<M: serde::ser::SerializeMap>(&self, keys: &mut M) -> Result<(), M::Error> {
                match self {
                    $(Self::$variant $({ $($key),* })? => {
                        serde::ser::SerializeMap::serialize_entry(keys, "kind", $kind)?;
                        $($($crate::keys::key!(
                            write keys stringify!($key), $key, $mode $(($($left),+))?
                        );)*)?
                    })*
                }
                Ok(())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::keys::write_table(self, serializer)
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let mut kinds = Vec::new();
                $({
                    #[allow(unused_mut, reason = "a kind may have no keys")]
                    let mut table = $crate::keys::TableSchema::new(&[$($kind_doc),*], Some($kind));
                    $($(table.key::<$crate::keys::key!(shown $type $(as $shown)?)>(
                        generator,
                        stringify!($key),
                        &[$($key_doc),*],
                        $crate::keys::key!(left_out $type, $mode $(($($left),+))?),
                        &$check,
                    );)*)?
                    kinds.push(table.finish());
                })*
                schemars::json_schema!({
                    "description": $crate::keys::sentences(&[$($doc),*]),
                    "oneOf": kinds,
                })
            }
        }
    };
}

pub(crate) use kinds;
