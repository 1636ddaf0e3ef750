//! Users' own scripts with frameworks and in notebooks. These are large: these tests run with `make test-long`.

mod frameworks;
mod notebook;
