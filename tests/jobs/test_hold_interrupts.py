"""Ctrl-C during work that must not be cut in two."""

import os
import signal
from threading import Thread

import pytest

from deepera_graph.jobs.rerank import hold_interrupts


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


def interrupted(times, done):
    with hold_interrupts():
        for _ in range(times):
            interrupt()
        done.append("all of it")


@pytest.mark.full
def test_an_interrupt_waits_for_the_end_of_the_block():
    done = []
    with pytest.raises(KeyboardInterrupt):
        interrupted(1, done)
    assert done == ["all of it"]


def test_a_second_interrupt_does_not_wait():
    done = []
    with pytest.raises(KeyboardInterrupt):
        interrupted(2, done)
    assert done == []


def test_the_handler_is_as_before_afterwards():
    before = signal.getsignal(signal.SIGINT)
    with hold_interrupts():
        pass
    assert signal.getsignal(signal.SIGINT) is before


def test_an_error_in_the_block_is_raised():
    with pytest.raises(OSError, match="full"), hold_interrupts():
        raise OSError("full")


def test_another_thread_may_use_it():
    done = []

    def work():
        with hold_interrupts():
            done.append(True)

    thread = Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]
