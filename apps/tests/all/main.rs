//! The results of the sample programs are the same in every configuration, and their flags are parsed.

mod amr;
mod common;
mod decisions;
mod flags;
mod kneighbor;
mod leanmd;
mod pic;
mod stencil;
mod traces;

use equipoise_model::testing::at_full_size;

#[test]
#[ignore = "slow"]
fn results_are_the_same_in_all_configurations_and_for_all_seeds() {
    at_full_size(&[
        amr::migrations_after_every_regridding_do_not_change_the_result,
        amr::the_result_is_the_same_in_every_configuration,
        kneighbor::every_message_arrives_once_in_every_configuration,
        leanmd::the_result_is_the_same_in_every_configuration,
        pic::the_result_is_the_same_in_every_configuration,
        stencil::a_2d_result_is_identical_in_every_configuration,
        stencil::a_periodic_2d_result_is_identical_in_every_configuration,
        stencil::a_3d_result_is_identical_in_every_configuration,
        stencil::a_periodic_3d_result_is_identical_in_every_configuration,
    ]);
}
