//! Puts only what differs in place where most of a folder was written again as it was.
//!
//! A folder that was made anew could be exchanged as a whole. But of a reinstall that repairs three files of three
//! thousand only these three have to be copied.

use std::ops::Range;

use super::change::{After, Changes, How, Kind, Permitted, Touched, Unit};
use super::path::TreePath;

/// The same changes, put in place by the smallest number of copies.
pub(super) fn refine(changes: Changes) -> Changes {
    let Changes {
        units,
        touched,
        permitted,
        ..
    } = &changes;
    let mut refined = Refined {
        touched,
        units: Vec::new(),
        permitted: Vec::new(),
    };
    for unit in units {
        refined.keep_or_split(unit.touched.clone());
    }
    let permitted: Vec<_> = permitted.iter().cloned().chain(refined.permitted).collect();
    let (units, touched) = only_those(refined.units, touched, &permitted);
    Changes {
        units,
        touched,
        permitted,
        ..changes
    }
}

/// What is found of the smaller units.
struct Refined<'a> {
    touched: &'a [Touched],
    units: Vec<Unit>,
    permitted: Vec<(TreePath, Permitted)>,
}

impl Refined<'_> {
    /// Something that differs, with all that is in it.
    fn keep_or_split(&mut self, range: Range<usize>) {
        let Some((top, inner)) = self.touched[range.clone()].split_first() else {
            return;
        };
        let is_same = |touched: &&Touched| touched.after == After::Same;
        let same = inner.iter().filter(is_same).count();
        let stays = top.is_folder_before() && top.is_folder_after();
        if !stays || same < inner.len() - same {
            let how = match (&top.before, &top.after) {
                (None, _) => How::Put,
                (Some(_), After::Gone) => How::Take,
                (Some(_), _) => How::Exchange,
            };
            self.units.push(Unit {
                path: top.path.clone(),
                how,
                touched: range,
            });
            return;
        }
        self.permitted.extend(top.permitted());
        let mut at = range.start + 1;
        while at < range.end {
            let end = self.end_of(at, range.end);
            let differs = self.touched[at..end].iter().any(|one| !is_same(&one));
            if differs {
                self.keep_or_split(at..end);
            }
            at = end;
        }
    }

    /// Where what is in something ends.
    fn end_of(&self, at: usize, last: usize) -> usize {
        let path = &self.touched[at].path;
        let rest = &self.touched[at..last];
        at + rest
            .iter()
            .take_while(|one| one.path.is_within(path))
            .count()
    }
}

impl Touched {
    fn is_folder_before(&self) -> bool {
        self.before.is_some_and(|before| before.is_folder())
    }

    fn is_folder_after(&self) -> bool {
        match &self.after {
            After::Same => self.is_folder_before(),
            After::Other(thing) => thing.kind == Kind::Folder,
            After::Gone | After::Permitted(_) => false,
        }
    }

    /// How the permissions of a folder that stays change.
    fn permitted(&self) -> Option<(TreePath, Permitted)> {
        match (&self.before, &self.after) {
            (Some(before), After::Other(thing)) => {
                let permitted = Permitted {
                    before: before.permissions(),
                    after: thing.mode,
                };
                Some((self.path.clone(), permitted))
            }
            _ => None,
        }
    }
}

/// The units with only what they touch, and the folders whose permissions change.
fn only_those(
    units: Vec<Unit>,
    touched: &[Touched],
    permitted: &[(TreePath, Permitted)],
) -> (Vec<Unit>, Vec<Touched>) {
    let folders = permitted.iter().map(|(path, permitted)| Touched {
        path: path.clone(),
        // Its times change with what is put into it.
        before: None,
        after: After::Permitted(*permitted),
    });
    let mut kept: Vec<_> = folders.collect();
    let mut moved = Vec::with_capacity(units.len());
    for unit in units {
        let from = kept.len();
        kept.extend_from_slice(&touched[unit.touched.clone()]);
        moved.push(Unit {
            touched: from..kept.len(),
            ..unit
        });
    }
    (moved, kept)
}
