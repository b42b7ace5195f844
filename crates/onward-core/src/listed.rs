//! Enums whose variants are walked: the list comes from the declaration, so it cannot miss one.

/// Declares an enum of plain variants and, with it, `ALL`: every variant, in the order written.
///
/// ```
/// onward_core::listed! {
///     #[derive(Clone, Copy, Debug, PartialEq)]
///     pub enum Colour {
///         Red,
///         Green,
///     }
/// }
/// assert_eq!(Colour::ALL, [Colour::Red, Colour::Green]);
/// ```
#[macro_export]
macro_rules! listed {
    (
        $(#[$of_enum:meta])*
        $vis:vis enum $Name:ident { $( $(#[$of_variant:meta])* $Variant:ident ),+ $(,)? }
    ) => {
        $(#[$of_enum])*
        $vis enum $Name { $( $(#[$of_variant])* $Variant ),+ }

        impl $Name {
            /// Every variant, in the order of the declaration.
            $vis const ALL: [Self; [$(Self::$Variant),+].len()] = [$(Self::$Variant),+];
        }
    };
}
