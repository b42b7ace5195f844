//! What a person does to worktrees while nothing drives the run, and what they do about a refusal.
//!
//! A person's own work is marked: files and branches whose names begin with `person`.

use onward_core::{finding::Finding, policy::Choices, worktree::WorktreePlace};
use onward_engine::world::Condition;

use crate::{
    repo::{Commit, HEAD, admin, branch_name, condition, dot_git, resolve, tip_of},
    trees::{Files, files_of},
    world::SimWorld,
};

/// How a worktree gets into each [`Condition`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Break {
    /// `rm -rf` of the directory.
    Directory,
    /// The same, and the branch is deleted.
    DirectoryAndBranch,
    /// `rm .git`, or a prune while the directory was elsewhere.
    Registration,
    /// The branch is deleted, and the files are there.
    Branch,
    /// `git checkout --detach`.
    Detached,
    /// `git checkout -b`, and a commit on that branch.
    OtherBranch,
    /// A rebase that stopped at a conflict; what was not committed is in the stash.
    Rebase,
}

impl Break {
    pub(crate) const ALL: [Self; 7] = [
        Self::Directory,
        Self::DirectoryAndBranch,
        Self::Registration,
        Self::Branch,
        Self::Detached,
        Self::OtherBranch,
        Self::Rebase,
    ];
}

const PERSON_FILE: &str = "person.txt";
const PERSON_TEXT: &[u8] = b"by hand";

/// Whether a path in a tree is a person's own.
pub(crate) fn is_of_person(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| name.starts_with("person"))
}

impl SimWorld {
    /// A repository with one commit, a branch of a person's, and a file that they have not
    /// committed.
    pub(crate) fn begin_repository(&mut self) {
        let files = Files::from([("base.txt".to_owned(), b"base".to_vec())]);
        let subject = "the first".to_owned();
        let first = Commit { parent: None, files: files.clone(), subject, by: None };
        let first = self.repo.commit(first);
        let subject = "a person's".to_owned();
        let theirs = Commit { parent: Some(first.clone()), files, subject, by: None };
        let theirs = self.repo.commit(theirs);
        let write = [
            (HEAD.to_owned(), "ref: refs/heads/main".to_owned()),
            (branch_name("main"), first),
            (branch_name("person"), theirs),
            ("project/base.txt".to_owned(), "base".to_owned()),
            (format!("project/{PERSON_FILE}"), String::from_utf8_lossy(PERSON_TEXT).into()),
        ];
        for (name, text) in write {
            self.disk.write_durably(&name, text.as_bytes(), self.now_us);
            if name != "project/base.txt" {
                self.of_person.insert(name, text.into_bytes());
            }
        }
    }

    /// Nothing of a person's was touched.
    pub(crate) fn check_person(&self, story: &dyn Fn() -> String) {
        for (name, left) in &self.of_person {
            assert_eq!(self.disk.read(name), Some(left.as_slice()), "{name}: {}", story());
        }
    }

    /// Those that were made.
    pub(crate) fn worktrees(&self) -> Vec<WorktreePlace> {
        let names = self.disk.names().filter_map(|name| name.strip_prefix("run/git/worktree-"));
        names.map(|name| WorktreePlace::new(crate::harness::RUN, name)).collect()
    }

    /// A person breaks worktrees in which no agent is at work. Says whether there was one.
    pub(crate) fn break_worktrees(&mut self, how: Break) -> bool {
        let mut is_broken = false;
        for place in self.worktrees() {
            if self.supervisor.works_in(&place.path) || self.chance.one_in(4) {
                continue;
            }
            // Now and then another one is broken in another way.
            let other = Break::ALL[self.chance.below(Break::ALL.len())];
            let how = if self.chance.one_in(5) { other } else { how };
            if condition(&self.disk, &place) == Condition::Fine {
                self.break_one(&place, how);
                is_broken = true;
            }
        }
        is_broken
    }

    fn break_one(&mut self, place: &WorktreePlace, how: Break) {
        let head = admin(place, "HEAD");
        let tip = tip_of(&self.disk, &place.branch);
        let is_dirty = files_of(&self.disk, &place.path) != *self.repo.files(tip.as_deref());
        match how {
            Break::Directory => {
                self.taken.files |= is_dirty;
                self.replace_files(place, &Files::new());
                self.disk.remove(&dot_git(place));
            }
            Break::DirectoryAndBranch => {
                self.taken.files = true;
                self.taken.commits = true;
                self.replace_files(place, &Files::new());
                self.disk.remove(&dot_git(place));
                self.disk.remove(&branch_name(&place.branch));
            }
            Break::Registration => self.disk.remove(&dot_git(place)),
            Break::Branch => {
                self.taken.commits = true;
                self.disk.remove(&branch_name(&place.branch));
            }
            Break::Detached => {
                let tip = tip.unwrap_or_default();
                self.disk.write_durably(&head, tip.as_bytes(), self.now_us);
            }
            Break::OtherBranch => {
                self.taken.files |= is_dirty;
                self.commit_by_person(place, tip, "person-branch");
                let text = format!("ref: refs/heads/person-branch-{}", place.name());
                self.disk.write_durably(&head, text.as_bytes(), self.now_us);
            }
            Break::Rebase => {
                self.taken.files |= is_dirty;
                let onto = self.repo.head(&self.disk, "");
                let id = self.commit_by_person(place, onto, "person-onto");
                self.disk.write_durably(&head, id.as_bytes(), self.now_us);
                self.disk.write_durably(&admin(place, "rebase-merge"), b"todo", self.now_us);
            }
        }
        self.disk.sync_all();
    }

    /// What was not committed goes into the stash, and a commit with a file of the person's on top
    /// of `parent` is checked out.
    fn commit_by_person(
        &mut self,
        place: &WorktreePlace,
        parent: Option<String>,
        branch: &str,
    ) -> String {
        let mut files = self.repo.files(parent.as_deref()).clone();
        files.insert(PERSON_FILE.to_owned(), PERSON_TEXT.to_vec());
        let subject = "by hand".to_owned();
        let id = self.repo.commit(Commit { parent, files: files.clone(), subject, by: None });
        let name = branch_name(&format!("{branch}-{}", place.name()));
        self.disk.write_durably(&name, id.as_bytes(), self.now_us);
        self.of_person.insert(name, id.clone().into_bytes());
        self.replace_files(place, &files);
        id
    }

    /// As `git checkout` does: what is the same keeps its time.
    fn replace_files(&mut self, place: &WorktreePlace, files: &Files) {
        let now = files_of(&self.disk, &place.path);
        for path in now.keys().filter(|path| !files.contains_key(*path)) {
            self.disk.remove(&format!("project/{}/{path}", place.path));
        }
        for (path, bytes) in files.iter().filter(|(path, bytes)| now.get(*path) != Some(*bytes)) {
            let name = format!("project/{}/{path}", place.path);
            self.disk.write_durably(&name, bytes, self.now_us);
        }
        self.disk.sync_all();
    }

    /// A resume was refused. The person puts right what cannot be accepted, and now and then what
    /// they could accept; the rest they accept.
    pub(crate) fn answer(&mut self, findings: &[Finding]) -> Choices {
        for place in self.worktrees() {
            let goes_back = match condition(&self.disk, &place) {
                Condition::Busy(_) => true,
                Condition::Elsewhere(_) => self.chance.one_in(2),
                Condition::Unmade
                | Condition::Fine
                | Condition::Missing { .. }
                | Condition::Unregistered { .. } => false,
            };
            if goes_back {
                self.switch_back(&place);
            }
        }
        let mut choices = Choices::default();
        choices.accept_all(findings);
        choices
    }

    /// `git rebase --abort`, or `git switch BRANCH`, which carries along what is not committed.
    fn switch_back(&mut self, place: &WorktreePlace) {
        let text = format!("ref: refs/heads/{}", place.branch);
        let head = admin(place, "HEAD");
        let (_, stands) = resolve(&self.disk, &head);
        let tip = tip_of(&self.disk, &place.branch);
        self.disk.remove(&admin(place, "rebase-merge"));
        self.disk.write_durably(&head, text.as_bytes(), self.now_us);
        if stands != tip {
            let files = self.repo.files(tip.as_deref()).clone();
            self.replace_files(place, &files);
        }
        self.disk.sync_all();
    }
}
