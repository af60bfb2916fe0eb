//! The hardware, one block a file: [`engine`] joins [`ht_port`], [`requester`], [`completer`],
//! [`responder`], [`crossbar`], [`switch`] and six times [`link_port`]; the others are their parts.
//!
//! Every block that has registers has a clock and a synchronous reset. There are ports of two
//! kinds: packets with *valid* and *ready*, and pulses. Its function and its timing are specified
//! by its cycle model, in [`sme_sim::families::sme::engine`]; the rules for kernels are in
//! docs/rtl.md.

pub mod address_decoder;
pub mod arbiter;
pub mod completer;
pub mod crc;
pub mod credits;
pub mod crossbar;
pub mod engine;
pub mod fetch;
pub mod fifo;
pub mod fork;
pub mod ht_decoder;
pub mod ht_encoder;
pub mod ht_port;
pub mod late_fifo;
pub mod link_port;
pub mod ping_pong;
pub mod primitive;
pub mod read_order;
pub mod requester;
pub mod responder;
pub mod resting;
pub mod router;
pub mod skid_buffer;
pub mod switch;
pub mod switch_input;
pub mod switch_output;
pub mod tags;
pub mod turns;

use crate::device::Wire;
use crate::pins;
use fifo::Fifo;
use late_fifo::LateFifo;
use ping_pong::PingPong;
use rust_hdl::prelude::*;
use skid_buffer::SkidBuffer;
use sme_sim::families::sme::engine::wires::DEPTH;

/// Most places of a buffer that credits are given for: of a link's channel, or of the host's.
pub const MAX_PLACES: u16 = 32;

// A skid buffer, a late FIFO and a ping-pong buffer have two places.
const _: () = assert!(DEPTH == 2);

pins!([T: Wire, const A: usize, const C: usize] Fifo<T, A, C> {
    in: write, write_data, read;
    out: ready, valid, data
});
pins!([T: Wire] LateFifo<T> {
    in: write, write_data, read;
    out: ready, valid, data
});
pins!([T: Wire] PingPong<T> {
    in: write, write_data, read;
    out: ready, valid, data
});
pins!([T: Wire] SkidBuffer<T> {
    in: write, write_data, read;
    out: ready, valid, data
});
pins!([const W: usize] tags::TagTable<W> {
    in: allocate, new_context, lookup, free;
    out: available, lowest, used, found, returns
});
pins!(crossbar::Crossbar {
    in: requester_stays, responder_stays, switch_request_valid, switch_request_packet,
        requester_valid, requester_data, switch_response_valid, switch_response_packet,
        responder_valid, responder_data,
        completer_ready, answer_ready, request_ready, response_ready;
    out: switch_request_ready, requester_ready, switch_response_ready, responder_ready,
        completer_valid, completer_data, answer_valid, answer_data,
        request_valid, request_data, response_valid, response_data
});
pins!(completer::Completer {
    in: request_valid, request_data, write_ready, read_ready, origin_lookup, origin_free, node;
    out: request_ready, write_valid, write_data, read_valid, read_data, origin_used,
        origin_source, origin_tag, origin_stays, request_waits, request_source,
        tag_returns
});
pins!(responder::Responder {
    in: node, memory_valid, memory_data, response_ready, origin_used, origin_source, origin_tag,
        origin_stays;
    out: memory_ready, response_valid, response_data, response_stays, origin_lookup, origin_free,
        unknown_tag
});
pins!(link_port::LinkPort {
    in: transmit_valid, transmit_packet, link_credit, link_in_valid, link_in_channel, link_in_data,
        link_in_crc;
    out: transmit_ready, link_out_valid, link_out_channel, link_out_data, link_out_crc,
        receive_valid, receive_data, crc_error, begun, waiting, begun_write, arriving_on,
        arriving_target
});
pins!(router::Route {
    in: x, y, z, arrived, channel, target;
    out: exit, way
});
pins!(switch::Switch {
    in: x, y, z, arriving_on, arriving_target, receive_valid, receive_data, request_valid,
        request_data, response_valid, response_data, transmit_ready, request_out_ready, response_out_ready;
    out: request_ready, response_ready, credit, transmit_valid, transmit_packet,
        request_out_valid, request_out_packet, response_out_valid, response_out_packet
});
pins!(ht_port::HtPort {
    in: host_valid, host_data, host_credit, posted_ready, nonposted_ready, memory_ready,
        write_valid, write_data, read_valid, read_data, answer_valid, answer_data;
    out: credit, posted_valid, posted_data, nonposted_valid, nonposted_data, nonposted_before,
        memory_valid, memory_data, write_ready, read_ready, answer_ready,
        host_out_valid, host_out_data
});
pins!(requester::Requester {
    in: posted_valid, posted_data, nonposted_valid, nonposted_data, nonposted_before,
        response_valid, response_data, request_ready, answer_ready, node;
    out: posted_ready, nonposted_ready, response_ready, request_valid, request_data,
        request_stays, answer_valid, answer_data, dropped_valid, dropped_data, failed_valid,
        failed_data, unknown_tag, tag_returns
});
