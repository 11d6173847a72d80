//! The table behind the built-in list: commands, their harmless options, what their operands are.
//!
//! Options not in a row ask. `dangers` are options a row leaves out on purpose: they keep an abbreviation from being
//! taken for a harmless option, and a file name from being taken for an operand when it could be one of them.

use super::readonly_row::Operands::{
    Awk, Data, Files, Format, Jq, None as Nothing, OneFile, Pattern, Sed, Sleep, Words,
};
use super::readonly_row::{Command, mildly, reads, row, sandboxed, without};

/// The commands of the built-in list.
pub(super) const COMMANDS: &[Command] = &[
    row("pwd", Nothing, "LP", "", "logical physical"),
    row("true false :", Words, "", "", ""),
    row("exit break continue", Data, "", "", ""),
    row("echo", Words, "", "", ""),
    row("printf", Words, "", "", ""),
    row("seq", Data, "w", "fs", "format= separator= equal-width"),
    row("sleep", Sleep, "", "", ""),
    row("basename", Data, "az", "s", "multiple suffix= zero"),
    row("dirname", Data, "z", "", "zero"),
    row(
        "whoami nproc tty arch",
        Nothing,
        "s",
        "",
        "all ignore= silent quiet version",
    ),
    row("id", Data, "Ggnruz", "", "groups group name real user zero"),
    row("groups", Data, "", "", ""),
    row(
        "uname",
        Nothing,
        "asnrvmpio",
        "",
        "all kernel-name nodename kernel-release kernel-version machine processor hardware-platform \
            operating-system",
    ),
    row(
        "hostname",
        Nothing,
        "fsidIA",
        "",
        "fqdn long short ip-address all-ip-addresses domain",
    ),
    row("uptime", Nothing, "ps", "", "pretty since"),
    row(
        "free",
        Nothing,
        "bkmghtlwv",
        "",
        "bytes kilo mega giga human total lohi wide si",
    ),
    row("lscpu", Nothing, "abceJpxy", "", "all extended? parse? json"),
    row("getconf", Data, "a", "", ""),
    row("locale", Data, "akmc", "", "all-locales category-name keyword-name"),
    row("which", Data, "a", "", "all"),
    row("type", Data, "atpP", "", ""),
    row(
        "pgrep",
        Data,
        "lafinoxcvwL",
        "uUgGPtsd",
        "list-name list-full full ignore-case newest oldest exact count inverse parent= euid= uid=",
    ),
    row("pidof", Data, "s", "", ""),
    row(
        "date",
        Format,
        "uR",
        "dI",
        "utc universal rfc-email rfc-3339= iso-8601? date= debug",
    ),
    row("cal", Data, "13jmsywnY", "", ""),
    row(
        "factor numfmt",
        Data,
        "h",
        "dz",
        "from= to= suffix= padding= round= grouping header? field= delimiter= format= invalid=",
    ),
    row(
        "cat",
        Files,
        "AbeEnstTuv",
        "",
        "show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting",
    ),
    row(
        "head",
        Files,
        "qvz0123456789",
        "cn",
        "bytes= lines= quiet silent verbose zero-terminated",
    ),
    mildly(
        row(
            "tail",
            Files,
            "qvz0123456789",
            "cns",
            "bytes= lines= quiet silent verbose zero-terminated",
        ),
        "f F follow retry pid",
    ),
    row(
        "nl",
        Files,
        "p",
        "bdfhilnsvw",
        "body-numbering= line-increment= number-format= number-separator= starting-line-number= number-width= \
            section-delimiter=",
    ),
    row("tac", Files, "br", "s", "before regex separator="),
    mildly(
        row(
            "wc",
            Files,
            "cmlLw",
            "",
            "bytes chars lines max-line-length words total=",
        ),
        "files0-from",
    ),
    row(
        "cut",
        Files,
        "nsz",
        "bcdf",
        "bytes= characters= delimiter= fields= complement only-delimited output-delimiter= zero-terminated",
    ),
    row(
        "tr",
        Data,
        "cCdst",
        "",
        "complement delete squeeze-repeats truncate-set1",
    ),
    row("paste", Files, "sz", "d", "serial delimiters= zero-terminated"),
    row(
        "comm",
        Files,
        "123z",
        "",
        "check-order nocheck-order output-delimiter= total zero-terminated",
    ),
    row(
        "join",
        Files,
        "iz",
        "12aejotv",
        "ignore-case check-order nocheck-order header zero-terminated",
    ),
    row("fold", Files, "bs", "w", "bytes spaces width="),
    row(
        "fmt",
        Files,
        "cstu",
        "wpg",
        "crown-margin split-only tagged-paragraph uniform-spacing width= prefix= goal=",
    ),
    row("expand unexpand", Files, "ia", "t", "initial tabs= all first-only"),
    row("rev", Files, "0", "", "zero"),
    row(
        "od",
        Files,
        "abcdfiloxsv",
        "AjNStw",
        "address-radix= skip-bytes= read-bytes= strings? format= output-duplicates width? endian= traditional",
    ),
    row(
        "hexdump hd",
        Files,
        "bcCdoxv",
        "ens",
        "canonical one-byte-octal one-byte-char two-bytes-decimal length= skip= no-squeezing",
    ),
    row(
        "strings",
        Files,
        "af",
        "nteT",
        "all bytes= radix= encoding= print-file-name",
    ),
    row("base64 base32", Files, "diD", "w", "decode ignore-garbage wrap="),
    row(
        "cksum sum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum shasum",
        Files,
        "bctwzrs",
        "al",
        "binary check tag text zero ignore-missing quiet status strict warn algorithm= length= untagged raw \
            base64",
    ),
    row(
        "cmp",
        Files,
        "bls",
        "in",
        "print-bytes ignore-initial= verbose bytes= silent quiet",
    ),
    row(
        "column",
        Files,
        "tenxJ",
        "cNosRHWTd",
        "table separator= output-separator= columns= output-width= fillrows json table-columns= table-right= \
            table-noheadings",
    ),
    row(
        "stat",
        Files,
        "Lft",
        "c",
        "dereference file-system format= printf= terse",
    ),
    row(
        "ls dir vdir",
        Files,
        "aAbBcCdfFghHiklmnNopqQrRsStuUvxXZ1",
        "IwT",
        "all almost-all author escape block-size= ignore-backups color? directory dired classify? file-type \
            format= full-time group-directories-first no-group human-readable si hide= hyperlink? \
            indicator-style= inode ignore= kibibytes numeric-uid-gid literal hide-control-chars \
            show-control-chars quote-name quoting-style= reverse recursive size sort= time= time-style= tabsize= \
            width= context zero dereference-command-line",
    ),
    reads(
        mildly(
            row(
                "du",
                Files,
                "0abcDhHklmPsSx",
                "Bdt",
                "null all apparent-size block-size= bytes total dereference-args max-depth= human-readable inodes \
            count-links no-dereference separate-dirs si summarize threshold= time? time-style= exclude-from< \
            exclude= one-file-system",
            ),
            "files0-from L dereference",
        ),
        "X",
    ),
    row(
        "df",
        Files,
        "ahHiklPTv",
        "Btx",
        "all block-size= human-readable si inodes local no-sync output? portability sync total type= \
            print-type exclude-type=",
    ),
    row(
        "readlink realpath",
        Files,
        "femnqsvzLPE",
        "",
        "canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent verbose zero logical \
            physical relative-to< relative-base< strip no-symlinks",
    ),
    without(
        row(
            "sort",
            Files,
            "bcCdfghiMmnRrsuVz",
            "kSt",
            "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting \
            month-sort human-numeric-sort numeric-sort random-sort reverse sort= version-sort batch-size= check? \
            debug key= merge stable buffer-size= field-separator= parallel= unique zero-terminated",
        ),
        "o T output compress-program temporary-directory files0-from random-source",
    ),
    row(
        "uniq",
        OneFile,
        "cdDiuz",
        "fsw",
        "count repeated all-repeated? skip-fields= group? ignore-case skip-chars= unique zero-terminated \
            check-chars=",
    ),
    without(row("xxd", OneFile, "abCdeEipuv", "cglnosR", ""), "r revert"),
    without(
        reads(
            row(
                "diff",
                Files,
                "abBdeEinNpqrsTtwyZ0123456789",
                "cCUuIFWxS",
                "normal brief report-identical-files context? unified? ed rcs side-by-side width= left-column \
            suppress-common-lines show-c-function show-function-line= label= expand-tabs initial-tab tabsize= \
            suppress-blank-empty recursive no-dereference new-file unidirectional-new-file ignore-file-name-case \
            exclude= exclude-from< starting-file= ignore-case ignore-tab-expansion ignore-trailing-space \
            ignore-space-change ignore-all-space ignore-blank-lines ignore-matching-lines= text \
            strip-trailing-cr minimal speed-large-files color? from-file< to-file<",
            ),
            "X",
        ),
        "l paginate D ifdef",
    ),
    sandboxed(without(
        row(
            "file",
            Files,
            "bchiklLNnpPrsv0",
            "eF",
            "brief mime mime-type mime-encoding no-dereference extension keep-going raw print0 separator= \
            exclude= no-pad",
        ),
        "C compile m magic-file z Z f files-from uncompress S",
    )),
    without(
        row(
            "tree",
            Files,
            "adfhipsugDFrtcvnACSqNJXQxU",
            "LPIT",
            "dirsfirst filesfirst noreport charset= filelimit= timefmt= prune gitignore inodes device si du sort= \
            matchdirs ignore-case metafirst version help",
        ),
        "o R output l",
    ),
    mildly(
        reads(
            row(
                "grep egrep fgrep",
                Pattern,
                "abcEFGhHiIlLnoPqrsTUvVwxyzZ0123456789",
                "ABCdDm",
                "extended-regexp fixed-strings basic-regexp perl-regexp ignore-case no-ignore-case word-regexp \
            line-regexp null-data no-messages invert-match version max-count= byte-offset line-number \
            line-buffered with-filename no-filename label= only-matching quiet silent binary-files= text \
            directories= devices= recursive include= exclude= exclude-from< exclude-dir= files-without-match \
            files-with-matches count initial-tab null before-context= after-context= context= color? colour? \
            binary regexp: file<:",
            ),
            "f",
        ),
        "R dereference-recursive",
    ),
    sandboxed(without(
        reads(
            row(
                "rg",
                Pattern,
                "abcFhHiIlnNopPqsSUuvVwx0.",
                "ABCdEgjmMrtT",
                "after-context= before-context= context= case-sensitive ignore-case smart-case color= colors= column \
            count count-matches crlf debug dfa-size-limit= encoding= engine= files files-with-matches \
            files-without-match fixed-strings glob= iglob= glob-case-insensitive heading no-heading hidden \
            no-config no-ignore no-ignore-vcs no-ignore-parent no-ignore-global no-ignore-dot include-zero \
            invert-match json line-buffered line-number no-line-number line-regexp max-columns= \
            max-columns-preview max-count= max-depth= maxdepth= max-filesize= multiline multiline-dotall \
            no-filename with-filename no-messages null null-data one-file-system only-matching passthru \
            path-separator= pcre2 pretty quiet regex-size-limit= replace= sort= sortr= stats text threads= trim \
            type= type-not= type-list unicode no-unicode unrestricted vimgrep word-regexp regexp: file<: version \
            binary context-separator= stop-on-nonmatch",
            ),
            "f",
        ),
        "z L pre pre-glob hostname-bin search-zip follow ignore-file hyperlink-format generate",
    )),
    sandboxed(without(
        row(
            "fd fdfind",
            Pattern,
            "HIusigFap0q1V",
            "deEtScjo",
            "hidden no-ignore no-ignore-vcs unrestricted case-sensitive ignore-case glob regex fixed-strings \
            absolute-path full-path max-depth= min-depth= exact-depth= exclude= prune type= extension= size= \
            changed-within= changed-before= owner= color= threads= max-results= strip-cwd-prefix one-file-system \
            print0 quiet show-errors and=",
        ),
        "x X L C l exec exec-batch follow search-path base-directory list-details ignore-file gen-completions",
    )),
    without(
        row(
            "sed",
            Sed,
            "nErsuz",
            "l",
            "quiet silent regexp-extended separate unbuffered null-data posix debug line-length= expression: \
            sandbox",
        ),
        "i f in-place file w follow-symlinks",
    ),
    sandboxed(without(
        row(
            "awk gawk mawk",
            Awk,
            "",
            "Fv",
            "field-separator= assign= posix traditional sandbox re-interval",
        ),
        "f i l E file include load exec o output d p profile dump-variables pretty-print D debug",
    )),
    without(
        row(
            "jq",
            Jq,
            "cCMSsRrejna",
            "",
            "compact-output null-input exit-status slurp raw-input raw-output raw-output0 join-output \
            ascii-output color-output monochrome-output tab indent= sort-keys stream seq unbuffered version",
        ),
        "f L from-file slurpfile rawfile args jsonargs arg argjson",
    ),
];
