//! The subcommands of git that only look, and the options with which they stay that way. An option that is not here asks.

use super::arg::Arg;

/// One subcommand.
pub(super) struct Look {
    pub verb: &'static str,
    /// Groups of options it knows, each separated by blanks.
    options: &'static [&'static str],
    shape: Shape,
}

/// What its operands may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Any,
    /// None, unless an option makes it a list.
    ListOnly,
    /// The first must be one of these words; without any it must be allowed by `bare`.
    Verb {
        words: &'static [&'static str],
        bare: bool,
    },
    /// At least one.
    Some,
    /// `config --get NAME` of harmless names.
    Config,
}

/// How an option is known.
pub(super) enum Known {
    No,
    Alone,
    /// Its value is the next word.
    WithValue,
}

/// Options that shape a diff. `name=` takes an attached value, `name:` the next word or an attached value.
const DIFF: &str = "-p -u --patch -s --no-patch -U: --unified= --raw --minimal --patience --histogram --diff-algorithm= \
    --anchored= --stat --stat= --numstat --shortstat --dirstat --dirstat= --summary --compact-summary \
    --patch-with-stat --patch-with-raw -z --name-only --name-status --color --color= --no-color --color-moved \
    --color-moved= --word-diff --word-diff= --word-diff-regex= --color-words --no-renames --rename-empty --check \
    --full-index --binary --abbrev --abbrev= -M --find-renames --find-renames= -C --find-copies \
    --find-copies-harder -D -B --break-rewrites -l: --diff-filter= -S: -G: --pickaxe-all --pickaxe-regex -R \
    --relative --no-relative -a --text -b -w --ignore-space-change --ignore-all-space --ignore-space-at-eol \
    --ignore-blank-lines --ignore-cr-at-eol -I: --ignore-matching-lines= --inter-hunk-context= -W \
    --function-context --exit-code --quiet --no-ext-diff --no-textconv --ignore-submodules --ignore-submodules= \
    --submodule --submodule= --src-prefix= --dst-prefix= --no-prefix --line-prefix= -t -r -c --cc -m \
    --combined-all-paths --find-object= --skip-to= --rotate-to= --no-indent-heuristic --indent-heuristic";

/// Options that choose and show commits.
const LOG: &str = "-n: --max-count= --max-count: --skip= --since= --since: --after= --after: --until= --until: --before= \
    --before: --author= --author: --committer= --grep= --grep: --all-match --invert-grep -i --regexp-ignore-case \
    -E --extended-regexp -F --fixed-strings -P --perl-regexp --basic-regexp --merges --no-merges --min-parents= \
    --max-parents= --first-parent --all --branches --branches= --tags --tags= --remotes --remotes= --glob= \
    --exclude= --reflog --cherry --cherry-pick --cherry-mark --left-only --right-only --left-right --no-walk \
    --boundary --simplify-by-decoration --full-history --dense --sparse --simplify-merges --ancestry-path \
    --date-order --author-date-order --topo-order --reverse --parents --children --graph --no-graph --oneline \
    --pretty --pretty= --format= --abbrev-commit --no-abbrev-commit --encoding= --notes --no-notes --date= \
    --relative-date --decorate --decorate= --no-decorate --decorate-refs= --source --use-mailmap --no-mailmap \
    --full-diff --log-size -L: --follow -g --walk-reflogs --no-show-signature --clear-decorations --expand-tabs \
    --no-expand-tabs --merge --show-pulls --remerge-diff --diff-merges= --no-diff-merges --in-commit-order";

const fn look(verb: &'static str, options: &'static [&'static str]) -> Look {
    Look {
        verb,
        options,
        shape: Shape::Any,
    }
}

const fn shaped(verb: &'static str, options: &'static [&'static str], shape: Shape) -> Look {
    Look { verb, options, shape }
}

pub(super) const LOOKS: &[Look] = &[
    look(
        "status",
        &[
            "-s --short -b --branch --show-stash --porcelain --porcelain= --long -v --verbose -u -uno -uall \
            -unormal --untracked-files --untracked-files= --ignored --ignored= --ignore-submodules \
            --ignore-submodules= -z --column --column= --no-column --ahead-behind --no-ahead-behind --renames \
            --no-renames",
        ],
    ),
    look(
        "diff",
        &[
            DIFF,
            "--cached --staged --merge-base -0 -1 -2 -3 --base --ours --theirs",
        ],
    ),
    look("log", &[LOG, DIFF]),
    look("show", &[LOG, DIFF]),
    look("whatchanged", &[LOG, DIFF]),
    look("reflog", &[LOG, DIFF]),
    look(
        "range-diff",
        &[DIFF, "--creation-factor= --no-dual-color --left-only --right-only"],
    ),
    look(
        "diff-tree",
        &[
            DIFF,
            "--no-commit-id --root --always --stdin --pretty --pretty= --format= -v",
        ],
    ),
    look(
        "blame",
        &[
            "-L: -l -t -s -e --show-email -f --show-name -n --show-number -w -M -C -p --porcelain \
            --line-porcelain --incremental --date= --since= --abbrev= -c --root --score-debug --show-stats \
            --color-lines --color-by-age --first-parent --reverse -b",
        ],
    ),
    shaped(
        "shortlog",
        &[LOG, "-s --summary -e --email -n --numbered -c --group= -sn -sne -ns"],
        Shape::Some,
    ),
    look(
        "describe",
        &[
            "--tags --all --always --long --contains --abbrev= --abbrev --dirty --dirty= --broken --candidates= \
            --exact-match --match= --match: --exclude= --exclude: --first-parent --debug",
        ],
    ),
    look(
        "rev-parse",
        &[
            "--short --short= --abbrev-ref --abbrev-ref= --verify -q --quiet --show-toplevel --show-prefix \
            --show-cdup --git-dir --absolute-git-dir --git-common-dir --is-inside-work-tree --is-inside-git-dir \
            --is-bare-repository --is-shallow-repository --symbolic --symbolic-full-name --all --branches --tags \
            --remotes --sq --not --revs-only --no-revs --flags --no-flags --default: \
            --show-superproject-working-tree --local-env-vars --show-object-format --show-ref-format \
            --path-format= --git-path:",
        ],
    ),
    look(
        "rev-list",
        &[
            LOG,
            "--count --objects --objects-edge --disk-usage --timestamp --header --quiet --no-commit-header \
            --abbrev= --abbrev",
        ],
    ),
    look(
        "ls-files",
        &[
            "-c --cached -d --deleted -m --modified -o --others -i --ignored -s --stage -u --unmerged -k --killed \
            -z -x: --exclude= --exclude-standard --error-unmatch --full-name --directory --no-empty-directory -t \
            -v -f --abbrev --abbrev= --eol --recurse-submodules --deduplicate --format= --sparse --debug",
        ],
    ),
    look(
        "ls-tree",
        &[
            "-r -t -d -l --long -z --name-only --name-status --object-only --full-name --full-tree --abbrev \
            --abbrev= --format=",
        ],
    ),
    look(
        "cat-file",
        &["-p -t -s -e --batch-check --batch --batch-all-objects --unordered --buffer --allow-unknown-type"],
    ),
    look(
        "merge-base",
        &["-a --all --octopus --independent --is-ancestor --fork-point"],
    ),
    look(
        "name-rev",
        &["--tags --refs= --exclude= --all --name-only --no-undefined --always"],
    ),
    look(
        "for-each-ref",
        &[
            "--count= --sort= --format= --points-at= --points-at: --merged --merged= --no-merged --contains \
            --contains= --no-contains --ignore-case --omit-empty --exclude= --include-root-refs --color --color=",
        ],
    ),
    look(
        "check-ignore",
        &["-v --verbose -n --non-matching -q --quiet --no-index -z --stdin"],
    ),
    look("check-attr", &["-a --all --cached -z --stdin"]),
    look(
        "grep",
        &[
            "-a -i --ignore-case -w --word-regexp -v --invert-match -h -H --full-name -E --extended-regexp -G -P \
            --perl-regexp -F --fixed-strings -n --line-number --column -l --files-with-matches --name-only -L \
            --files-without-match -z --null -o --only-matching -c --count --color --color= --no-color --break \
            --heading -p --show-function -A: -B: -C: --after-context= --before-context= --context= -W \
            --function-context -e: --and --or --not ( ) --all-match -q --quiet --cached --untracked \
            --exclude-standard --no-exclude-standard -I --max-depth= --max-depth: -r --recursive --no-recursive \
            --threads= -m: --max-count= -ni -in -nE -nw -il -rn -nF",
        ],
    ),
    look(
        "show-ref",
        &[
            "--head --heads --branches --tags -d --dereference -s --hash --hash= --verify --abbrev --abbrev= -q \
            --quiet --exists",
        ],
    ),
    look("count-objects", &["-v --verbose -H --human-readable"]),
    look("cherry", &["-v --abbrev --abbrev="]),
    shaped(
        "branch",
        &[
            "-a --all -r --remotes -v -vv --verbose --list -l --show-current --contains --contains= --no-contains \
            --merged --merged= --no-merged --format= --sort= --points-at --points-at= --color --color= \
            --no-color --column --no-column -i --ignore-case --abbrev= --no-abbrev -av -avv -va -rv -vva -q",
        ],
        Shape::ListOnly,
    ),
    shaped(
        "tag",
        &[
            "-l --list -n --contains --contains= --no-contains --points-at --points-at= --merged --no-merged \
            --sort= --format= -i --ignore-case --column --no-column --color --color=",
        ],
        Shape::ListOnly,
    ),
    shaped(
        "stash",
        &[
            DIFF,
            "--oneline --format= --pretty= -n: --date= --include-untracked --only-untracked",
        ],
        Shape::Verb {
            words: &["list", "show"],
            bare: false,
        },
    ),
    shaped(
        "remote",
        &["-v --verbose --all --push"],
        Shape::Verb {
            words: &["get-url"],
            bare: true,
        },
    ),
    shaped(
        "worktree",
        &["--porcelain -z -v --verbose"],
        Shape::Verb {
            words: &["list"],
            bare: false,
        },
    ),
    shaped(
        "notes",
        &["--ref="],
        Shape::Verb {
            words: &["list", "show"],
            bare: true,
        },
    ),
    shaped(
        "config",
        &[
            "--get --get-all --local --global --system --worktree --type= --bool --int --bool-or-int \
            --show-origin --show-scope -z --null --default=",
        ],
        Shape::Config,
    ),
    look("version", &["--build-options"]),
];

/// Letters in clusters such as `-sb` or `-sne`, where each is an option of its own.
const CLUSTERED: &[&str] = &[
    "status",
    "log",
    "show",
    "diff",
    "ls-files",
    "ls-tree",
    "grep",
    "shortlog",
    "branch",
    "blame",
    "count-objects",
];

impl Look {
    pub(super) fn option(&self, text: &str) -> Known {
        let listed = |wanted: &str| {
            self.options
                .iter()
                .any(|group| group.split(' ').any(|known| known == wanted))
        };
        if listed(text) {
            return Known::Alone;
        }
        if listed(&format!("{text}:")) {
            return Known::WithValue;
        }
        if let Some((name, _)) = text.split_once('=').filter(|_| text.starts_with("--")) {
            let known = listed(&format!("{name}=")) || listed(&format!("{name}:"));
            return if known { Known::Alone } else { Known::No };
        }
        if text.starts_with("--") {
            return Known::No;
        }
        self.letters(text.strip_prefix('-').unwrap_or_default())
    }

    fn letters(&self, cluster: &str) -> Known {
        let listed = |wanted: &str| {
            self.options
                .iter()
                .any(|group| group.split(' ').any(|known| known == wanted))
        };
        let number = !cluster.is_empty() && cluster.chars().all(|c| c.is_ascii_digit());
        if number {
            return if matches!(
                self.verb,
                "log" | "show" | "whatchanged" | "reflog" | "rev-list" | "stash" | "grep" | "diff" | "shortlog"
            ) {
                Known::Alone
            } else {
                Known::No
            };
        }
        let Some(first) = cluster.chars().next() else {
            return Known::No;
        };
        let rest = cluster.get(first.len_utf8()..).unwrap_or_default();
        // `-n5`, `-U3`, `-Sfoo`, `-M90%`: a value that is attached.
        if listed(&format!("-{first}:")) && !rest.is_empty() {
            return Known::Alone;
        }
        if matches!(first, 'M' | 'C' | 'B')
            && listed(&format!("-{first}"))
            && rest.chars().all(|c| c.is_ascii_digit() || matches!(c, '%' | '/'))
        {
            return Known::Alone;
        }
        if first == 'n' && self.verb == "tag" && rest.chars().all(|c| c.is_ascii_digit()) {
            return Known::Alone;
        }
        let clustered = CLUSTERED.contains(&self.verb) && cluster.chars().all(|letter| listed(&format!("-{letter}")));
        if clustered { Known::Alone } else { Known::No }
    }

    /// Why the operands are not those of a look.
    pub(super) fn shape_concern(&self, call: &[Arg], operands: &[&Arg], options: &[&str]) -> Option<String> {
        let fits = match self.shape {
            Shape::Any => {
                self.verb != "reflog"
                    || operands
                        .first()
                        .is_none_or(|first| first.text == "show" || !REFLOG_VERBS.contains(&first.text.as_str()))
            }
            Shape::Some => {
                !operands.is_empty() || options.iter().any(|option| matches!(*option, "--all" | "--branches"))
            }
            Shape::ListOnly => {
                operands.is_empty()
                    || options
                        .iter()
                        .any(|option| LISTING.iter().any(|listing| option.starts_with(listing)))
            }
            // Options before the verb belong to another one: `git stash -m list` makes a stash.
            Shape::Verb { words, bare } => operands.first().map_or(bare, |first| {
                words.contains(&first.text.as_str()) && call.get(1).is_some_and(|second| second.text == first.text)
            }),
            Shape::Config => {
                // A name alone is read, as with `--get`.
                matches!(operands, [name] if is_harmless_key(&name.text))
            }
        };
        (!fits).then(|| {
            format!(
                "This form of `git {}` can change the repository or show secrets.",
                self.verb
            )
        })
    }
}

const REFLOG_VERBS: &[&str] = &["expire", "delete", "drop", "exists", "write", "list"];

/// Options that make `branch` and `tag` list, so that a word is a pattern or a commit and no new name.
const LISTING: &[&str] = &[
    "-l",
    "--list",
    "--contains",
    "--no-contains",
    "--merged",
    "--no-merged",
    "--points-at",
    "-a",
    "-r",
    "--all",
    "--remotes",
];

/// Keys whose values hold no secret.
fn is_harmless_key(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    if key.starts_with("remote.") && key.ends_with(".url") {
        return true;
    }
    [
        "user.", "core.", "branch.", "init.", "pull.", "push.", "color.", "merge.", "diff.",
    ]
    .iter()
    .any(|section| key.starts_with(section))
}
