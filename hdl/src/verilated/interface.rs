//! The C interface of a verilated block.
//!
//! ```text
//! uint32_t sme_rtl_words(uint32_t outputs);   words of all inputs (0) or all outputs (1)
//! void *sme_rtl_new(void);                    an instance after power-on, or null: no memory
//! void sme_rtl_reset(void *);                 a cycle with reset high and the inputs zero
//! void sme_rtl_cycle(void *, const uint64_t *inputs, uint64_t *outputs);
//! void sme_rtl_free(void *);
//! ```
//!
//! A port takes ⌈bits / 64⌉ words, the lowest first, and the ports follow one another in their
//! order. `sme_rtl_cycle` puts the inputs on, reads the outputs, and gives the rising edge. A
//! wrapper in Verilog gives the ports plain names (`i0`, `o0`), which are the same in C++.
//!
//! No exception gets out: where there is no memory for what Verilator's constructors make, beyond
//! the instance itself, the program ends.

use std::fmt::Write;

use crate::device::Port;

/// The wrapper's module.
pub(super) const TOP: &str = "sme_rtl";

/// 64-bit words that a port takes.
pub(super) fn words(port: &Port) -> usize {
    port.bits.div_ceil(64)
}

/// 64-bit words that all of `ports` take.
pub(super) fn all_words(ports: &[Port]) -> usize {
    ports.iter().map(words).sum()
}

/// The module [`TOP`]: the module `block` with plain names for its ports.
pub(super) fn wrapper(block: &str, inputs: &[Port], outputs: &[Port]) -> String {
    let mut ports = String::from("    input wire clock,\n    input wire reset");
    let mut connections = String::from("        .clock(clock),\n        .reset(reset)");
    // Writing to a string cannot fail.
    let mut add = |kind: &str, letter: char, list: &[Port]| {
        for (index, port) in list.iter().enumerate() {
            let _ = write!(
                ports,
                ",\n    {kind} wire [{}:0] {letter}{index}",
                port.bits - 1
            );
            let _ = write!(connections, ",\n        .{}({letter}{index})", port.name);
        }
    };
    add("input", 'i', inputs);
    add("output", 'o', outputs);
    format!("\nmodule {TOP}(\n{ports}\n);\n    {block} block(\n{connections}\n    );\nendmodule\n")
}

/// The C++ between the interface and what Verilator makes of [`wrapper`].
pub(super) fn source(inputs: &[Port], outputs: &[Port]) -> String {
    let lines = |function: &str, letter: char, ports: &[Port]| -> String {
        let line = |index| format!("    {function}(top.{letter}{index}, words);\n");
        (0..ports.len()).map(line).collect()
    };
    let (put, get) = (lines("put", 'i', inputs), lines("get", 'o', outputs));
    let (input_words, output_words) = (all_words(inputs), all_words(outputs));
    format!(
        r#"#include <cstddef>
#include <cstdint>
#include <new>
#include "verilated.h"
#include "Vsme_rtl.h"

namespace {{

// A port of up to 64 bits, and a wider one, which is an array of 32-bit words.
template <typename Port> inline void put(Port& port, const std::uint64_t*& words) {{
    port = static_cast<Port>(*words++);
}}
template <std::size_t N> inline void put(VlWide<N>& port, const std::uint64_t*& words) {{
    for (std::size_t i = 0; i < N; ++i)
        port[i] = static_cast<std::uint32_t>(words[i / 2] >> (32 * (i % 2)));
    words += (N + 1) / 2;
}}
template <typename Port> inline void get(const Port& port, std::uint64_t*& words) {{
    *words++ = port;
}}
template <std::size_t N> inline void get(const VlWide<N>& port, std::uint64_t*& words) {{
    for (std::size_t i = 0; i < N; i += 2)
        *words++ = port[i] | (i + 1 < N ? std::uint64_t(port[i + 1]) << 32 : 0);
}}

// Without a word it has a pool of threads, of as many as there are processors.
inline VerilatedContext* of_one_thread(VerilatedContext& context) {{
    context.threads(1);
    return &context;
}}

struct Instance {{
    VerilatedContext context;
    Vsme_rtl top;
    Instance() : top(of_one_thread(context), "{TOP}") {{
        top.clock = 0;
        top.reset = 0;
        static const std::uint64_t zero[{some_words}] = {{0}};
        put_inputs(zero);
        top.eval();
    }}
    ~Instance() {{ top.final(); }}
    void put_inputs(const std::uint64_t* words) {{
{put}    }}
    void get_outputs(std::uint64_t* words) const {{
{get}    }}
}};

}}

#define INTERFACE extern "C" __attribute__((visibility("default")))

INTERFACE std::uint32_t sme_rtl_words(std::uint32_t outputs) {{
    return outputs ? {output_words} : {input_words};
}}

INTERFACE void* sme_rtl_new() noexcept {{ return new (std::nothrow) Instance; }}

INTERFACE void sme_rtl_reset(void* pointer) noexcept {{
    Instance& instance = *static_cast<Instance*>(pointer);
    static const std::uint64_t zero[{some_words}] = {{0}};
    instance.put_inputs(zero);
    instance.top.reset = 1;
    instance.top.clock = 0;
    instance.top.eval();
    instance.top.clock = 1;
    instance.top.eval();
    instance.top.reset = 0;
}}

INTERFACE void sme_rtl_cycle(void* pointer, const std::uint64_t* inputs, std::uint64_t* outputs) noexcept {{
    Instance& instance = *static_cast<Instance*>(pointer);
    instance.put_inputs(inputs);
    instance.top.clock = 0;
    instance.top.eval();
    instance.get_outputs(outputs);
    instance.top.clock = 1;
    instance.top.eval();
}}

INTERFACE void sme_rtl_free(void* pointer) noexcept {{ delete static_cast<Instance*>(pointer); }}
"#,
        some_words = input_words.max(1),
    )
}
