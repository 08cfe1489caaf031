//! Strategies that look at the machine: who communicates much is put close together.

pub mod topolb;
