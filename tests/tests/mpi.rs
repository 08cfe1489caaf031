//! Programs in several processes that MPI starts: the same results as on threads, and no process that remains. `MPICC` chooses
//! the MPI that the programs are built with, and `MPIRUN` its launcher.

#[cfg(feature = "mpi")]
#[path = "mpi/available.rs"]
mod available;
#[cfg(feature = "mpi")]
#[path = "mpi/checkpoints.rs"]
mod checkpoints;
#[cfg(feature = "mpi")]
#[path = "mpi/endings.rs"]
mod endings;
#[cfg(feature = "mpi")]
#[path = "mpi/programs.rs"]
mod programs;
#[cfg(feature = "mpi")]
#[path = "mpi/recorded.rs"]
mod recorded;
#[cfg(feature = "mpi")]
#[path = "mpi/results.rs"]
mod results;

#[cfg(not(feature = "mpi"))]
#[test]
fn the_tests_of_mpi_need_the_feature() {
    equipoise_tests::skip("built without MPI; use cargo test --workspace --features mpi --test mpi");
}
