"""Turns: one at a time, first come first served, and nobody blocks the line by leaving."""

import threading
import time

import pytest

from app.turns import Turns


def test_places_follow_arrival_and_move_up() -> None:
    turns = Turns()
    tickets = [turns.join(name) for name in "abc"]
    assert [ticket.place for ticket in tickets] == [0, 1, 2]
    tickets[1].leave()
    assert (tickets[0].place, tickets[2].place) == (0, 1)
    tickets[0].leave()
    assert tickets[2].wait(0)


def test_one_who_waits_is_woken_by_the_one_who_leaves() -> None:
    turns = Turns()
    first, second = turns.join("a"), turns.join("b")
    threading.Timer(0.05, first.leave).start()
    started = time.monotonic()
    assert second.wait(5)
    assert time.monotonic() - started < 1


def test_stop_reaches_a_visitor_still_in_line() -> None:
    turns = Turns()
    turns.join("a")
    waiting = turns.join("b")
    threading.Timer(0.05, lambda: turns.stop("b")).start()
    assert not waiting.wait(5)
    assert waiting.is_stopped()


def test_stop_concerns_one_visitor_only() -> None:
    turns = Turns()
    mine, other = turns.join("a"), turns.join("b")
    assert turns.stop("a") == 1
    assert (mine.is_stopped(), other.is_stopped()) == (True, False)


def test_stop_of_one_errand_leaves_the_visitors_others_alone() -> None:
    turns = Turns()
    run, search, resting = (turns.join("a", errand) for errand in ("decode", "tune", "tune"))
    resting.rest()
    assert turns.stop("a", "decode") == 1
    assert [ticket.is_stopped() for ticket in (run, search, resting)] == [True, False, False]
    assert turns.stop("a", "tune") == 2
    assert turns.stop("a") == 3


def test_leaving_twice_does_no_harm_and_a_left_ticket_has_no_place() -> None:
    turns = Turns()
    ticket = turns.join("a")
    ticket.leave()
    ticket.leave()
    with pytest.raises(ValueError, match="not in"):
        _ = ticket.place


def test_twenty_visitors_are_served_one_at_a_time_in_order() -> None:
    turns, at_work, served, overlaps = Turns(), [], [], []
    tickets = [turns.join(str(index)) for index in range(20)]

    def visit(index: int) -> None:
        ticket = tickets[index]
        while not ticket.wait(1):
            pass
        at_work.append(index)
        overlaps.append(len(at_work))
        time.sleep(0.002)
        at_work.remove(index)
        served.append(index)
        ticket.leave()

    threads = [threading.Thread(target=visit, args=(index,)) for index in reversed(range(20))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert served == list(range(20))
    assert max(overlaps) == 1


def test_nobody_is_served_twice_before_all_who_wait_are_served_once() -> None:
    turns = Turns()
    wishes = list("aaabacbcd")
    tickets = [turns.join(visitor) for visitor in wishes]
    served = []
    while len(turns):
        first = next(ticket for ticket in tickets if ticket.wait(0))
        served.append(first.visitor)
        first.leave()
        tickets.remove(first)
    assert "".join(served) == "abcd" + "abc" + "a" + "a"


def test_new_ones_overtake_only_what_has_an_own_run_ahead() -> None:
    turns = Turns()
    first, second = turns.join("a"), turns.join("a")
    other = turns.join("b")
    assert (first.place, other.place, second.place) == (0, 1, 2)
    first.leave()
    assert [turns.join(name).place for name in "cd"] == [2, 3]
    assert (other.place, second.place) == (0, 1)
