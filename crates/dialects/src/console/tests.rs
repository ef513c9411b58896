//! Golden transcripts: what the page sends and what it is sent, one story a file.
