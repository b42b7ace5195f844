//! What git keeps for a run: commits that carry its trailers, and refs of its own.
//!
//! Invariant: only refs below `refs/onward/` that name the run are ever deleted, and only when
//! nothing of the run is left that could need them.

use onward_core::address::Address;

use super::{command::GitError, repo::Repo};

impl Repo {
    /// Commits on branches that say which attempt of the run they are of, the newest first.
    pub fn commits_of(&self, run: &str) -> Result<Vec<(String, Address, u32)>, GitError> {
        let value = |name: &str| format!("%(trailers:key={name},valueonly,separator=%x2C)");
        let format = format!(
            "--format=%H%x00{}%x00{}%x00{}",
            value("Onward-Run"),
            value("Onward-Step"),
            value("Onward-Attempt")
        );
        let grep = format!("--grep=^Onward-Run: {run}$");
        let answer = self
            .looking()
            .ask(&["log", "--branches", "--no-show-signature", &grep, &format], &[])?;
        let text = String::from_utf8_lossy(&answer.out);
        let commits = text.lines().filter_map(|line| {
            let mut fields = line.split('\0').map(str::trim);
            let (commit, of) = (fields.next()?, fields.next()?);
            let (step, attempt) = (fields.next()?, fields.next()?.parse().ok()?);
            let is_ours = of == run && !step.is_empty();
            is_ours.then(|| (commit.to_owned(), Address::from_text(step), attempt))
        });
        Ok(commits.collect())
    }

    /// Whether some branch or tag leads to the commit.
    pub fn is_reachable(&self, commit: &str) -> Result<bool, GitError> {
        let args = ["for-each-ref", "--count=1", "--contains", commit, "refs/heads", "refs/tags"];
        let answer = self.looking().ask(&args, &[])?;
        Ok(answer.code == Some(0) && !answer.out.is_empty())
    }

    /// Deletes the snapshots and rescues that git keeps for a run. Says how many refs that were.
    pub fn forget(&self, run: &str) -> Result<usize, GitError> {
        let chain = format!("refs/onward/{run}");
        let others = [format!("{chain}-rescue"), format!("{chain}-worktree")];
        let args = ["for-each-ref", "--format=%(refname)", &chain, &others[0], &others[1]];
        let out = self.looking().run(&args)?;
        let text = String::from_utf8_lossy(&out);
        let is_ours = |name: &&str| {
            let is_below = |other: &String| {
                name.strip_prefix(other.as_str()).is_some_and(|it| it.starts_with('/'))
            };
            **name == *chain || others.iter().any(is_below)
        };
        let names: Vec<&str> = text.lines().filter(is_ours).collect();
        if names.is_empty() {
            return Ok(0);
        }
        let mut lines = String::new();
        for name in &names {
            lines.push_str("delete ");
            lines.push_str(name);
            lines.push('\n');
        }
        self.looking().feed(&["update-ref", "--stdin"], lines.as_bytes())?;
        Ok(names.len())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Bench;
    use super::*;

    fn repo(bench: &Bench) -> Repo {
        let path = ("PATH".into(), "/usr/bin:/bin".into());
        Repo::find(&bench.root, &vec![path]).unwrap().unwrap()
    }

    #[test]
    fn commits_are_found_by_their_trailers_and_by_nothing_else() {
        let bench = Bench::new();
        let trailers = super::super::trailers("r-1", &Address::from_text("a/b[x]"), 2);
        let ours = bench.commit(&format!("done\n\n{trailers}"));
        bench.commit(&format!("other\n\n{}", trailers.replace("r-1", "r-10")));
        bench.commit("talks of Onward-Run: r-1");
        let found = repo(&bench).commits_of("r-1").unwrap();
        assert_eq!(found, [(ours.clone(), Address::from_text("a/b[x]"), 2)]);
        assert!(repo(&bench).is_reachable(&ours).unwrap());
        bench.git(&["checkout", "-q", "--detach"]);
        let lonely = bench.commit("on no branch");
        assert!(!repo(&bench).is_reachable(&lonely).unwrap());
        assert!(!repo(&bench).is_reachable("0123456789").unwrap());
    }

    #[test]
    fn only_the_refs_of_that_run_are_let_go() {
        let bench = Bench::new();
        let kept = ["refs/heads/main", "refs/onward/r-10", "refs/onward/r-1x-rescue/1"];
        let gone = [
            "refs/onward/r-1",
            "refs/onward/r-1-rescue/1",
            "refs/onward/r-1-rescue/2",
            "refs/onward/r-1-worktree/draft.ann",
        ];
        for name in kept.iter().chain(&gone) {
            bench.git(&["update-ref", name, "HEAD"]);
        }
        assert_eq!(repo(&bench).forget("r-1").unwrap(), 4);
        assert_eq!(repo(&bench).forget("r-1").unwrap(), 0);
        let left = bench.git(&["for-each-ref", "--format=%(refname)"]);
        assert_eq!(left.lines().collect::<Vec<_>>(), kept);
    }
}
