//! Tests are read and shown, strange files are refused, reports read as those of litmus7.

use proptest::prelude::*;

use super::*;

const SB: &str = include_str!("../../../litmus/SB.litmus");

fn register() -> impl Strategy<Value = Register> {
    // Thread by thread one name of each register: here the lower halves everywhere.
    prop::sample::select(vec!["EAX", "EBX", "ECX", "ESI", "R8D", "R15D"])
        .prop_map(|name| Register::named(name).unwrap())
}

fn source() -> impl Strategy<Value = Source> {
    prop_oneof![
        any::<i32>().prop_map(Source::Immediate),
        register().prop_map(Source::Register),
    ]
}

fn instruction(locations: usize) -> impl Strategy<Value = Instruction> {
    prop_oneof![
        (register(), 0..locations).prop_map(|(to, from)| Instruction::Load { to, from }),
        (0..locations, source()).prop_map(|(to, value)| Instruction::Store { to, value }),
        (register(), source()).prop_map(|(to, value)| Instruction::Move { to, value }),
        Just(Instruction::Fence),
    ]
}

fn observable(threads: usize, locations: usize) -> impl Strategy<Value = Observable> {
    prop_oneof![
        (0..threads, register())
            .prop_map(|(thread, register)| Observable::Register(thread, register)),
        (0..locations).prop_map(Observable::Location),
    ]
}

fn proposition(threads: usize, locations: usize) -> impl Strategy<Value = Proposition> {
    let atom = (observable(threads, locations), any::<i32>());
    let leaf = prop_oneof![
        8 => atom.prop_map(|(what, value)| Proposition::Is(what, value)),
        1 => Just(Proposition::all([])),
        1 => Just(Proposition::any([])),
    ];
    leaf.prop_recursive(5, 24, 4, |inner| {
        prop_oneof![
            inner
                .clone()
                .prop_map(|part| Proposition::Not(Box::new(part))),
            prop::collection::vec(inner.clone(), 2..4).prop_map(Proposition::all),
            prop::collection::vec(inner.clone(), 2..4).prop_map(Proposition::any),
            (inner.clone(), inner).prop_map(|(reason, result)| {
                Proposition::Implies(Box::new(reason), Box::new(result))
            }),
        ]
    })
}

fn quantifier() -> impl Strategy<Value = Quantifier> {
    prop::sample::select(vec![
        Quantifier::Exists,
        Quantifier::NotExists,
        Quantifier::Forall,
    ])
}

/// Any test of the subset; the names of its locations differ by their first letters.
fn any_test() -> impl Strategy<Value = Test> {
    (1usize..5, 1usize..4).prop_flat_map(|(threads, locations)| {
        let initial = prop::collection::btree_map(register(), 1..9i32, 0..3);
        (
            "[A-Za-z0-9][A-Za-z0-9+_./:-]{0,12}",
            prop::option::of("[ -!#-~]{0,30}"),
            prop::collection::vec(("[A-Z][a-z]{1,6}", "[!-~]{1,9}( [!-~]{1,9})?"), 0..3),
            prop::collection::vec(("[a-z_][a-z0-9_]{0,4}", any::<i32>()), locations),
            prop::collection::vec(initial, threads),
            prop::collection::vec(prop::collection::vec(instruction(locations), 0..5), threads),
            prop::collection::vec(observable(threads, locations), 0..3),
            (quantifier(), proposition(threads, locations)),
        )
            .prop_map(
                |(name, doc, info, locations, registers, threads, shown, condition)| {
                    let name_of = |(number, (name, value))| (format!("v{number}{name}"), value);
                    let mut distinct = Vec::new();
                    for what in shown {
                        if !distinct.contains(&what) {
                            distinct.push(what);
                        }
                    }
                    Test {
                        name,
                        doc,
                        info,
                        locations: locations.into_iter().enumerate().map(name_of).collect(),
                        registers: registers
                            .into_iter()
                            .map(|r| r.into_iter().collect())
                            .collect(),
                        threads,
                        shown: distinct,
                        condition: Condition {
                            quantifier: condition.0,
                            proposition: condition.1,
                        },
                    }
                },
            )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn what_is_shown_is_read_back(test in any_test()) {
        let text = test.to_string();
        let again = parse(&text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert_eq!(&again, &test, "{}", text);
    }

    /// A file of which a piece is missing, doubled or replaced is read or refused, and refused at a
    /// place that it has.
    #[test]
    fn a_garbled_file_is_no_panic(
        test in any_test(),
        (from, length, copies) in (0usize..400, 0usize..40, 0usize..3),
        strange in "[\\x00-\\x7f\u{e9}\u{4e16}]{0,3}",
    ) {
        let text: Vec<char> = test.to_string().chars().collect();
        let from = from.min(text.len());
        let to = (from + length).min(text.len());
        let mut garbled: String = text[..from].iter().collect();
        for _ in 0..copies {
            garbled.extend(&text[from..to]);
        }
        garbled.push_str(&strange);
        garbled.extend(&text[to..]);
        if let Err(error) = parse(&garbled) {
            let lines: Vec<&str> = garbled.split('\n').collect();
            prop_assert!((1..=lines.len()).contains(&(error.line as usize)), "{}", error);
            let line = lines[error.line as usize - 1];
            prop_assert!((1..=line.chars().count() + 1).contains(&(error.column as usize)));
            prop_assert!(!error.to_string().contains('\n'));
        }
    }

    #[test]
    fn anything_at_all_is_no_panic(text in any::<String>(), header: bool) {
        let text = if header { format!("X86 t\n{{}}\n P0 ;\n{text}") } else { text };
        let _ = parse(&text);
    }
}

#[test]
fn a_test_of_the_catalogue_is_read() {
    // As diy7 writes them: information, an empty initial state, the condition on a line of its own.
    let text = "X86 SB+rfi-pos\n\"Rfi PodRR Fre\"\nGenerator=diyone7 (version 7.54)\nCom=Fr Fr\n{\n}\n \
                P0          | P1          ;\n MOV [x],$1  | mov [y],$1  ;\n \
                MOV EAX,[x] | (* own *) MOV EAX,[y] ;\n MOV EBX,[y] |  ;\nexists\n\
                (0:EAX=1 /\\ 0:EBX=0 \\/ ~1:EAX!=1 => [x] == -0x1)\n";
    let test = parse(text).unwrap();
    assert_eq!(test.name, "SB+rfi-pos");
    assert_eq!(test.info[0].1, "diyone7 (version 7.54)");
    assert_eq!(
        test.threads.iter().map(Vec::len).collect::<Vec<_>>(),
        [3, 2]
    );
    assert_eq!(
        test.condition_text(),
        "exists (0:EAX=1 /\\ 0:EBX=0 \\/ not (not (1:EAX=1)) => [x]=-1)"
    );
    let plain = parse("X86 p (other)\n{ int=3; }\nP0;\nMOV RAX,[int];").unwrap();
    assert_eq!(plain.condition_text(), "forall (true)");
    assert_eq!(plain.locations, [("int".to_owned(), 3)]);
}

#[test]
fn what_is_not_of_the_subset_is_refused_at_its_place() {
    let program = |row: &str| format!("X86 t\n{{ }}\n P0 | P1 ;\n{row}\nexists (x=1)\n");
    for (text, error) in [
        (
            program(" XCHG [x],EAX | ;"),
            "line 4, column 2: XCHG is not supported: the subset is MOV [x],$1; MOV [x],EAX; \
             MOV EAX,[x]; MOV EAX,$1; MOV EAX,EBX; MFENCE",
        ),
        (
            program(" MOV [x],$1 | L0: ;"),
            "line 4, column 15: the label L0 is not supported: the subset is MOV [x],$1; \
             MOV [x],EAX; MOV EAX,[x]; MOV EAX,$1; MOV EAX,EBX; MFENCE",
        ),
        (
            program(" MOV [x],[y] | ;"),
            "line 4, column 10: one of MOV's two operands must be a register or a number",
        ),
        (
            program(" MOV $1,EAX | ;"),
            "line 4, column 6: MOV writes to a register or to [x], not to a number",
        ),
        (
            program(" MOV [EAX],$1 | ;"),
            "line 4, column 7: EAX is a register: addresses in registers are not supported",
        ),
        (
            program(" MOV eax,$1 | ;"),
            "line 4, column 6: registers are written in capitals: EAX",
        ),
        (
            program(" MOV EAX,$1 | ;\n MOV RAX,$1 | ;"),
            "line 5, column 6: RAX is EAX, as P0 calls it: use one name",
        ),
        (
            program(" MOV EAX,$2147483648 | ;"),
            "line 4, column 11: this number does not fit into 32 bits with a sign",
        ),
        (
            program(" MOV EAX,$1 ;"),
            "line 4, column 13: `|` between P0 and P1 is expected here, there is `;`",
        ),
        (
            program(" MOV EAX,$1 | MFENCE | MFENCE ;"),
            "line 4, column 22: `;` behind the instruction of P1, the last thread is expected \
             here, there is `|`",
        ),
        (
            "AArch64 t\n{ }".to_owned(),
            "line 1, column 1: tests for AArch64 are not supported: only those that begin with `X86`",
        ),
        (
            "X86 t\n\"no end".to_owned(),
            "line 2, column 2: this text does not end: `\"` is missing",
        ),
        (
            "X86 t\n{ uint64_t x=1; }".to_owned(),
            "line 2, column 3: `uint64_t` is followed by `x`: types and arrays are not supported",
        ),
        (
            "X86 t\n{ 0:EAX=x; }".to_owned(),
            "line 2, column 9: only whole numbers can stand here, no addresses and no other \
             locations",
        ),
        (
            "X86 t\n{ x=1; x=2; }".to_owned(),
            "line 2, column 8: the initial state gives this two different values",
        ),
        (
            "X86 t\n{ 1:EAX=1; }\nP0 ;\n".to_owned(),
            "line 2, column 3: there is no thread P1",
        ),
        (
            "X86 t\n{ }\nP0 | P2 ;\n".to_owned(),
            "line 3, column 6: `P2` stands where `P1` is expected",
        ),
        (
            "X86 t\n{ } (* no end\nP0 ;\n".to_owned(),
            "line 2, column 5: this comment does not end: `*)` is missing",
        ),
        (
            "X86 t\n{ }\nP0 ;\nfilter (x=1)\n".to_owned(),
            "line 4, column 1: filter is not supported: the condition begins with exists, \
             ~exists or forall",
        ),
        (
            "X86 t\n{ }\nP0 ;\nexists (1:EAX=1)\n".to_owned(),
            "line 4, column 9: there is no thread P1",
        ),
        (
            "X86 t\n{ x=0; }\nP0 ;\nexists (x=0 /\\ y=0)\n".to_owned(),
            "line 4, column 16: neither the initial state nor a thread names this location",
        ),
        (
            "X86 t\n{ x=0; }\nP0 ;\nexists (x=1".to_owned(),
            "line 4, column 12: `)` at the end of what `(` began is expected here, the file ends",
        ),
    ] {
        assert_eq!(parse(&text).unwrap_err().to_string(), error, "{text}");
    }
}

#[test]
fn large_files_are_refused_before_they_cost_anything() {
    let refused = |text: String| parse(&text).unwrap_err().reason;
    assert!(refused("X86 t".repeat(MOST_BYTES / 5 + 1)).contains("at most"));
    let deep = |open: &str| format!("X86 t\n{{x=0;}}\nP0;\nexists {}", open.repeat(100_000));
    for open in ["(", "~", "not ", "x=1 => "] {
        assert_eq!(
            refused(deep(open)),
            "more than 64 operators within each other"
        );
    }
    let rows = "MFENCE;\n".repeat(5_000);
    assert_eq!(
        refused(format!("X86 t\n{{}}\nP0;\n{rows}")),
        "more than 4096 instructions"
    );
    let threads: String = (0..100).map(|n| format!("P{n}|")).collect();
    assert_eq!(
        refused(format!("X86 t\n{{}}\n{threads}")),
        "more than 64 threads"
    );
    let locations: String = (0..300).map(|n| format!("x{n}=0;")).collect();
    assert_eq!(
        refused(format!("X86 t\n{{{locations}}}")),
        "more than 256 locations"
    );
    // A long chain stands side by side, not within each other.
    let chain = "x=1 /\\ ".repeat(20_000);
    assert!(parse(&format!("X86 t\n{{x=0;}}\nP0;\nexists {chain} x=1")).is_ok());
}

/// Returns whether `model` allows a state of which the test's proposition holds.
#[test]
fn a_report_reads_as_that_of_litmus7() {
    let test = parse(SB).unwrap();
    let mut histogram = Histogram::default();
    let eax = Register::named("EAX").unwrap();
    for (first, second, count) in [(1, 1, 3), (0, 0, 2), (1, 0, 1_234_567)] {
        for _ in 0..count {
            let mut state = test.initial_state();
            state.registers[0][eax.number()] = first;
            state.registers[1][eax.number()] = second;
            state.memory = vec![1, 1];
            histogram.count(state);
        }
    }
    let report = |model, name| {
        let behaviours = Behaviours::of(&test, model);
        let allowed = behaviours.as_ref().map_err(|&large| large);
        Report::new(&test, &histogram, name, allowed).to_string()
    };
    assert_eq!(
        report(&Model::SequentiallyConsistent, "SC"),
        "Test SB Allowed\n\
         Histogram (3 states)\n\
         2     *>0:EAX=0; 1:EAX=0; forbidden\n\
         1234567:>0:EAX=1; 1:EAX=0; allowed\n\
         3     :>0:EAX=1; 1:EAX=1; allowed\n\
         Ok\n\
         \n\
         Witnesses\n\
         Positive: 2, Negative: 1234570\n\
         Condition exists (0:EAX=0 /\\ 1:EAX=0) is validated\n\
         Observation SB Sometimes 2 1234570\n\
         Model SC: 3 outcomes allowed, 2 seen, 1 unseen; 1 forbidden seen\n\
         Unseen :>0:EAX=0; 1:EAX=1;\n"
    );
    let of_tso = report(&Model::TotalStoreOrder, "x86-TSO");
    let last = "Model x86-TSO: 4 outcomes allowed, 3 seen, 1 unseen; 0 forbidden seen\n\
                Unseen :>0:EAX=0; 1:EAX=1;\n";
    assert!(of_tso.ends_with(last), "{of_tso}");
    let unknown = Report::new(&test, &histogram, "x86-TSO", Err(TooLarge)).to_string();
    assert!(
        unknown.contains(">0:EAX=1; 1:EAX=1; unknown\n"),
        "{unknown}"
    );
    assert!(
        unknown.ends_with("it is too large for a search\n"),
        "{unknown}"
    );
}

#[test]
fn each_quantifier_counts_as_litmus7_does() {
    for (condition, seen, lines) in [
        (
            "exists (x=1)",
            2,
            "Allowed|No|0, Negative: 5|NOT |Never 0 5",
        ),
        ("exists (x=2)", 2, "Allowed|Ok|5, Negative: 0||Always 5 0"),
        ("~exists (x=1)", 2, "Forbidden|Ok|5, Negative: 0||Never 0 5"),
        (
            "~exists (x=2)",
            2,
            "Forbidden|No|0, Negative: 5|NOT |Always 5 0",
        ),
        ("forall (x=2)", 2, "Required|Ok|5, Negative: 0||Always 5 0"),
        (
            "forall (x=1)",
            2,
            "Required|No|0, Negative: 5|NOT |Never 0 5",
        ),
    ] {
        let test = parse(&format!("X86 q\n{{ }}\nP0 ;\nMOV [x],$2 ;\n{condition}")).unwrap();
        let mut histogram = Histogram::default();
        for _ in 0..5 {
            histogram.count(FinalState {
                memory: vec![seen],
                ..test.initial_state()
            });
        }
        let text = Report::new(&test, &histogram, "any", Err(TooLarge)).to_string();
        let parts: Vec<&str> = lines.split('|').collect();
        assert!(
            text.starts_with(&format!("Test q {}\n", parts[0])),
            "{text}"
        );
        assert!(
            text.contains(&format!(
                "\n{}\n\nWitnesses\nPositive: {}\n",
                parts[1], parts[2]
            )),
            "{text}"
        );
        assert!(
            text.contains(&format!(" is {}validated\n", parts[3])),
            "{text}"
        );
        assert!(
            text.contains(&format!("\nObservation q {}\n", parts[4])),
            "{text}"
        );
    }
}
