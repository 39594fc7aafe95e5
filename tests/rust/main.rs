//! All tests of the public core in one program: code that is generic over formats is compiled once for all of them.

#![allow(clippy::cast_possible_truncation)]

mod added_format;
mod columns;
mod common;
mod corpus;
mod formats;
mod kernels;
mod laws;
mod outside;
mod sealing;
mod units;
mod vectors;
