//! Orders in which a rank and its server hear of places.

use std::sync::Arc;

use super::*;
use crate::channel::transfers::Modes;
use crate::device::Device;
use crate::device::matching::Wanted;

/// With a server.
const NORMAL: Abilities = Abilities {
    modes: Modes::NORMAL,
    has_server: true,
    shows_arrivals: true,
};

/// An event at a rank: it begins to send, or it or its server hears of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Sends,
    Hears { by_server: bool },
}

/// All orders of so many sends and as many places, of which the server hears of those whose bit
/// is set.
fn orders(count: usize, by_server: u32) -> Vec<Vec<Event>> {
    let mut orders = Vec::new();
    for choice in 0..1_u32 << (2 * count) {
        if choice.count_ones() as usize != count {
            continue;
        }
        let mut heard = 0;
        let order = (0..2 * count).map(|at| match choice >> at & 1 {
            1 => Event::Sends,
            _ => {
                heard += 1;
                let by_server = by_server >> (heard - 1) & 1 == 1;
                Event::Hears { by_server }
            }
        });
        orders.push(order.collect());
    }
    orders
}

/// A send that is pending is started exactly once, in every order in which sends begin and
/// places are heard of, by the rank or by its server, which both look (Ho et al., Algorithms 3
/// and 4).
#[test]
fn a_pending_send_is_started_exactly_once() {
    const COUNT: usize = 3;
    let head = Head {
        context: 0,
        tag: 7,
        call: 0,
        root: 0,
        address: None,
    };
    for by_server in 0..1 << COUNT {
        for order in orders(COUNT, by_server) {
            let device = Arc::new(Device::new((0, 2), None, Some(NORMAL)));
            let server = Pending(Arc::clone(&device));
            let (mut requests, mut started, mut places) = (Vec::new(), Vec::new(), 0);
            for &event in &order {
                match event {
                    Event::Sends => {
                        let form = (Mode::Standard, CallForm::Immediate);
                        let send = device.send_as(1, head, vec![1; 8], form);
                        requests.push(send.unwrap());
                    }
                    Event::Hears { by_server } => {
                        let header = Header {
                            context: head.context,
                            tag: head.tag,
                            root: places,
                            receiver: u32::from(places),
                            length: 8,
                            ..Header::of(Kind::Place)
                        };
                        places += 1;
                        match by_server {
                            true => assert!(server.hears(1, header)),
                            false => device.state.lock().hears(1, header, false),
                        }
                    }
                }
                // Both look after every event.
                for ready in [device.next_ready(), server.next(), server.next()] {
                    started.extend(ready.map(|one| (one.request, one.data.ticket)));
                }
            }
            assert!(device.next_ready().is_none() && server.next().is_none());
            // The first send to the first place, and so on.
            let expected: Vec<(usize, Ticket)> = requests.into_iter().zip(0..).collect();
            assert_eq!(started, expected, "{order:?}");
        }
    }
}

/// A server hears of places and nothing else.
#[test]
fn a_server_leaves_other_packets_to_the_rank() {
    let device = Arc::new(Device::new((0, 2), None, Some(NORMAL)));
    let server = Pending(device);
    for kind in [
        Kind::Eager,
        Kind::RequestToSend,
        Kind::ClearToSend,
        Kind::TakenBack,
    ] {
        assert!(!server.hears(1, Header::of(kind)));
    }
}

/// A receive that may get a message which an earlier one may get, too, is not told of, and is
/// when that one is gone.
#[test]
fn places_are_opened_for_receives_that_name_their_sender() {
    let alone = Abilities {
        has_server: false,
        ..NORMAL
    };
    let device = Device::new((0, 2), None, Some(alone));
    let wanted = |from, tag| Wanted {
        context: 0,
        from,
        tag,
    };
    device.receive_at(wanted(None, Some(1)), (8, None), CallForm::Immediate);
    device.receive_at(wanted(Some(1), Some(1)), (8, None), CallForm::Immediate);
    device.receive_at(wanted(Some(1), Some(2)), (8, None), CallForm::Immediate);
    let opens = device.next_opening().unwrap();
    assert_eq!((opens.to, opens.receive), (1, 2));
    device.opened(opens, Some(5));
    assert!(device.next_opening().is_none());
}
