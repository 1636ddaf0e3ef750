//! Jobs that wait, run and are remembered, on one machine.
//!
//! A job is a folder. A process of its own looks after it, so that it goes on when the server is restarted.
