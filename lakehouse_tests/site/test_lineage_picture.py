"""Tables are to the right of their sources, and the picture does not depend on their order."""

from lakehouse.site.lineage_picture import draw_lineage

SOURCES = {"b": {"a"}, "c": {"b"}, "d": {"a", "c"}, "e": {"a"}}


def texts(names: str) -> dict[str, tuple[str, str]]:
    return {name: ("layer", name) for name in names}


def test_a_table_is_right_of_all_its_sources():
    picture = draw_lineage(texts("abcde"), SOURCES)
    x = {box.name: box.x for box in picture.boxes}

    assert all(x[source] < x[target] for target in SOURCES for source in SOURCES[target])
    assert len(picture.arrows) == 5


def test_boxes_do_not_overlap_and_are_in_the_frame():
    picture = draw_lineage(texts("abcde"), SOURCES)
    width, height = picture.box_width, picture.box_height

    for box in picture.boxes:
        assert box.x >= 0 and box.x + width <= picture.width
        assert box.y >= 0 and box.y + height <= picture.height
        for other in picture.boxes:
            is_apart = abs(box.x - other.x) >= width or abs(box.y - other.y) >= height
            assert box is other or is_apart


def test_the_order_of_tables_does_not_matter():
    reversed_sources = {name: sorted(SOURCES[name])[::-1] for name in reversed(SOURCES)}

    assert draw_lineage(texts("edcba"), reversed_sources) == draw_lineage(
        texts("abcde"), SOURCES
    )


def test_a_long_name_is_shortened():
    (box,) = draw_lineage({"k": ("layer", "x" * 80)}, {}).boxes

    assert len(box.texts[1]) == 32
