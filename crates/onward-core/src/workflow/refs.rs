//! What a template looks at, found by walking its syntax tree.
//!
//! Nothing is evaluated. A name that the template itself sets (`{% for %}`, `{% set %}`,
//! `{% with %}`) is its own affair; everything else is a [`Use`] for the checker to resolve.

use std::sync::LazyLock;

use minijinja::{
    machinery::{
        Span,
        ast::{CallArg, Expr, Stmt},
        parse, parse_expr,
    },
    syntax::SyntaxConfig,
};

use super::{
    begun::IN_SCRIPT,
    bounded::check_depth,
    shell::{Place, Places},
    template::{FILTERS, FUNCTIONS, TESTS, message},
};

/// One look at an outer name, such as `steps.review.result`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Use {
    pub(super) name: String,
    pub(super) path: Vec<Part>,
    /// Where the name begins, in bytes of the source.
    pub(super) offset: usize,
}

/// A piece of the path behind a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Known {
        name: String,
        offset: usize,
    },
    /// `[expr]`: any of them.
    Computed,
}

/// What the text has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Text with holes.
    Text,
    /// Text with holes for a shell.
    Command,
    /// `{{ expr }}` or the bare expression.
    Condition,
    /// `{{ expr }}`
    Expression,
}

/// Something wrong with a template, before any name is resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) offset: usize,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

const SIMPLER: &str = "let a step compute it and use its result";

/// Keeps the last line end, as the text without holes does.
pub(super) fn syntax() -> &'static SyntaxConfig {
    static SYNTAX: LazyLock<SyntaxConfig> = LazyLock::new(|| {
        let config = SyntaxConfig::builder().keep_trailing_newline(true).build();
        config.expect("the usual delimiters are valid")
    });
    &SYNTAX
}

/// The inside of `{{ … }}` when this is the whole text.
pub(super) fn lone_expression(text: &str) -> Option<&str> {
    let text = text.trim();
    let inner = text.strip_prefix("{{")?.strip_suffix("}}")?;
    let inner = inner.strip_prefix(['-', '+']).unwrap_or(inner);
    let inner = inner.strip_suffix(['-', '+']).unwrap_or(inner);
    // `{{ a }} {{ b }}` begins and ends likewise; only the parser can tell braces from braces.
    let doubtful = ["{{", "}}", "{%", "{#"].iter().any(|mark| inner.contains(mark));
    if !doubtful {
        return Some(inner);
    }
    check_depth(text, false).ok()?;
    let Ok(Stmt::Template(template)) = parse(text, "", syntax().clone()) else { return None };
    matches!(template.children.as_slice(), [Stmt::EmitExpr(_)]).then_some(inner)
}

/// All uses, or all faults.
pub(super) fn find(source: &str, form: Form) -> Result<Vec<Use>, Vec<Fault>> {
    let mut walk = Walk::default();
    match form {
        Form::Text | Form::Command => {
            if form == Form::Command {
                walk.quotes = Some(Places::default());
            }
            walk.text(source);
            walk.piped();
        }
        Form::Condition | Form::Expression => {
            let bare = form == Form::Condition
                && !["{{", "{%", "{#"].iter().any(|mark| source.contains(mark));
            let inner = if bare { Some(source) } else { lone_expression(source) };
            match inner {
                Some(inner) => {
                    let offset = inner.as_ptr() as usize - source.as_ptr() as usize;
                    walk.expression(inner, offset);
                }
                None => walk.fault(0, "this must be one expression", Some("write \"{{ … }}\"")),
            }
        }
    }
    if walk.faults.is_empty() { Ok(walk.uses) } else { Err(walk.faults) }
}

#[derive(Default)]
struct Walk {
    uses: Vec<Use>,
    faults: Vec<Fault>,
    /// Names the template set itself, innermost last.
    own: Vec<String>,
    /// Added to offsets of a bare expression.
    base: usize,
    quotes: Option<Places>,
    /// Where each value of a command stands.
    holes: Vec<usize>,
}

impl Walk {
    fn fault(&mut self, offset: usize, message: &str, hint: Option<&str>) {
        let (message, hint) = (message.to_owned(), hint.map(str::to_owned));
        self.faults.push(Fault { offset, message, hint });
    }

    fn text(&mut self, source: &str) {
        if let Err((offset, message)) = check_depth(source, false) {
            return self.fault(offset, &message, Some(SIMPLER));
        }
        match parse(source, "", syntax().clone()) {
            Ok(statement) => self.statement(&statement),
            Err(error) => self.syntax_error(&error),
        }
    }

    fn expression(&mut self, source: &str, base: usize) {
        self.base = base;
        if let Err((offset, message)) = check_depth(source, true) {
            return self.fault(base + offset, &message, Some(SIMPLER));
        }
        match parse_expr(source) {
            Ok(expression) => self.visit(&expression),
            Err(error) => self.syntax_error(&error),
        }
    }

    fn syntax_error(&mut self, error: &minijinja::Error) {
        let offset = error.range().map_or(0, |range| range.start) + self.base;
        let hint = "a value is written `{{ name }}`; braces that are text, `{{ '{{' }}`";
        self.fault(offset, &format!("template: {}", message(error)), Some(hint));
    }

    fn at(&self, span: Span) -> usize {
        self.base + span.start_offset as usize
    }

    fn statements(&mut self, statements: &[Stmt<'_>]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    /// Runs `body` with names that are gone afterwards.
    fn scoped(&mut self, body: impl FnOnce(&mut Self)) {
        let depth = self.own.len();
        body(self);
        self.own.truncate(depth);
    }

    fn statement(&mut self, statement: &Stmt<'_>) {
        match statement {
            Stmt::Template(it) => self.statements(&it.children),
            Stmt::EmitExpr(it) => {
                self.visit(&it.expr);
                self.hole(&it.expr);
            }
            Stmt::EmitRaw(it) => {
                if let Some(quotes) = &mut self.quotes {
                    quotes.read(it.raw);
                }
            }
            Stmt::ForLoop(it) => {
                self.visit(&it.iter);
                self.scoped(|walk| {
                    walk.own.push("loop".into());
                    walk.declare(&it.target);
                    walk.visit_all(it.filter_expr.as_ref());
                    walk.statements(&it.body);
                });
                self.scoped(|walk| walk.statements(&it.else_body));
            }
            Stmt::IfCond(it) => {
                self.visit(&it.expr);
                self.statements(&it.true_body);
                self.statements(&it.false_body);
            }
            Stmt::WithBlock(it) => self.scoped(|walk| {
                for (target, value) in &it.assignments {
                    walk.visit(value);
                    walk.declare(target);
                }
                walk.statements(&it.body);
            }),
            Stmt::Set(it) => {
                self.visit(&it.expr);
                self.declare(&it.target);
            }
            Stmt::SetBlock(it) => {
                self.visit_all(it.filter.as_ref());
                self.scoped(|walk| walk.statements(&it.body));
                self.declare(&it.target);
            }
            Stmt::AutoEscape(it) => self.statements(&it.body),
            Stmt::FilterBlock(it) => {
                self.visit(&it.filter);
                self.scoped(|walk| walk.statements(&it.body));
            }
            Stmt::Do(it) => {
                self.visit(&it.call.expr);
                self.arguments(&it.call.args);
            }
        }
    }

    /// A value becomes a variable where the shell takes it for text.
    fn hole(&mut self, expr: &Expr<'_>) {
        let Some(places) = &mut self.quotes else { return };
        let found = places.here();
        let is_raw = matches!(expr, Expr::Filter(it) if it.name == "raw");
        if !is_raw {
            places.value();
            let at = self.at(expr.span());
            self.holes.push(at);
        }
        if let (Place::Refused(place), false) = (found, is_raw || matches!(expr, Expr::Const(_))) {
            self.faults.push(Fault {
                offset: self.at(expr.span()),
                message: format!("a value {place} is not safe"),
                hint: Some(if place == IN_SCRIPT {
                    "give it to the script as an argument: `sh -c 'echo \"$1\"' _ {{ … }}`"
                        .to_owned()
                } else {
                    "put it into a variable first, `x={{ … }}` on a line of its own, and use `$x`"
                        .to_owned()
                }),
            });
        }
    }

    /// What a value's command prints goes to a shell: told when the whole command is read.
    fn piped(&mut self) {
        let piped = self.quotes.take().map(Places::piped).unwrap_or_default();
        let hint = "give it to the script as an argument, `… | sh -s {{ … }}`, or write `| raw` \
                    where you know what it is";
        for at in piped {
            let message = "a value piped into a shell, which reads it as shell text, is not safe";
            self.fault(self.holes[at], message, Some(hint));
        }
    }

    fn declare(&mut self, target: &Expr<'_>) {
        if let Expr::Var(var) = target {
            self.own.push(var.id.to_owned());
        } else if let Expr::List(list) = target {
            list.items.iter().for_each(|item| self.declare(item));
        } else if let Expr::Tuple(tuple) = target {
            tuple.items.iter().for_each(|item| self.declare(item));
        } else {
            // `{% set ns.x = 1 %}` uses `ns`.
            self.visit(target);
        }
    }

    fn visit_all<'e, 's: 'e>(&mut self, expressions: impl IntoIterator<Item = &'e Expr<'s>>) {
        expressions.into_iter().for_each(|expression| self.visit(expression));
    }

    fn arguments(&mut self, arguments: &[CallArg<'_>]) {
        for argument in arguments {
            match argument {
                CallArg::Pos(expr)
                | CallArg::Kwarg(_, expr)
                | CallArg::PosSplat(expr)
                | CallArg::KwargSplat(expr) => self.visit(expr),
            }
        }
    }

    fn visit(&mut self, expr: &Expr<'_>) {
        match expr {
            Expr::Var(_) | Expr::GetAttr(_) | Expr::GetItem(_) => self.chain(expr),
            Expr::Const(_) => {}
            Expr::Slice(it) => {
                self.visit(&it.expr);
                self.visit_all([&it.start, &it.stop, &it.step].into_iter().flatten());
            }
            Expr::UnaryOp(it) => self.visit(&it.expr),
            Expr::BinOp(it) => self.visit_all([&it.left, &it.right]),
            Expr::Compare(it) => {
                self.visit(&it.expr);
                self.visit_all(it.ops.iter().map(|op| &op.expr));
            }
            Expr::IfExpr(it) => {
                self.visit_all([&it.test_expr, &it.true_expr]);
                self.visit_all(it.false_expr.as_ref());
            }
            Expr::Filter(it) => {
                self.named("filter", it.name, &FILTERS, expr.span());
                self.visit_all(it.expr.as_ref());
                self.arguments(&it.args);
            }
            Expr::Test(it) => {
                self.named("test", it.name, &TESTS, expr.span());
                self.visit(&it.expr);
                self.arguments(&it.args);
            }
            Expr::Call(it) => {
                if let Expr::Var(var) = &it.expr
                    && !self.own.iter().any(|own| own == var.id)
                {
                    self.named("function", var.id, &FUNCTIONS, it.expr.span());
                } else {
                    self.visit(&it.expr);
                }
                self.arguments(&it.args);
            }
            Expr::List(it) => self.visit_all(&it.items),
            Expr::Tuple(it) => self.visit_all(&it.items),
            Expr::Map(it) => {
                self.visit_all(&it.keys);
                self.visit_all(&it.values);
            }
        }
    }

    fn named(&mut self, kind: &str, name: &str, known: &[&str], span: Span) {
        if !known.contains(&name) {
            let near = crate::nearest::nearest(name, known.iter().copied());
            self.faults.push(Fault {
                offset: self.at(span),
                message: format!("there is no {kind} `{name}`"),
                hint: Some(match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("there are: {}", known.join(", ")),
                }),
            });
        }
    }

    /// `a.b['c'][d]`, from the outside in.
    fn chain(&mut self, expr: &Expr<'_>) {
        let mut path = Vec::new();
        let mut inner = expr;
        loop {
            if let Expr::GetAttr(it) = inner {
                let end = self.base + it.span().end_offset as usize;
                let offset = end.saturating_sub(it.name.len());
                path.push(Part::Known { name: it.name.to_owned(), offset });
                inner = &it.expr;
            } else if let Expr::GetItem(it) = inner {
                let offset = self.at(it.subscript_expr.span());
                let constant = it.subscript_expr.as_const();
                path.push(match constant.as_ref().and_then(|value| value.as_str()) {
                    Some(name) => Part::Known { name: name.to_owned(), offset },
                    None => Part::Computed,
                });
                self.visit(&it.subscript_expr);
                inner = &it.expr;
            } else {
                break;
            }
        }
        let Expr::Var(var) = inner else { return self.visit(inner) };
        if !self.own.iter().any(|own| own == var.id) {
            path.reverse();
            let offset = self.at(var.span());
            self.uses.push(Use { name: var.id.to_owned(), path, offset });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(source: &str, form: Form) -> Vec<String> {
        let show = |it: Use| {
            let part = |part: &Part| match part {
                Part::Known { name, offset } => format!(".{name}@{offset}"),
                Part::Computed => "[?]".into(),
            };
            format!("{}@{}{}", it.name, it.offset, it.path.iter().map(part).collect::<String>())
        };
        find(source, form).unwrap().into_iter().map(show).collect()
    }

    fn faults(source: &str, form: Form) -> Vec<String> {
        let faults = find(source, form).unwrap_err();
        faults.into_iter().map(|it| format!("{}: {}", it.offset, it.message)).collect()
    }

    #[test]
    fn names_are_found_with_their_paths_and_places() {
        assert_eq!(uses("a {{ steps.x.result }}", Form::Text), ["steps@5.x@11.result@13"]);
        assert_eq!(uses("{{ steps['a-b'].stdout }}", Form::Text), ["steps@3.a-b@9.stdout@16"]);
        assert_eq!(uses("{{ steps[who].stdout }}", Form::Text), ["who@9", "steps@3[?].stdout@14"]);
        assert_eq!(uses("{{ read_json(inputs.p).a }}", Form::Text), ["inputs@13.p@20"]);
        assert_eq!(uses("a.b == 1 and not c", Form::Condition), ["a@0.b@2", "c@17"]);
        assert_eq!(uses(" {{ a.b }}", Form::Condition), ["a@4.b@6"]);
    }

    #[test]
    fn names_a_template_sets_itself_are_its_own() {
        let source = "{% for a, b in inputs.l %}{{ a }}{{ b }}{{ loop.index }}{% endfor %}{{ a }}";
        assert_eq!(uses(source, Form::Text), ["inputs@15.l@22", "a@71"]);
        assert_eq!(uses("{% set x = y %}{{ x }}", Form::Text), ["y@11"]);
        assert_eq!(
            uses("{% with x = y %}{{ x }}{% endwith %}{{ x }}", Form::Text),
            ["y@12", "x@39"]
        );
    }

    #[test]
    fn faults_have_places() {
        assert_eq!(faults("ab {{ x | lowr }}", Form::Text), ["10: there is no filter `lowr`"]);
        assert_eq!(faults("{{ x is defind }}", Form::Text), ["8: there is no test `defind`"]);
        assert_eq!(
            faults("{{ red_json('a') }}", Form::Text),
            ["3: there is no function `red_json`"]
        );
        assert_eq!(faults("{{ a }} {{ b }}", Form::Expression), ["0: this must be one expression"]);
        assert_eq!(faults("x", Form::Expression), ["0: this must be one expression"]);
        assert!(faults("line\n{{ x ", Form::Text)[0].contains("template: "));
    }

    #[test]
    fn a_hole_is_a_fault_where_a_shell_would_read_it_as_more_than_text() {
        assert!(find("echo {{ x }} 'a' \"b\" {{ y }}", Form::Command).is_ok());
        for source in ["echo \"{{ x }}\"", "echo '{{ x }}'", "cat <<E\n{{ x }}\nE\n"] {
            assert!(find(source, Form::Command).is_ok(), "{source}");
        }
        for source in ["echo $(({{ x }}))", "echo \\{{ x }}", "echo ${{ x }}", "`{{ x }}`"] {
            assert!(faults(source, Form::Command)[0].contains("not safe"), "{source}");
        }
        assert!(find("echo \"{{ x | raw }}\"", Form::Command).is_ok());
        assert!(find("echo \"{{ x }}\"", Form::Text).is_ok());
    }
}
