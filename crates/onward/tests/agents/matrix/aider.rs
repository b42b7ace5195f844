//! Aider: plain text, and exit code 0 whatever happened.

use crate::stage::Stage;

use super::{
    Cell::{self, Never},
    End, PLAIN_LIMIT, Program, Sample, Situation, ended, play, seen,
};

const BEGUN: &str = "Aider v0\nRepo-map: disabled\n";

fn well(answer: &str) -> String {
    format!("{BEGUN}\n{answer}\n\nTokens: 1.2k sent, 7 received.")
}

fn failed(words: &str) -> String {
    format!("{BEGUN}\n{words}\n\n")
}

pub(super) fn program() -> Program {
    Program {
        name: "aider",
        transcript: ".aider",
        well: format!("{}\n", well("done")),
        result: format!("{}\n", well("```json\n{\"n\": 1}\n```")),
        cell,
        also: vec![("no word of an answer", seen(BEGUN, 0, "crash"))],
    }
}

fn cell(situation: Situation) -> Cell {
    match situation {
        Situation::LimitWithReset => {
            let words = "litellm.RateLimitError: RateLimitError: Rate limit reached for\n\
                         model. Please try again in 3600s.\n\
                         The API provider has rate limited you. Try again later.";
            seen(failed(words), 0, "rate_limited")
        }
        Situation::LimitWithoutReset => {
            seen(failed("litellm.RateLimitError: too many requests"), 0, "rate_limited")
        }
        Situation::LimitInPlainWords => seen(well(PLAIN_LIMIT), 0, "usage_limit"),
        Situation::Status529 => {
            let words = "litellm.APIError: APIError: OpenAIException - Overloaded\n\
                         Retrying in 0.2 seconds...\n\
                         litellm.APIError: APIError: OpenAIException - Overloaded";
            seen(failed(words), 0, "overloaded")
        }
        // That is what it says of any fault of the servers.
        Situation::Status500 => {
            let words = "litellm.InternalServerError: InternalServerError: Internal\n\
                         server error\nThe API provider's servers are down or overloaded.";
            seen(failed(words), 0, "overloaded")
        }
        Situation::Status401 => {
            let words = "litellm.AuthenticationError: OpenAIException - invalid\nx-api-key\n\
                         The API provider is not able to authenticate you.";
            seen(failed(words), 0, "auth")
        }
        Situation::Overflow => {
            let words = "litellm.BadRequestError: Your input exceeds the context window\nof it.";
            seen(failed(words), 0, "context_overflow")
        }
        Situation::StreamDropped => {
            seen(failed("litellm.APIConnectionError: Connection error."), 0, "network")
        }
        Situation::BudgetSpent => Never("it has no cap on money"),
        Situation::TooManyTurns => Never("it has no cap on turns"),
        Situation::SchemaRefused => seen(well("no"), 0, "schema_violation"),
        Situation::ToolDenied => {
            let out = format!("{}\nDid not apply edit to a.txt (--dry-run)", well("a.txt"));
            seen(out, 0, "permission_denied")
        }
        Situation::Interrupt => seen(failed("^C again to exit"), 0, "interrupted"),
        Situation::Terminate => ended(BEGUN, End::Signal("TERM"), "crash"),
        Situation::Kill => ended(BEGUN, End::Signal("KILL"), "crash"),
        Situation::UnknownSession | Situation::UsedSession | Situation::SecondWriter => {
            Never("it keeps no sessions")
        }
    }
}

/// A project in which aider does as asked at once.
fn plays(out: String, step: &str) -> Stage {
    let sample = Sample { out, err: "", end: End::Code(0), cause: "" };
    play::stage(&program(), &sample, step)
}

#[test]
fn a_result_is_taken_out_of_its_message() {
    let step = ", result: { schema: s.json }";
    plays(program().result, step).exits("run w.yaml --yes", 0);
}

#[test]
fn its_tokens_and_their_price_are_billed_where_it_knows_them() {
    let tokens = "Tokens: 5.9k sent, 3k cache hit, 7 received.";
    let out = format!("{BEGUN}\ndone\n{tokens} Cost: $0.02 message, $0.31 session.");
    let stage = plays(out, "");
    stage.exits("run w.yaml --yes", 0);
    let spent = &stage.of("attempt.spent")[0];
    assert_eq!((&spent["usd"], &spent["output_tokens"]), (&0.02.into(), &7.into()), "{spent}");
    let (input, cached) = (&spent["input_tokens"], &spent["cache_read_tokens"]);
    assert_eq!((input, cached), (&2900.into(), &3000.into()), "{spent}");
}
