"""A picture has tables to the right of what they are computed from, and is the same each time."""

from itertools import pairwise

from lakehouse.site.lineage_picture import Node, column_numbers, draw_lineage, related

SOURCES = {"b": {"a"}, "c": {"b"}, "d": {"a", "c"}, "e": {"a"}}


def nodes(*names: str) -> list[Node]:
    return [Node(name, name, "layer", f"{name}.html") for name in names]


def columns(sources: dict[str, set[str]]) -> dict[str, float]:
    picture = draw_lineage(nodes(*{*sources, *set().union(*sources.values())}), sources)
    return {box.node.key: box.x for box in picture.boxes}


def test_a_table_stands_right_of_all_that_it_is_computed_from():
    x = columns(SOURCES)

    assert all(x[source] < x[target] for target in SOURCES for source in SOURCES[target])


def test_boxes_do_not_overlap_and_are_in_the_frame():
    picture = draw_lineage(nodes(*"abcde"), SOURCES)

    for box in picture.boxes:
        assert box.x >= 0 and box.x + box.width <= picture.width
        assert box.y >= 0 and box.y + box.height <= picture.height
        for other in picture.boxes:
            is_apart = (
                box.x + box.width <= other.x
                or other.x + other.width <= box.x
                or box.y + box.height <= other.y
                or other.y + other.height <= box.y
            )
            assert box is other or is_apart


def test_there_is_an_arrow_for_each_source():
    assert len(draw_lineage(nodes(*"abcde"), SOURCES).arrows) == 5


def test_the_order_in_which_tables_are_named_does_not_matter():
    turned = {name: sorted(SOURCES[name], reverse=True) for name in reversed(SOURCES)}

    assert draw_lineage(nodes(*"edcba"), turned) == draw_lineage(nodes(*"abcde"), SOURCES)


def test_a_circle_is_drawn_too():
    assert len(draw_lineage(nodes("a", "b"), {"a": {"b"}, "b": {"a"}}).boxes) == 2


def test_a_table_that_reads_itself_has_no_arrow():
    assert draw_lineage(nodes("a"), {"a": {"a"}}).arrows == ()


def test_a_long_chain_is_numbered():
    names = [f"t{number:04}" for number in range(3000)]
    edges = list(pairwise(names))

    assert column_numbers(names, edges)[names[-1]] == 2999


def test_a_long_name_is_cut_in_its_box():
    node = Node("k", "x" * 80, "layer")

    assert len(node.label) == 32
    assert node.label.endswith("…")


def test_what_is_around_a_table_is_all_before_and_after_it():
    assert related("b", SOURCES, most=9) == ({"a", "b", "c", "d"}, False)


def test_of_many_only_the_nearest_are_around_it():
    assert related("b", SOURCES, most=3) == ({"a", "b", "c"}, True)


def test_no_table_is_an_empty_picture():
    assert draw_lineage([], {}).boxes == ()
