//! A child is born: it shares our memory until it is another program.
//!
//! This is what the C library's `posix_spawn` does, without its 120 calls that look at every signal
//! there is, its new stack for each child, and an environment that is copied for each. The only
//! module with code that the compiler cannot check.
//!
//! Invariant: between `clone` and `execve` the child makes system calls and nothing else: it
//! allocates nothing, takes no lock, returns nowhere, and writes to nothing of ours but
//! [`Orders::failed`]. Everything that it reads was made before and outlives it, because we stand
//! still until it is another program or has ended. No handler of ours ever runs in it: every signal
//! is blocked until it has given them up.
#![expect(unsafe_code, reason = "a child without fork, and cheaper than posix_spawn; see above")]

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    io,
    mem::MaybeUninit,
    os::fd::{AsRawFd as _, BorrowedFd, RawFd},
    ptr,
};

/// All that the supervisor catches, and what Rust's runtime ignores. Of the others the kernel
/// takes care: a new program inherits no handler.
const CAUGHT: [c_int; 5] =
    [libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGPIPE];
/// A few calls deep, with a page to spare.
const STACK_BYTES: usize = 64 << 10;

/// What a child becomes.
#[derive(Debug)]
pub(super) struct Child<'a> {
    /// Looked up already; where it is relative, from `cwd`.
    pub(super) program: &'a CStr,
    pub(super) argv: &'a [CString],
    /// `NAME=value`, each name once.
    pub(super) env: &'a [&'a CStr],
    pub(super) cwd: &'a CStr,
    /// Standard input, output and error.
    pub(super) stdio: [BorrowedFd<'a>; 3],
}

/// What children stand on while they are still ours: one after the other.
pub(super) struct Stack(Box<[MaybeUninit<u8>]>);

impl Stack {
    pub(super) fn new() -> Self {
        Self(Box::new_uninit_slice(STACK_BYTES))
    }
}

impl std::fmt::Debug for Stack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Stack").field(&self.0.len()).finish()
    }
}

/// What the child reads, and the one thing that it says.
struct Orders {
    program: *const c_char,
    argv: *const *const c_char,
    env: *const *const c_char,
    cwd: *const c_char,
    stdio: [RawFd; 3],
    no_signals: libc::sigset_t,
    /// Why it did not become another program; 0 = it did.
    failed: c_int,
}

/// Starts it in a process group of its own, with no signal blocked and none ignored by us.
pub(super) fn bear(child: &Child<'_>, stack: &mut Stack) -> io::Result<i32> {
    let pointers = |texts: &mut dyn Iterator<Item = *const c_char>| -> Vec<*const c_char> {
        texts.chain([ptr::null()]).collect()
    };
    let argv = pointers(&mut child.argv.iter().map(|it| it.as_ptr()));
    let env = pointers(&mut child.env.iter().map(|it| it.as_ptr()));
    let stdio = child.stdio.map(|it| it.as_raw_fd());
    // Each is put to its place in turn; none may stand on the place of another.
    if stdio.iter().any(|it| *it < 3) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut orders = Orders {
        program: child.program.as_ptr(),
        argv: argv.as_ptr(),
        env: env.as_ptr(),
        cwd: child.cwd.as_ptr(),
        stdio,
        no_signals: signals(false),
        failed: 0,
    };
    let (every, mut ours) = (signals(true), signals(false));
    // SAFETY: both sets are initialised, and the call changes nothing but the mask of this thread.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const every, &raw mut ours) };
    let stack_end = stack.0.as_mut_ptr_range().end;
    // SAFETY: the stack is ours alone (`&mut`), large enough, and grows down from its aligned end.
    // With CLONE_VFORK this thread stands still until the child has left our memory, so `orders`
    // and all it points to live as long as the child looks at them, and nothing else uses them.
    let pid = unsafe {
        let top = stack_end.sub(stack_end.addr() % 16);
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        libc::clone(begin, top.cast(), flags, (&raw mut orders).cast())
    };
    let not_born = io::Error::last_os_error();
    // SAFETY: as above; the mask is the one from before.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const ours, ptr::null_mut()) };
    if pid < 0 {
        return Err(not_born);
    }
    // SAFETY: the child may have written it through its pointer; it no longer can.
    let failed = unsafe { ptr::read_volatile(&raw const orders.failed) };
    if failed == 0 {
        return Ok(pid);
    }
    // It has ended at once, and must not be found among the children.
    let stillborn = rustix::process::Pid::from_raw(pid);
    while let Err(rustix::io::Errno::INTR) =
        rustix::process::waitpid(stillborn, rustix::process::WaitOptions::empty())
    {}
    Err(io::Error::from_raw_os_error(failed))
}

fn signals(all: bool) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: either call initialises the whole set, and cannot fail with a valid pointer.
    unsafe {
        if all {
            libc::sigfillset(set.as_mut_ptr());
        } else {
            libc::sigemptyset(set.as_mut_ptr());
        }
        set.assume_init()
    }
}

/// The child, until it is another program. See the module for what it may do.
extern "C" fn begin(orders: *mut c_void) -> c_int {
    let orders = orders.cast::<Orders>();
    // SAFETY: `bear` gave us a pointer to its own orders and stands still; every pointer in them
    // leads to text or to a list that ends with null. The calls are plain system calls.
    unsafe {
        become_it(orders);
        (*orders).failed = *libc::__errno_location();
        libc::_exit(127)
    }
}

/// Returns only where it failed.
unsafe fn become_it(orders: *mut Orders) {
    // SAFETY: as for `begin`. A table of handlers of its own came with `clone`.
    unsafe {
        let mut default: libc::sigaction = MaybeUninit::zeroed().assume_init();
        default.sa_sigaction = libc::SIG_DFL;
        for signal in CAUGHT {
            libc::sigaction(signal, &raw const default, ptr::null_mut());
        }
        if libc::setpgid(0, 0) < 0 {
            return;
        }
        let [stdin, stdout, stderr] = (*orders).stdio;
        // The copies stay open in the new program; what they were copied from does not.
        if libc::dup2(stdin, 0) < 0 || libc::dup2(stdout, 1) < 0 || libc::dup2(stderr, 2) < 0 {
            return;
        }
        if libc::chdir((*orders).cwd) < 0 {
            return;
        }
        libc::sigprocmask(libc::SIG_SETMASK, &raw const (*orders).no_signals, ptr::null_mut());
        libc::execve((*orders).program, (*orders).argv, (*orders).env);
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, io::Read as _, os::fd::AsFd as _};

    use rustix::process::{Pid, WaitOptions, WaitStatus, waitpid};

    use super::*;

    /// What a program says on standard output and how it ends.
    fn born(program: &CStr, argv: &[&str], cwd: &CStr) -> io::Result<(String, WaitStatus)> {
        let argv: Vec<CString> = argv.iter().map(|it| CString::new(*it).unwrap()).collect();
        let null = File::open("/dev/null")?;
        let (mut said, says) = std::io::pipe()?;
        let stdio = [null.as_fd(), says.as_fd(), null.as_fd()];
        let child = Child { program, argv: &argv, env: &[c"A=1", c"B=two words"], cwd, stdio };
        let pid = bear(&child, &mut Stack::new())?;
        drop(says);
        let mut text = String::new();
        said.read_to_string(&mut text)?;
        let (_, status) = waitpid(Pid::from_raw(pid), WaitOptions::empty())?.unwrap();
        Ok((text, status))
    }

    #[test]
    fn a_child_is_the_program_that_was_asked_for_and_nothing_of_ours() {
        let ours = tempfile::Builder::new().prefix("only-ours-").tempfile().unwrap();
        let script = r#"echo "$0 $1 $A $B"; pwd; ls -l /proc/self/fd | grep -c only-ours-
            ps -o pgid= -p $$ | { read -r group; [ "$group" = $$ ] && echo own; }; exit 7"#;
        let argv = ["name", "-c", script, "zero", "one"];
        let (said, status) = born(c"/bin/sh", &argv, c"/usr").unwrap();
        assert_eq!(said, "zero one 1 two words\n/usr\n0\nown\n");
        drop(ours);
        assert_eq!(status.exit_status(), Some(7));
    }

    #[test]
    fn a_child_neither_blocks_a_signal_nor_ignores_what_we_do() {
        let argv = ["cat", "/proc/self/status"];
        let (said, _) = born(c"/bin/cat", &argv, c"/").unwrap();
        let mask = |name: &str| {
            let line = said.lines().find_map(|it| it.strip_prefix(name)).unwrap();
            u64::from_str_radix(line.trim_start_matches(':').trim(), 16).unwrap()
        };
        assert_eq!((mask("SigBlk"), mask("SigCgt")), (0, 0));
        let caught = CAUGHT.iter().fold(0, |mask, signal| mask | 1_u64 << (signal - 1));
        assert_eq!(mask("SigIgn") & caught, 0);
    }

    #[test]
    fn a_child_that_cannot_become_its_program_leaves_nothing_but_the_reason() {
        let why = |program: &CStr, cwd: &CStr| born(program, &["x"], cwd).unwrap_err().kind();
        assert_eq!(why(c"/no/such/program", c"/"), io::ErrorKind::NotFound);
        assert_eq!(why(c"/bin/true", c"/no/such/directory"), io::ErrorKind::NotFound);
        assert_eq!(why(c"/etc/passwd", c"/"), io::ErrorKind::PermissionDenied);
        let children = std::fs::read_to_string("/proc/thread-self/children");
        assert_eq!(children.unwrap(), "", "no zombie is left");
    }
}
