//! Users' own scripts with frameworks. These are large: these tests run with `make test-long`.

mod frameworks;
