//! The flags of the sample programs: defaults, and errors with a remedy.

use clap::Parser;
use equipoise_apps::Program;

#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    program: Program,
}

fn parse(line: &str) -> Result<Cli, clap::Error> {
    let words = ["run"].into_iter().chain(line.split_whitespace()).map(str::to_owned);
    Cli::try_parse_from(equipoise::translated(words))
}

#[track_caller]
fn check(line: &str, expected: &str) {
    let cli = parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    let found = format!("{:?}", cli.program);
    assert!(found.contains(expected), "{line}: {found} does not contain {expected}");
}

#[track_caller]
fn refused(line: &str, sentence: &str) {
    let error = parse(line).expect_err(sentence).to_string();
    assert!(error.contains(sentence), "{line}: {error} does not contain {sentence}");
}

#[test]
fn every_program_has_defaults_for_all_flags() {
    check("stencil2d", "blocks: Extent([8, 8]), cells: Extent([128, 128])");
    check("stencil3d", "blocks: Extent([4, 4, 4]), cells: Extent([24, 24, 24])");
    check("kneighbor", "elements: 64, neighbors: 6");
    check("pic", "blocks: Extent([8, 8]), cells: Extent([8, 8]), rules: Rules { particles: 16, drift: 0.4");
    check("amr", "blocks: [4, 4], cells: 8, levels: 4, iterations: 200, regrid_every: 4, lb_every: 5");
}

#[test]
fn flags_of_the_program_and_of_the_runtime_can_be_combined() {
    check("stencil2d --blocks 4x2 --pes 3", "blocks: Extent([4, 2])");
    check("stencil3d --pes 3 --cells 5", "cells: Extent([5, 5, 5])");
    check("stencil2d +p3 --imbalance 4 +balancer GreedyLB", "pes: Some(3)");
    check("kneighbor -k 3 +LBDebug 1", "lb_report: Some(Text)");
    check("kneighbor --neighbours 3", "neighbors: 3");
}

#[test]
fn errors_name_a_remedy() {
    refused("stencil2d --blocks 4x4x4", "give 2 sizes such as `16x16`, or one size for all");
    refused("stencil3d --cells 4x4", "give 3 sizes such as `16x16x16`, or one size for all");
    refused("stencil2d --blocks 4xfour", "give 2 sizes");
    refused("stencil2d --blocks 0x4", "every size must be at least 1");
    refused("stencil2d --blocks=-4", "every size must be at least 1");
    refused("stencil2d --cells 100000x100000", "less than 2^31");
    refused("stencil2d --iterations 0", "--iterations");
    refused("stencil2d --imbalance 0", "--imbalance");
    refused("stencil2d --charge -1", "expected seconds, a number from 0 to 1e6 such as 2e-9");
    refused("kneighbor --charge nan", "expected seconds");
    refused("kneighbor --elements 0", "--elements");
    refused("pic --cells 1x4", "a block needs at least 2 cells along each dimension, such as `2x2`");
    refused("pic --drift 1", "expected a fraction of the speed of light from 0 to 0.9 such as 0.4");
    refused("pic --particles 0", "--particles");
    refused("amr --blocks 64x64", "give at most 1024 coarsest blocks, such as `32x32`");
    refused("amr --blocks 0x4", "every size must be at least 1");
    refused("amr --cells 7", "expected an even number of cells from 4 to 32 such as 8");
    refused("amr --levels 7", "--levels");
    refused("amr --regrid-every 0", "--regrid-every");
    refused("kneighbor --format xml", "[possible values: text, json, csv]");
    refused("kneighbor +unknown", "+unknown");
}
