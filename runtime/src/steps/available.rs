//! The PEs that `--pes-available` lists: strategies place objects on these only. The file is read again at every step, so that
//! PEs can be given back to a batch system and return later.

use crate::options::{Listed, Settings};
use crate::process;
use equipoise_model::database::PeRecord;

/// Marks the PEs that are not available at a step. While the file is wrong, its last right list counts.
pub(super) fn mark(settings: &Settings, step: u32, pes: &mut [PeRecord], last: &mut Listed) {
    match settings.available() {
        None => return,
        Some(Ok(list)) => *last = Listed { list: Some(list), error: None },
        Some(Err(error)) => {
            // The file may stay wrong for many steps.
            let error = error.to_string();
            if last.error.as_ref() != Some(&error) {
                process::warn(&format!(
                    "load-balancing step {step}: {error}; until that is corrected, the same PEs are available as before"
                ));
            }
            last.error = Some(error);
        }
    }
    let Some(list) = &last.list else { return };
    pes.iter_mut().for_each(|pe| pe.available = false);
    list.iter().for_each(|&pe| pes[pe as usize].available = true);
}
