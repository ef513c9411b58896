//! What git's index says, apart from what it remembers of the times and places of files.
//!
//! Every look that git takes may write the index anew, with the same files staged in it.

/// How an index begins.
const MARK: &[u8] = b"DIRC";
/// How long the names of objects are, by the two ways that git has to make them.
const HASHES: [usize; 2] = [20, 32];
/// What git knows of a file by the file system, and where in it are when it was changed and its mode.
const STATUS: usize = 40;
const TIME: usize = 8;
const MODE: usize = 24;
/// The flags of an entry: more of them follow; the length of its name.
const EXTENDED: u16 = 0x4000;
const LENGTH: u16 = 0x0fff;

/// Whether two indexes say the same; not if one of them is not understood.
pub(crate) fn says_the_same(one: &[u8], other: &[u8]) -> bool {
    meaning(one).is_some_and(|one| meaning(other).is_some_and(|other| one == other))
}

/// When the newest file in an index was last changed, in seconds and nanoseconds. What git knows of such
/// files it does not trust if they are not older than the index.
pub(crate) fn newest(index: &[u8]) -> Option<(u32, u32)> {
    Some(read(index)?.newest)
}

/// What an index says.
#[derive(Debug, Default)]
struct Said {
    /// Everything that is staged, one after the other.
    staged: Vec<u8>,
    newest: (u32, u32),
}

fn meaning(index: &[u8]) -> Option<Vec<u8>> {
    Some(read(index)?.staged)
}

fn read(index: &[u8]) -> Option<Said> {
    HASHES.iter().find_map(|hash| parse(index, *hash))
}

/// An index ends with a hash of itself, so one that is read with the wrong length of hashes does not
/// come out even.
fn parse(index: &[u8], hash: usize) -> Option<Said> {
    let end = index.len().checked_sub(hash)?;
    let mut reader = Reader { bytes: index.get(..end)?, at: 0 };
    if reader.take(MARK.len())? != MARK {
        return None;
    }
    let version = reader.number()?;
    let count = reader.number()?;
    let (mut said, mut name) = (Said::default(), Vec::new());
    for _ in 0..count {
        reader.entry(version, hash, &mut name, &mut said)?;
    }
    reader.extensions()?;
    Some(said)
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Reads an entry after the one of this name.
    fn entry(
        &mut self,
        version: u32,
        hash: usize,
        name: &mut Vec<u8>,
        Said { staged: said, newest }: &mut Said,
    ) -> Option<()> {
        let start = self.at;
        let status = self.take(STATUS)?;
        let mut times = Reader { bytes: status.get(TIME..)?, at: 0 };
        *newest = (*newest).max((times.number()?, times.number()?));
        said.extend(status.get(MODE..MODE + 4)?);
        said.extend(self.take(hash)?);
        let flags = self.short()?;
        let more = if flags & EXTENDED != 0 { self.short()? } else { 0 };
        said.extend((flags & !(EXTENDED | LENGTH)).to_be_bytes());
        said.extend(more.to_be_bytes());
        match version {
            2 | 3 => {
                *name = self.text()?.to_vec();
                // What follows begins at a multiple of eight; one zero was read.
                self.take((8 - (self.at - start) % 8) % 8)?;
            }
            4 => {
                let kept = name.len().checked_sub(self.varint()?)?;
                name.truncate(kept);
                name.extend(self.text()?);
            }
            _ => return None,
        }
        said.extend(&*name);
        said.push(0);
        Some(())
    }

    /// Passes over what may be left out; what may not begins with a small letter. Of such, one says that
    /// there are folders among the files, which can be seen, and the others are not understood.
    fn extensions(&mut self) -> Option<()> {
        while self.at < self.bytes.len() {
            let kind = self.take(4)?;
            if !kind.first()?.is_ascii_uppercase() && kind != b"sdir" {
                return None;
            }
            let length = usize::try_from(self.number()?).ok()?;
            self.take(length)?;
        }
        Some(())
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(length)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn short(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    /// What comes before the next zero, which is read too.
    fn text(&mut self) -> Option<&'a [u8]> {
        let length = memchr::memchr(0, self.bytes.get(self.at..)?)?;
        let text = self.take(length)?;
        self.take(1)?;
        Some(text)
    }

    /// A number in pieces of seven bits, each but the last one less than it is.
    fn varint(&mut self) -> Option<usize> {
        let mut byte = *self.take(1)?.first()?;
        let mut number = usize::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = *self.take(1)?.first()?;
            number = number.checked_add(1)?.checked_mul(0x80)? + usize::from(byte & 0x7f);
        }
        Some(number)
    }
}

#[cfg(test)]
mod tests;
