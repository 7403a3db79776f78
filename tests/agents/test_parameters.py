"""Parameters are built when the first instance is made, however it is made: pydantic before 2.14 writes no others."""

from hushnet.agents.parameters import Parameters


class Part(Parameters):
    size: int


class Whole(Parameters):
    part: Part


class Sent(Parameters):
    size: int


def test_a_part_that_was_read_within_a_whole_is_built():
    assert not Part.__pydantic_complete__
    part = Whole.model_validate({"part": {"size": 2}}).part
    assert Part.__pydantic_complete__
    assert part.model_dump() == {"size": 2}


def test_what_comes_from_another_process_is_built():
    assert not Sent.__pydantic_complete__
    Sent.__new__(Sent)  # as pickle makes it
    assert Sent.__pydantic_complete__
