"""Turns: one at a time at the model, visitors in the order they came, everyone knows their place."""

import threading


class Ticket:
    """A place in the line. The holder works while `place` is 0 and leaves when done, whatever happens."""

    def __init__(self, turns: "Turns", visitor: str, errand: str) -> None:
        self.visitor, self.errand = visitor, errand
        self._turns = turns
        self._stopped = threading.Event()

    def is_stopped(self) -> bool:
        """Whether the visitor wants no more of it; to be looked at between steps."""
        return self._stopped.is_set()

    def stop(self) -> None:
        self._stopped.set()
        self._turns.wake()

    @property
    def place(self) -> int:
        """How many are ahead; 0 is this ticket's turn. Raises ValueError after `leave`."""
        return self._turns.place(self)

    def wait(self, seconds: float) -> bool:
        """Wait for the turn, a stop or a time out, whichever is first; True where the turn has come."""
        return self._turns.wait(self, seconds)

    def leave(self) -> None:
        """Give the place up; more than once does no harm."""
        self._turns.leave(self)

    def rest(self) -> None:
        """Let others in between: give the place up, but go on hearing of a stop until `leave`."""
        self._turns.rest(self)

    def return_to_line(self) -> None:
        """After a rest: a place at the end of the line again."""
        self._turns.enter(self)


class Turns:
    """The line before the model. All of it may be called from any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._line: list[Ticket] = []
        self._resting: list[Ticket] = []

    def join(self, visitor: str, errand: str = "") -> Ticket:
        """A new ticket at the end of the line, but ahead of what others want more often.

        A visitor's second run stands behind everybody's first, their third behind everybody's second.
        errand: what it is for, so that it can be stopped apart from the visitor's others.
        """
        ticket = Ticket(self, visitor, errand)
        self.enter(ticket)
        return ticket

    def enter(self, ticket: Ticket) -> None:
        with self._changed:
            self._drop(ticket)
            own = sum(other.visitor == ticket.visitor for other in self._line)
            at = len(self._line)
            while at and self._earlier(at - 1) > own:
                at -= 1
            self._line.insert(at, ticket)

    def _earlier(self, index: int) -> int:
        """How many tickets of the same visitor are ahead of one."""
        visitor = self._line[index].visitor
        return sum(ticket.visitor == visitor for ticket in self._line[:index])

    def stop(self, visitor: str, errand: str | None = None) -> int:
        """Ask a visitor's tickets of one errand to stop, or all of them; the number that were asked."""
        with self._changed:
            theirs = [ticket for ticket in self._line + self._resting if ticket.visitor == visitor]
        theirs = [ticket for ticket in theirs if errand in (None, ticket.errand)]
        for ticket in theirs:
            ticket.stop()
        return len(theirs)

    def place(self, ticket: Ticket) -> int:
        with self._changed:
            return self._line.index(ticket)

    def wait(self, ticket: Ticket, seconds: float) -> bool:
        def ready() -> bool:
            return self._line[0] is ticket or ticket.is_stopped()

        with self._changed:
            self._changed.wait_for(ready, seconds)
            return self._line[0] is ticket

    def leave(self, ticket: Ticket) -> None:
        with self._changed:
            self._drop(ticket)
            self._changed.notify_all()

    def rest(self, ticket: Ticket) -> None:
        with self._changed:
            self._drop(ticket)
            self._resting.append(ticket)
            self._changed.notify_all()

    def _drop(self, ticket: Ticket) -> None:
        for place in (self._line, self._resting):
            if ticket in place:
                place.remove(ticket)

    def wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def __len__(self) -> int:
        with self._changed:
            return len(self._line)
