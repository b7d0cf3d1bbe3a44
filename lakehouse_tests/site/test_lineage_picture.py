"""Tables are to the right of their sources, and the picture does not depend on their order."""

from lakehouse.site.lineage_picture import Node, draw_lineage, related

SOURCES = {"b": {"a"}, "c": {"b"}, "d": {"a", "c"}, "e": {"a"}}


def nodes(names: str) -> list[Node]:
    return [Node(name, name, "layer", f"{name}.html") for name in names]


def test_a_table_is_right_of_all_its_sources():
    picture = draw_lineage(nodes("abcde"), SOURCES)
    x = {box.node.key: box.x for box in picture.boxes if box.node}

    assert all(x[source] < x[target] for target in SOURCES for source in SOURCES[target])
    assert len(picture.arrows) == 5


def test_boxes_do_not_overlap_and_are_in_the_frame():
    picture = draw_lineage(nodes("abcde"), SOURCES)

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


def test_the_order_of_tables_does_not_matter():
    reversed_sources = {name: sorted(SOURCES[name])[::-1] for name in reversed(SOURCES)}

    assert draw_lineage(nodes("edcba"), reversed_sources) == draw_lineage(
        nodes("abcde"), SOURCES
    )


def test_a_long_name_is_shortened():
    assert len(Node("k", "x" * 80, "layer").label) == 32


def test_many_related_tables_are_reduced_to_neighbours():
    assert related("b", SOURCES, most=9) == ({"a", "b", "c", "d"}, False)
    assert related("b", SOURCES, most=3) == ({"a", "b", "c"}, True)


def test_without_tables_the_picture_is_empty():
    assert draw_lineage([], {}).boxes == ()
