//! [`keys!`] and [`words!`]: a table of the job file as the list of its keys, and a value that is one of
//! several words. [`key!`] is what both ways of declaring a table make of one entry.

/// What a single key comes to; for [`keys!`] and [`kinds!`].
macro_rules! key {
    (read $section:ident $name:expr, need($fix:expr), $read:expr) => {
        $section.need($name, $fix).and_then($read)
    };
    (read $section:ident $name:expr, default($value:expr), $read:expr) => {
        $section.or($name, $value, $read)
    };
    (read $section:ident $name:expr, hidden($value:expr), $read:expr) => {
        $section.or($name, $value, $read)
    };
    (read $section:ident $name:expr, shown($schema:expr, $value:expr), $read:expr) => {
        $section.or($name, $value, $read)
    };
    (read $section:ident $name:expr, flat($keys:expr), $read:expr) => {
        $crate::keys::read_flat($section, $keys)
    };
    (read $section:ident $name:expr, optional, $read:expr) => {
        $section.maybe($name, $read)
    };
    (read $section:ident $name:expr, otherwise($value:expr), $read:expr) => {
        match $section.get($name) {
            Some(field) => ($read)(field),
            None => $value,
        }
    };
    (value $field:ident $check:expr) => {
        $crate::keys::Check::read(&$check, &$field)
    };
    (value $field:ident $check:expr, $and:expr) => {
        $crate::keys::read_and(&$field, &$check, $and)
    };
    (write $map:ident $name:expr, $value:expr, optional) => {
        if let Some(value) = $value {
            serde::ser::SerializeMap::serialize_entry($map, $name, value)?;
        }
    };
    (write $map:ident $name:expr, $value:expr, flat($keys:expr)) => {
        $crate::keys::WriteKeys::write_keys($value, $map)?;
    };
    (write $map:ident $name:expr, $value:expr, hidden($default:expr)) => {
        if *$value != $default {
            serde::ser::SerializeMap::serialize_entry($map, $name, $value)?;
        }
    };
    (write $map:ident $name:expr, $value:expr, $mode:ident $(($($left:expr),+))?) => {
        serde::ser::SerializeMap::serialize_entry($map, $name, $value)?;
    };
    (left_out $type:ty, need($fix:expr)) => {
        $crate::keys::LeftOut::Mistake
    };
    (left_out $type:ty, default($value:expr)) => {
        $crate::keys::LeftOut::default::<$type>($value)
    };
    (left_out $type:ty, shown($schema:expr, $value:expr)) => {
        $crate::keys::LeftOut::default::<$type>($schema)
    };
    (left_out $type:ty, flat($keys:expr)) => {
        $crate::keys::LeftOut::Flat
    };
    (left_out $type:ty, $mode:ident $(($($left:expr),+))?) => {
        $crate::keys::LeftOut::Nothing
    };
    (shown $type:ty) => {
        $type
    };
    (shown $type:ty as $shown:ty) => {
        $shown
    };
    (name $name:ident) => {
        stringify!($name)
    };
    (name $name:ident $named:literal) => {
        $named
    };
    (default default($value:expr)) => {
        $value
    };
    (default optional) => {
        None
    };
    (default flat($keys:expr)) => {
        Default::default()
    };
}

/// Declares a table of the job file. After the name of the struct stand what it derives beside the usual,
/// `: all default` if every key may be left out, after `named` what the schema calls it if not by the struct's name, and
/// after `given` what its reader must be told.
macro_rules! keys {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident $(($($derive:ident),*))? : all default { $($body:tt)* }
    ) => {
        $crate::keys::keys! {
            $(#[doc = $doc])*
            pub struct $name $(($($derive),*))? { $($body)* }
        }
        $crate::keys::keys! { default $name { $($body)* } }
    };
    (
        default $name:ident { $(
            $(#[doc = $doc:literal])*
            $(#[serde($serde:ident)])?
            $key:ident : $type:ty $(as $shown:ty)? = $mode:ident $(($($left:expr),+))? => $check:expr $(, $and:expr)?;
        )* }
    ) => {
        impl Default for $name {
            fn default() -> Self {
                Self { $($key: $crate::keys::key!(default $mode $(($($left),+))?)),* }
            }
        }
    };
    (
        $(#[doc = $doc:literal])*
        $vis:vis struct $name:ident $(($($derive:ident),*))? $(named $named:literal)?
        $(given ($($given:ident : $given_type:ty),*))? { $(
            $(#[doc = $key_doc:literal])*
            $(#[serde($serde:ident)])?
            $key:ident : $type:ty $(as $shown:ty)? = $mode:ident $(($($left:expr),+))? => $check:expr $(, $and:expr)?;
        )* }
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq, $($($derive,)*)? serde::Deserialize)]
        $vis struct $name { $(
            $(#[doc = $key_doc])*
            $(#[serde($serde)])?
            $vis $key: $type,
        )* }

        impl $name {
            /// Reads the keys, and leaves it to the caller to finish the section.
            pub(crate) fn read_keys(
                section: &mut $crate::section::Section<'_>
                $($(, $given: $given_type)*)?
            ) -> Option<Self> {
                $(let $key = $crate::keys::key!(
                    read section stringify!($key), $mode $(($($left),+))?,
                    |field| $crate::keys::key!(value field $check $(, $and)?)
                );)*
                Some(Self { $($key: $key?),* })
            }
        }

        impl $crate::keys::WriteKeys for $name {
            fn write_keys<M: serde::ser::SerializeMap>(&self, keys: &mut M) -> Result<(), M::Error> {
                $($crate::keys::key!(write keys stringify!($key), &self.$key, $mode $(($($left),+))?);)*
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
                $crate::keys::key!(name $name $($named)?).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let mut table = $crate::keys::TableSchema::new(&[$($doc),*], None);
                $(table.key::<$crate::keys::key!(shown $type $(as $shown)?)>(
                    generator,
                    stringify!($key),
                    &[$($key_doc),*],
                    $crate::keys::key!(left_out $type, $mode $(($($left),+))?),
                    &$check,
                );)*
                table.finish()
            }
        }
    };
}

/// Declares a value that is one of several words.
macro_rules! words {
    (
        $(#[doc = $doc:literal])*
        pub enum $name:ident $(($($derive:ident),*))? { $(
            $(#[doc = $word_doc:literal])*
            $word:literal $variant:ident
        )* }
    ) => {
        $(#[doc = $doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
        )]
        pub enum $name { $(
            $(#[doc = $word_doc])*
            #[serde(rename = $word)]
            $variant,
        )* }

        impl $name {
            /// As the job file writes it.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }

        impl $crate::keys::FromField for $name {
            fn from_field(field: &$crate::field::Field<'_>) -> Option<Self> {
                match field.one_of(&[$($word),*])? {
                    $($word => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

pub(crate) use {key, keys, words};
