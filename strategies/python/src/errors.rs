//! Exceptions: `ValueError` for a wrong request, `EquipoiseError` for everything else.

use equipoise_model::fault::{Classified, Fault};
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The exceptions of this package that are no `ValueError`.
mod exception {
    #![allow(missing_docs, reason = "the documentation for Python is the last argument of the macro")]

    pyo3::create_exception!(
        equipoise,
        EquipoiseError,
        super::PyException,
        "Data cannot be used, a strategy gave no answer, or this package has a bug. The message says which."
    );
}

pub(crate) use exception::EquipoiseError;

/// The exception for an error of the library.
pub(crate) fn raise(error: impl Classified) -> PyErr {
    raise_as(error.fault(), error.to_string())
}

/// The exception for an error of this class.
pub(crate) fn raise_as(fault: Fault, sentence: String) -> PyErr {
    match fault {
        Fault::Usage => PyValueError::new_err(sentence),
        Fault::Input | Fault::Bug => EquipoiseError::new_err(sentence),
    }
}

/// The exception for a file that cannot be used. A name of a file that does not exist is no wrong argument in Python.
pub(crate) fn of_file(error: impl Classified) -> PyErr {
    EquipoiseError::new_err(error.to_string())
}

/// The exception for a wrong argument.
pub(crate) fn usage(sentence: impl Into<String>) -> PyErr {
    PyValueError::new_err(sentence.into())
}

/// The JSON text of a document.
pub(crate) fn json(document: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(document)
        .map_err(|error| raise_as(Fault::Bug, format!("{error} (please report this bug)")))
}

/// What pickle kept as a JSON text.
pub(crate) fn from_json<T: DeserializeOwned>(document: &str) -> PyResult<T> {
    let other =
        |error| raise_as(Fault::Input, format!("the pickle is of another version: {error}; make it again"));
    serde_json::from_str(document).map_err(other)
}
