//! All tests of the public core in one program: code that is generic over formats is compiled once for all of them.

#![allow(clippy::cast_possible_truncation)]

mod columns;
mod common;
mod corpus;
mod formats;
mod kernels;
mod laws;
mod outside;
mod sealing;
mod throwaway;
mod units;
mod vectors;
