//! The PEs that `--pes-available` lists: strategies place objects on these only. The file is read again at every step, so that
//! PEs can be given back to a batch system and return later.

use crate::options::Settings;
use crate::process;
use equipoise_model::database::PeRecord;

/// Marks the PEs that are not available at a step. `last` is the list of the previous step, which counts if the file is
/// wrong.
pub(super) fn mark(settings: &Settings, step: u32, pes: &mut [PeRecord], last: &mut Option<Vec<u32>>) {
    match settings.available() {
        None => return,
        Some(Ok(list)) => *last = Some(list),
        Some(Err(error)) => process::warn(&format!(
            "load-balancing step {step}: {error}; the same PEs are available as before"
        )),
    }
    let Some(list) = last else { return };
    pes.iter_mut().for_each(|pe| pe.available = false);
    list.iter().for_each(|&pe| pes[pe as usize].available = true);
}
