//! Makes it so, and makes it last.
