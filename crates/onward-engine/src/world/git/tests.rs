//! Real git in temporary repositories.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, SystemTime},
};

use onward_core::address::Address;

use super::*;

/// A repository, and the directory that a run would have.
pub(crate) struct Bench {
    _dir: tempfile::TempDir,
    pub(crate) root: PathBuf,
}

impl Bench {
    /// With one commit of `a`, `b` and `dir/c`, and an ignored `*.o`.
    pub(crate) fn new() -> Self {
        let bench = Self::empty();
        for (path, text) in [("a", "a\n"), ("b", "b\n"), ("dir/c", "c\n"), (".gitignore", "*.o\n")]
        {
            bench.write(path, text);
        }
        bench.commit("one");
        bench
    }

    pub(crate) fn empty() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap().join("repo");
        fs::create_dir_all(root.join(".onward/runs/r-1")).unwrap();
        fs::write(root.join(".onward/.gitignore"), "*\n").unwrap();
        let bench = Self { _dir: dir, root };
        bench.git(&["init", "-q", "-b", "main"]);
        bench
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        self.git_with(args, &[])
    }

    fn git_with(&self, args: &[&str], env: &[(&str, &str)]) -> String {
        let me = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
        let mut command = Command::new("git");
        command.current_dir(&self.root).args(me).args(args).envs(env.iter().copied());
        let output = command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    pub(crate) fn commit(&self, message: &str) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.git(&["rev-parse", "HEAD"])
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let full = self.path(path);
        fs::create_dir_all(full.parent().unwrap()).unwrap();
        fs::write(full, text).unwrap();
    }

    pub(crate) fn repo(&self) -> Repo {
        Repo::find(&self.root, &env()).unwrap().unwrap()
    }

    pub(crate) fn chain(&self) -> Chain {
        Chain::new(self.repo(), &self.path(".onward/runs/r-1/git"), "r-1", "")
    }

    fn take(&self) -> String {
        self.chain().take("test", &[]).unwrap().id
    }

    fn tree(&self, id: &str) -> String {
        self.git(&["ls-tree", "-r", "--format=%(objectmode) %(path)", id])
    }

    fn content(&self, id: &str, path: &str) -> String {
        self.git(&["cat-file", "blob", &format!("{id}:{path}")])
    }

    fn changes(&self, base: &str, after: Option<&str>) -> Vec<(String, bool)> {
        let now = Now::look(self.chain()).unwrap();
        let found = now.changes(base, after).unwrap().unwrap().differences;
        found.iter().map(|it| (String::from_utf8_lossy(&it.path).into_owned(), it.moved)).collect()
    }

    /// All that a person would call theirs: index, refs, head, configuration.
    fn own(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut own = BTreeMap::new();
        let mut dirs = vec![self.path(".git")];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(self.path(".git")).unwrap().to_owned();
                if name.starts_with("objects") || name.starts_with("refs/onward") {
                    continue;
                }
                if path.is_dir() {
                    dirs.push(path);
                } else {
                    own.insert(name, fs::read(&path).unwrap());
                }
            }
        }
        own
    }
}

pub(crate) fn env() -> Env {
    vec![("PATH".into(), std::env::var_os("PATH").unwrap())]
}

#[test]
fn outside_a_repository_there_is_none_and_inside_it_is_found_from_everywhere() {
    let outside = tempfile::tempdir().unwrap();
    assert!(Repo::find(outside.path(), &env()).unwrap().is_none());
    let bench = Bench::new();
    for dir in ["", "dir"] {
        let repo = Repo::find(&bench.path(dir), &env()).unwrap().unwrap();
        assert_eq!(repo.index, bench.path(".git/index"));
        assert_eq!(repo.prefix, if dir.is_empty() { &b""[..] } else { b"dir/" });
    }
    // The environment of a hook leads elsewhere; we go by the directory.
    let mut hooked = env();
    hooked.push(("GIT_DIR".into(), "/nowhere".into()));
    hooked.push(("GIT_INDEX_FILE".into(), "/nowhere/index".into()));
    assert!(Repo::find(&bench.root, &hooked).unwrap().is_some());
}

#[test]
fn a_snapshot_has_everything_but_what_is_ignored_and_touches_nothing_of_the_persons() {
    let bench = Bench::new();
    bench.write("staged", "staged\n");
    bench.git(&["add", "staged"]);
    bench.write("b", "changed\n");
    bench.write("new/deep/file with space\nand more", "new\n");
    bench.write("x.o", "ignored\n");
    fs::remove_file(bench.path("dir/c")).unwrap();
    fs::set_permissions(bench.path("a"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("a", bench.path("link")).unwrap();
    let hook = "#!/bin/sh\ntouch \"$GIT_DIR/../hooked\"\n";
    for name in ["reference-transaction", "post-index-change", "pre-commit"] {
        let path = bench.path(&format!(".git/hooks/{name}"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, hook).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let own = bench.own();
    let id = bench.take();
    assert!(own == bench.own(), "nothing of the person's was touched");
    assert!(!bench.path("hooked").exists(), "no hook ran");
    let expected = "100644 .gitignore\n100755 a\n100644 b\n120000 link\n\
                    100644 \"new/deep/file with space\\nand more\"\n100644 staged";
    assert_eq!(bench.tree(&id), expected);
    assert_eq!(bench.content(&id, "b"), "changed");
    assert_eq!(bench.git(&["rev-parse", "refs/onward/r-1"]), id);
}

#[test]
fn while_nothing_changes_the_snapshot_stays_the_same_one() {
    let bench = Bench::new();
    let one = bench.take();
    assert_eq!(bench.take(), one);
    bench.write("a", "other\n");
    let two = bench.take();
    assert_ne!(one, two);
    assert_eq!(bench.git(&["rev-parse", &format!("{two}^1")]), one, "they form one chain");
    bench.write("a", "a\n");
    assert_ne!(bench.take(), one, "the tree is as it was, the moment is not");
    bench.commit("two");
    let committed = bench.take();
    assert_ne!(committed, two, "the branch has moved");
    assert_eq!(bench.take(), committed);
}

#[test]
fn an_edit_within_the_second_of_its_add_is_seen_even_if_size_and_time_are_the_same() {
    let bench = Bench::new();
    bench.git(&["config", "core.trustctime", "false"]);
    let then = SystemTime::UNIX_EPOCH + Duration::from_hours(24);
    let date = |path: &str| {
        let file = fs::File::options().write(true).open(bench.path(path)).unwrap();
        file.set_modified(then).unwrap();
    };
    bench.write("a", "1\n");
    date("a");
    bench.git(&["add", "a"]);
    date(".git/index");
    bench.write("a", "2\n");
    date("a");
    assert_eq!(bench.content(&bench.take(), "a"), "2");
}

#[test]
fn a_link_in_the_place_of_a_directory_is_a_change_like_any_other() {
    let bench = Bench::new();
    let before = bench.take();
    fs::remove_dir_all(bench.path("dir")).unwrap();
    symlink("/", bench.path("dir")).unwrap();
    assert_eq!(bench.changes(&before, None), [("dir".to_owned(), false), ("dir/c".into(), false)]);
    let id = bench.take();
    assert!(bench.tree(&id).contains("120000 dir"), "{}", bench.tree(&id));
    assert!(!bench.tree(&id).contains("dir/c"));
}

#[test]
fn what_was_ignored_before_is_not_new_because_the_rules_are() {
    let bench = Bench::new();
    bench.write(".gitignore", ".env\ndeps/\n");
    bench.write("dir/.gitignore", "local\n");
    for path in [".env", "deps/one", "dir/local"] {
        bench.write(path, "a person's\n");
    }
    let before = bench.take();
    bench.write(".gitignore", "*.log\n");
    fs::remove_file(bench.path("dir/.gitignore")).unwrap();
    bench.write("new", "of the attempt\n");
    let wanted = [".gitignore", "dir/.gitignore", "new"].map(|it| (it.to_owned(), false));
    assert_eq!(bench.changes(&before, None), wanted);
    let after = bench.take();
    assert_eq!(bench.changes(&before, Some(&after)), wanted);
}

#[test]
fn many_new_files_are_one_pack_and_few_are_none() {
    let bench = Bench::new();
    let packs = || {
        let found = fs::read_dir(bench.path(".git/objects/pack")).unwrap();
        found.filter(|it| it.as_ref().unwrap().path().extension().unwrap() == "pack").count()
    };
    bench.write("few", "few\n");
    bench.take();
    assert_eq!(packs(), 0);
    for at in 0..100 {
        bench.write(&format!("many/{at}"), &format!("{at}\n"));
    }
    let id = bench.take();
    assert_eq!(packs(), 1);
    assert_eq!(bench.content(&id, "many/99"), "99");
    assert_eq!(bench.take(), id);
}

#[test]
fn declared_outputs_are_part_of_it_even_if_they_are_ignored() {
    let bench = Bench::new();
    bench.write("x.o", "object\n");
    bench.write("y.o", "other\n");
    let also = ["x.o".to_owned(), "gone.o".to_owned()];
    let id = bench.chain().take("test", &also).unwrap().id;
    assert_eq!(bench.content(&id, "x.o"), "object");
    assert!(!bench.tree(&id).contains("y.o"));
    let mut now = Now::look(bench.chain()).unwrap();
    assert_eq!(now.changes(&id, None).unwrap().unwrap().differences, []);
    bench.write("z.o", "third\n");
    now.include(&["z.o".to_owned()]).unwrap();
    let changes = now.changes(&id, None).unwrap().unwrap().differences;
    assert_eq!(changes[0].path, b"z.o");
    // One that lies behind a link is none that git would take.
    symlink("dir", bench.path("alias")).unwrap();
    let also = ["alias/c".to_owned(), "x.o".to_owned()];
    let taken = bench.chain().take("test", &also).unwrap();
    assert_eq!(taken.skipped, ["alias/c"]);
    assert_eq!(bench.content(&taken.id, "x.o"), "object");
}

#[test]
fn what_is_too_large_or_a_repository_of_its_own_is_left_out_and_named() {
    let bench = Bench::new();
    let large = fs::File::create(bench.path("large")).unwrap();
    large.set_len(FILE_BYTES_MAX + 1).unwrap();
    bench.write("small", "small\n");
    bench.git(&["init", "-q", "inner"]);
    bench.write("inner/file", "inner\n");
    let taken = bench.chain().take("test", &[]).unwrap();
    assert_eq!(taken.skipped, ["inner/", "large"]);
    assert_eq!(
        bench.tree(&taken.id),
        "100644 .gitignore\n100644 a\n100644 b\n100644 dir/c\n\
                                       100644 small"
    );
    let message = bench.git(&["log", "-1", "--format=%B", &taken.id]);
    assert!(message.contains("left out: large"), "{message}");
}

#[test]
fn our_own_directory_is_never_in_it_even_if_somebody_tracks_it() {
    let bench = Bench::new();
    bench.write(".onward/.gitignore", "runs\n");
    bench.write(".onward/config.toml", "one\n");
    bench.commit("track");
    bench.write(".onward/config.toml", "two\n");
    bench.write(".onward/new", "new\n");
    let id = bench.take();
    assert!(!bench.tree(&id).contains(".onward/new"));
    bench.write(".onward/config.toml", "three\n");
    assert_eq!(bench.changes(&id, None), []);
}

#[test]
fn every_state_of_a_repository_can_be_recorded() {
    let unborn = Bench::empty();
    unborn.write("first", "1\n");
    assert_eq!(unborn.tree(&unborn.take()), "100644 first");

    let merging = Bench::new();
    merging.git(&["checkout", "-q", "-b", "side"]);
    merging.write("a", "side\n");
    merging.commit("side");
    merging.git(&["checkout", "-q", "main"]);
    merging.write("a", "main\n");
    merging.commit("main");
    let merge = Command::new("git").current_dir(&merging.root).args(["merge", "side"]).output();
    assert!(!merge.unwrap().status.success(), "it must conflict");
    let id = merging.take();
    assert!(merging.content(&id, "a").contains("<<<<<<<"), "as it stands in the tree");

    let intended = Bench::new();
    intended.write("later", "later\n");
    intended.git(&["add", "-N", "later"]);
    assert_eq!(intended.content(&intended.take(), "later"), "later");

    let swapped = Bench::new();
    fs::remove_file(swapped.path("a")).unwrap();
    swapped.write("a/inside", "1\n");
    fs::remove_dir_all(swapped.path("dir")).unwrap();
    swapped.write("dir", "a file now\n");
    let id = swapped.take();
    assert_eq!(swapped.tree(&id), "100644 .gitignore\n100644 a/inside\n100644 b\n100644 dir");

    let split = Bench::new();
    split.git(&["update-index", "--split-index"]);
    split.write("a", "changed\n");
    let own = split.own();
    assert_eq!(split.content(&split.take(), "a"), "changed");
    assert!(own == split.own());
}

#[test]
fn a_directory_of_a_repository_is_a_tree_of_its_own() {
    let bench = Bench::new();
    fs::create_dir_all(bench.path("dir/.onward/runs/r-1")).unwrap();
    let repo = Repo::find(&bench.path("dir"), &env()).unwrap().unwrap();
    let chain = || Chain::new(repo.clone(), &bench.path("dir/.onward/runs/r-1/git"), "r-1", "");
    let id = chain().take("test", &[]).unwrap().id;
    bench.write("a", "elsewhere\n");
    bench.write("dir/c", "here\n");
    bench.write("dir/new", "here\n");
    let mut now = Now::look(chain()).unwrap();
    let changes = now.changes(&id, None).unwrap().unwrap().differences;
    let paths: Vec<&[u8]> = changes.iter().map(|it| it.path.as_slice()).collect();
    assert_eq!(paths, [&b"c"[..], b"new"]);
    let exported = now.export(&id, &changes).unwrap();
    assert_eq!(fs::read_to_string(exported.join("c")).unwrap(), "c\n");
}

#[test]
fn what_a_killed_git_left_is_in_nobodys_way() {
    let bench = Bench::new();
    bench.take();
    let own = bench.path(".onward/runs/r-1/git");
    fs::write(own.join("index.lock"), "").unwrap();
    fs::write(bench.path(".git/refs/onward/r-1.lock"), "").unwrap();
    bench.write("a", "changed\n");
    assert_eq!(bench.content(&bench.take(), "a"), "changed");
    // As a power cut may leave it.
    fs::write(own.join("index"), vec![0; 4096]).unwrap();
    bench.write("a", "again\n");
    assert_eq!(bench.content(&bench.take(), "a"), "again");
    fs::write(own.join("index"), vec![0; 4096]).unwrap();
    assert_eq!(bench.changes(&bench.git(&["rev-parse", "refs/onward/r-1"]), None), []);
}

#[test]
fn a_comparison_leaves_no_trace() {
    let bench = Bench::new();
    let id = bench.take();
    bench.write("a", "changed\n");
    bench.write("new", "new\n");
    fs::remove_file(bench.path("b")).unwrap();
    let picture = || {
        let mut all = BTreeMap::new();
        let mut dirs = vec![bench.root.clone()];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    dirs.push(path);
                } else {
                    let modified = fs::metadata(&path).unwrap().modified().unwrap();
                    all.insert(path.clone(), (fs::read(&path).unwrap(), modified));
                }
            }
        }
        all
    };
    let before = picture();
    let mut now = Now::look(bench.chain()).unwrap();
    let changes = now.changes(&id, None).unwrap().unwrap().differences;
    assert_eq!(changes.len(), 3);
    let exported = now.export(&id, &changes).unwrap();
    assert_eq!(fs::read_to_string(exported.join("b")).unwrap(), "b\n");
    assert_eq!(now.moved().unwrap(), ["a", "b", "new"]);
    assert!(before == picture());
    let place = now.place().to_owned();
    drop(now);
    assert!(!place.exists());
}

#[test]
fn a_path_that_changed_after_the_snapshot_after_has_moved() {
    let bench = Bench::new();
    let base = bench.take();
    for path in ["a", "b", "new"] {
        bench.write(path, "by the attempt\n");
    }
    let after = bench.take();
    assert_eq!(bench.chain().footprint(&base, &after).unwrap(), ["a", "b", "new"]);
    bench.write("b", "by a person\n");
    bench.write("other", "by a person\n");
    fs::remove_file(bench.path("new")).unwrap();
    let moved = |path: &str, moved| (path.to_owned(), moved);
    let found = bench.changes(&base, Some(&after));
    assert_eq!(found, [moved("a", false), moved("b", true)], "what is back already is not one");
    assert_eq!(Now::look(bench.chain()).unwrap().changes("0123", None).unwrap(), None);
}

#[test]
fn what_the_branch_moved_on_to_is_nobodys_half_done_work() {
    let bench = Bench::new();
    let base = bench.take();
    bench.write("a", "committed\n");
    bench.write("added", "committed\n");
    bench.commit("two");
    bench.write("b", "half done\n");
    assert_eq!(bench.changes(&base, None), [("b".to_owned(), false)]);
    // Half-done again on top of what was committed: it goes back to that, not further.
    bench.write("a", "half done\n");
    let mut now = Now::look(bench.chain()).unwrap();
    let changes = now.changes(&base, None).unwrap().unwrap().differences;
    assert_eq!(changes.iter().map(|it| it.is_of_branch).collect::<Vec<_>>(), [true, false]);
    let exported = now.export(&base, &changes).unwrap();
    assert_eq!(fs::read_to_string(exported.join("a")).unwrap(), "committed\n");
    assert_eq!(fs::read_to_string(exported.join("b")).unwrap(), "b\n");
}

#[test]
fn bases_come_back_as_a_checkout_would_write_them() {
    let bench = Bench::new();
    bench.write(".gitattributes", "*.txt text eol=crlf\n");
    bench.write("dos.txt", "one\r\ntwo\r\n");
    fs::set_permissions(bench.path("a"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("a", bench.path("link")).unwrap();
    bench.commit("two");
    let base = bench.take();
    for path in ["dos.txt", "a", "link"] {
        fs::remove_file(bench.path(path)).unwrap();
    }
    let mut now = Now::look(bench.chain()).unwrap();
    let changes = now.changes(&base, None).unwrap().unwrap().differences;
    let exported = now.export(&base, &changes).unwrap();
    assert_eq!(fs::read(exported.join("dos.txt")).unwrap(), b"one\r\ntwo\r\n");
    assert_eq!(fs::metadata(exported.join("a")).unwrap().permissions().mode() & 0o111, 0o111);
    assert_eq!(fs::read_link(exported.join("link")).unwrap(), Path::new("a"));
    assert!(changes.iter().any(|it| it.base.as_ref().is_some_and(Side::is_link)));
    assert!(changes.iter().any(|it| it.base.as_ref().is_some_and(Side::is_executable)));
}

#[test]
fn a_rescue_shows_as_a_patch_and_its_parent_is_the_tree_without_it() {
    let bench = Bench::new();
    let base = bench.take();
    bench.write("a", "half done\n");
    bench.write("new/file", "half done\n");
    fs::remove_file(bench.path("dir/c")).unwrap();
    bench.write("mine", "a person's\n");
    let own = bench.own();
    let of = Some(base.as_str());
    let paths = BTreeMap::from([("a", of), ("new/file", None), ("dir/c", of)]);
    let undoing = Undoing { title: "what x left", number: 7, paths, also: &[] };
    let kept = bench.chain().rescue(&undoing).unwrap();
    assert!(own == bench.own());
    assert_eq!(kept.reference, "refs/onward/r-1-rescue/7");
    assert_eq!(bench.git(&["rev-parse", &kept.reference]), kept.commit);
    let shown = bench.git(&["show", "--format=", "--name-status", &kept.commit]);
    assert_eq!(shown, "M\ta\nD\tdir/c\nA\tnew/file");
    let expected = "100644 .gitignore\n100644 a\n100644 b\n100644 dir/c\n100644 mine";
    assert_eq!(bench.tree(&kept.undone), expected);
    assert_eq!(bench.content(&kept.undone, "a"), "a");
    // The patch brings it back.
    bench.git(&["checkout", "-q", "--", "a", "dir/c"]);
    fs::remove_file(bench.path("new/file")).unwrap();
    fs::write(bench.path("../patch"), &kept.patch).unwrap();
    bench.git(&["apply", "../patch"]);
    assert_eq!(fs::read_to_string(bench.path("new/file")).unwrap(), "half done\n");
    assert!(!bench.path("dir/c").exists());
}

#[test]
fn a_commit_belongs_to_the_attempt_that_its_trailers_or_the_reflog_name() {
    let bench = Bench::new();
    let start = bench.git(&["rev-parse", "HEAD"]);
    let step = Address::from_text("round[2]/fix[a:b]");
    bench.commit("by a person");
    let action = reflog_action("r-1", &step, 3);
    let args = ["commit", "-q", "--allow-empty", "-m", "by an agent: so"];
    bench.git_with(&args, &[("GIT_REFLOG_ACTION", &action)]);
    let other = reflog_action("r-2", &step, 3);
    bench.git_with(&["commit", "-q", "--allow-empty", "-m", "x"], &[("GIT_REFLOG_ACTION", &other)]);
    bench.commit(&format!("by us\n\n{}", trailers("r-1", &step, 4)));
    let head = bench.git(&["rev-parse", "HEAD"]);
    let commits = bench.repo().commits(Some(&start), &head, "r-1", "HEAD").unwrap();
    let found: Vec<_> = commits.iter().map(|it| (it.subject.as_str(), it.by.clone())).collect();
    let by = |attempt| Some((step.clone(), attempt));
    let expected =
        [("by us", by(4)), ("x", None), ("by an agent: so", by(3)), ("by a person", None)];
    assert_eq!(found, expected);
    assert_eq!(bench.repo().commits(Some(&head), &start, "r-1", "HEAD").unwrap(), []);
    assert_eq!(bench.repo().commits(None, &start, "r-1", "HEAD").unwrap().len(), 1);
    let lost = "0123456789012345678901234567890123456789";
    let commits = bench.repo().commits(Some(&head), lost, "r-1", "HEAD").unwrap();
    assert_eq!(commits[0].id, lost, "one that git has lost is still named");
}

#[test]
fn what_is_as_committed_is_told_from_what_is_not() {
    let bench = Bench::new();
    bench.write("b", "changed\n");
    bench.write("new", "new\n");
    bench.write("x.o", "ignored\n");
    let paths = ["a", "b", "dir/c", "new", "x.o", "gone", "*"].map(str::to_owned);
    let clean = bench.repo().as_committed(&paths).unwrap();
    assert_eq!(clean.into_iter().collect::<Vec<_>>(), ["a", "dir/c"]);
}
