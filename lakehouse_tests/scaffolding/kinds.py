"""Files of many kinds, as people send them."""

import gzip
from collections.abc import Mapping
from pathlib import Path

ORDERS = "order_id,ordered_at,customer_id,amount,paid\n" + "".join(
    f"{1000 + n},2026-03-{1 + n // 5:02} {8 + n % 10}:30,{n % 7},{n}.50,{'true' if n % 3 else 'false'}\n"
    for n in range(40)
)
BOM = "\ufeff" + "id,name\r\n" + "".join(f"{n},row {n}\r\n" for n in range(12))
DECIMAL_COMMAS = "artikel_nr,preis,gewicht\n" + "".join(
    f'A{n},"{n},{n % 10}5","1.{n:03},5"\n' for n in range(100, 130)
)
DAY_FIRST = "entry,posted_on,amount\n" + "".join(
    f"E{n},{1 + n % 28}.{1 + n % 12}.2025,{n}.5\n" for n in range(60)
)
EMPTY_COLUMNS = "id,remark,discount,kind\n" + "".join(f"{n},,,x\n" for n in range(20))
PEOPLE = "Customer No,First Name,e-mail,Phone,Größe,Joined\n" + "".join(
    f"{5000 + n},Ada {n},ada{n}@mail.example,+44 20 7946 0{n:03},{150 + n},{2000 + n % 20}-05-17\n"
    for n in range(30)
)
AMBIGUOUS = "entry,due,weight\n" + "".join(
    f'E{n},0{1 + n % 9}/0{1 + n % 8}/2025,"1,{100 + n}"\n' for n in range(40)
)
UNREAD_DATES = "entry,day\n" + "".join(f"E{n},{1 + n}-Jan-25\n" for n in range(20))
CODES = "store,postcode,open_date\n" + "".join(
    f"{n},0{1200 + n},2026030{1 + n % 9}\n" for n in range(20)
)
QUOTED = 'id,text\n1,"a, b"\n2,"two\nlines"\n3,"say ""hi"""\n'
VISITS = "Visit Day,shop,Amount paid\n" + "".join(
    f"2026-04-{1 + n // 4:02},s{n % 3},{n}.25\n" for n in range(32)
)
WEATHER = "location,date,precipitation,weather\n" + "".join(
    f"{place},2026-0{1 + n // 20}-{1 + n % 20:02},{n}.5,{'rain' if n % 3 else 'sun'}\n"
    for n in range(40)
    for place in ("coast", "hill", "lake", "town", "valley")
)
SEMICOLONS = "\ufeffKunden-Nr;Datum;Betrag;Ort, Land\r\n" + "".join(
    f"{4000 + n};{1 + n % 28}.3.2026;{n},{n % 10}0;Köln, DE\r\n" for n in range(40)
)
TABS = "sku\tday\tamount\n" + "".join(
    f"S{n}\t2026-05-{1 + n // 8:02}\t{n}.5\n" for n in range(32)
)
DOTTED = "Beleg-Nr.,Datum,Pos.,Kd.Nr.,Betrag EUR,pos\n" + "".join(
    f'R{n},{1 + n // 8:02}.05.2026,{n % 8},{n % 5},"{n},50",x\n' for n in range(32)
)
NUMBERED = '"","place","amount"\n' + "".join(f'"{n}","x",{n}.50\n' for n in range(1, 13))
BLANKS = "place,day,amount,count\n" + "".join(
    f'p,{n}.02.2026,"{n},50",{n}\np, ,  ,NA\n' for n in range(13, 25)
)
CHANGED = "item_id,price,updated_at\n" + "".join(
    f"{n},{n}.50,2025-0{1 + n % 9}-11T10:{n:02}:00Z\n" for n in range(12)
)
OWN_NAMES = "line_no,_source_file,_DELETED,_id\n" + "".join(
    f"{n},f{n}.txt,no,i{n}\n" for n in range(12)
)
READABLE: Mapping[str, str] = {
    "orders": ORDERS,
    "marked": BOM,
    "commas": DECIMAL_COMMAS,
    "day_first": DAY_FIRST,
    "empty": EMPTY_COLUMNS,
    "people": PEOPLE,
    "ambiguous": AMBIGUOUS,
    "unread": UNREAD_DATES,
    "codes": CODES,
    "quoted": QUOTED,
    "visits": VISITS,
    "weather": WEATHER,
    "semicolons": SEMICOLONS,
    "tabs": TABS,
    "dotted": DOTTED,
    "changed": CHANGED,
    "blanks": BLANKS,
    "numbered": NUMBERED,
    "own_names": OWN_NAMES,
}
"""What a declaration is written for, by the name of the feed."""
REFUSED: Mapping[str, tuple[bytes, str]] = {
    "latin": ("id,stra\xdfe\n1,a\n".encode("latin-1"), "not UTF-8"),
    "latin_rows": ("id,ort\n1,K\xf6ln\n".encode("latin-1"), "not UTF-8"),
    "no_header": (
        b"1,ada@mail.example,2026-01-01\n2,b@mail.example,2026-01-02\n",
        "holds numbers, dates or addresses",
    ),
    "empty_file": (b"", "an empty file"),
    "ragged": (b"id,secret\n1,hunter2,x\n", "a ragged row"),
    "open_quote": (b'id,secret\n1,"hunter2\n', "a quote that is never closed"),
    "unnamed": (b"id,,x,\n1,2,3,4\n", "repeated column"),
    "header_only": (b"id,amount,day\n", "there is no row"),
    "separator_line": (b"sep=;\nno;amount\n1;12,50\n", "found 'sep=;' in line 1"),
    "preamble": (
        b'"Data Source","Some Indicators",\n\n"Last Updated Date","2026-07-01",\n\n'
        b'"Country","Code","1960","1961"\n"Aruba","ABW","54208","55434"\n'
        b'"Angola","AGO","5454933","5531472"\n',
        "a ragged row",
    ),
    "title": (b"Sales: Q1, all\nno;amount\n1;12,50\n2;7,00\n", "a ragged row"),
    "repeated_header": (b"name,city\nAda,Ely\nname,city\nBob,Rye\n", "again in row 2"),
}
"""Files that are rejected, and the message."""


def put(folder: Path, name: str, text: str | bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    content = text if isinstance(text, bytes) else text.encode()
    path = folder / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path
