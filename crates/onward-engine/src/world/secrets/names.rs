//! Which variables hold secrets, and the forms in which a value shows in a text.

use std::fmt::Write as _;

use serde_json::Value;

/// A shorter value is no secret, and would be found everywhere.
const BYTES_MIN: usize = 6;
/// A line of a longer value that is a secret of its own.
const LINE_BYTES_MIN: usize = 16;
/// With fewer characters an encoded form could be part of any word.
const ENCODED_BYTES_MIN: usize = 8;

/// How a name ends that is a secret's, whatever stands before it.
const ENDINGS: [&str; 10] = [
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "PWD",
    "AUTHORIZATION",
    "SIGNING_SEED",
    "KUBECONFIG_DATA",
];
/// A word of a name, between underscores, that makes it a secret's.
const WORDS: [&str; 23] = [
    "KEY",
    "KEYS",
    "APIKEY",
    "TOKEN",
    "TOKENS",
    "SECRET",
    "SECRETS",
    "PASS",
    "PW",
    "PWD",
    "PAT",
    "CREDENTIAL",
    "CREDENTIALS",
    "CREDS",
    "AUTH",
    "DSN",
    "COOKIE",
    "JWT",
    "BEARER",
    "SK",
    "UNSEAL",
    "WEBHOOK",
    "WEBHOOKS",
];
/// The last word of a name that says where something is, and not what it is.
const PLACES: [&str; 6] = ["FILE", "PATH", "DIR", "SOCK", "SOCKET", "HOME"];
/// What a setting may be, and no secret is.
const SETTINGS: [&str; 8] =
    ["default", "disabled", "enabled", "keyring", "localhost", "optional", "password", "required"];

/// A value that must not be written, and what it is called.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Secret {
    pub(super) name: String,
    pub(super) value: String,
}

/// What of a variable is secret: the whole value, the password of an address, or nothing.
pub(super) fn secret_of(name: &str, value: &str) -> Option<Secret> {
    let is_whole = is_secret_name(name) && !SETTINGS.contains(&value);
    let value = if is_whole { value.trim_end_matches('\n') } else { password_in(value)? };
    let is_long = value.len() >= BYTES_MIN;
    is_long.then(|| Secret { name: name.to_owned(), value: value.to_owned() })
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    // Our own, and the directories of a shell.
    if name.starts_with("ONWARD_") || name == "PWD" || name == "OLDPWD" {
        return false;
    }
    let words: Vec<&str> = name.split(['_', '-', '.']).collect();
    if words.last().is_some_and(|last| PLACES.contains(last)) {
        return false;
    }
    let ends = ENDINGS.iter().any(|ending| name.ends_with(ending));
    ends || words.iter().any(|word| WORDS.contains(word))
}

/// `scheme://user:PASSWORD@host`
fn password_in(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once("://")?;
    let authority = rest.split(['/', '?', '#', ' ']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    let (_, password) = user.split_once(':')?;
    Some(password)
}

/// Every way in which a value is looked for: as it is, in JSON, in an address, in base64, and by
/// its lines.
pub(super) fn forms(value: &str) -> Vec<String> {
    let mut all = vec![value.to_owned()];
    let escaped = Value::from(value).to_string();
    all.push(escaped[1..escaped.len() - 1].to_owned());
    all.push(percent(value));
    if value.contains('\n') {
        let lines = value.lines().map(str::trim);
        let is_one = |line: &&str| line.len() >= LINE_BYTES_MIN && !line.starts_with("-----");
        all.extend(lines.filter(is_one).map(str::to_owned));
    }
    for alphabet in [STANDARD, URL_SAFE] {
        let shifted = (0..3).map(|shift| base64(value.as_bytes(), shift, alphabet));
        all.extend(shifted.filter(|it| it.len() >= ENCODED_BYTES_MIN));
    }
    all.sort();
    all.dedup();
    all
}

fn percent(value: &str) -> String {
    value.bytes().fold(String::new(), |mut all, byte| {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            all.push(char::from(byte));
        } else {
            let _ = write!(all, "%{byte:02X}");
        }
        all
    })
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The characters that depend on the value alone when `shift` (mod 3) bytes stand before it and
/// anything after it.
fn base64(value: &[u8], shift: usize, alphabet: &[u8; 64]) -> String {
    let bits = |index: usize| value.get(index.wrapping_sub(shift)).copied().unwrap_or(0);
    let first = (shift * 8).div_ceil(6);
    let whole = (shift + value.len()) * 8 / 6;
    let sextet = |index: usize| {
        let (byte, offset) = (index * 6 / 8, index * 6 % 8);
        let pair = u16::from(bits(byte)) << 8 | u16::from(bits(byte + 1));
        usize::from(pair >> (10 - offset) & 0x3f)
    };
    (first..whole).map(|index| char::from(alphabet[sextet(index)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known_and_others_are_not() {
        let long = "s3cret-value";
        for name in [
            "API_KEY",
            "DB_PASS",
            "GH_PAT",
            "SENTRY_DSN",
            "db_password",
            "PGPASSWORD",
            "AWS_ACCESS_KEY_ID",
            "NPM_AUTH_TOKEN",
            "SESSION_COOKIE",
            "DB_PWD",
            "VAULT_CREDENTIALS",
            "HTTP_AUTHORIZATION",
            "USERPWD",
            "STRIPE_SK",
            "SLACK_WEBHOOK",
            "VAULT_UNSEAL",
            "KUBECONFIG_DATA",
            "JWT",
            "githubtoken",
        ] {
            assert!(secret_of(name, long).is_some(), "{name}");
        }
        for name in [
            "HOME",
            "PATH",
            "PWD",
            "OLDPWD",
            "SSH_AUTH_SOCK",
            "KEYBOARD",
            "COMPASS",
            "API_KEY_FILE",
            "ONWARD_KEY",
        ] {
            assert_eq!(secret_of(name, long), None, "{name}");
        }
        assert_eq!(secret_of("API_KEY", "short"), None);
        assert_eq!(secret_of("AUTH", "enabled"), None);
    }

    #[test]
    fn of_an_address_the_password_is_secret() {
        let found = secret_of("DATABASE_URL", "postgres://ann:s3cret99@db:5432/x?y=a@b").unwrap();
        assert_eq!(found.value, "s3cret99");
        assert_eq!(secret_of("DATABASE_URL", "postgres://db:5432/x"), None);
    }

    #[test]
    fn every_alignment_of_base64_is_a_form() {
        let all = forms("hunter22hunter22");
        // `echo`, with one byte before it, with two bytes before it.
        for whole in
            ["aHVudGVyMjJodW50ZXIyMgo=", "eGh1bnRlcjIyaHVudGVyMjIK", "eHhodW50ZXIyMmh1bnRlcjIyCg=="]
        {
            assert!(all.iter().any(|form| whole.contains(form.as_str())), "{whole}: {all:?}");
        }
        assert!(forms("a b+c/d\n").contains(&"a%20b%2Bc%2Fd%0A".to_owned()));
        let pem = "-----BEGIN X-----\nabcdefghijklmnopqrst\nuvw\n-----END X-----";
        assert!(forms(pem).contains(&"abcdefghijklmnopqrst".to_owned()));
    }
}
