//! Storage of walprobe's own beside plain files: made on what holds the directory, seen in the
//! scratch folder, announced in the undo file before, gone with the scratch folder.

pub(crate) mod dataset;
pub(crate) mod format;
pub(crate) mod image;
pub(crate) mod loops;
