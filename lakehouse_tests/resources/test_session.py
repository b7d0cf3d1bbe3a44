"""The session, and the two catalogs on it."""

from lakehouse.iceberg.engine import Engine


def test_both_catalogs_stage_on_a_branch_and_publish_it(engine: Engine) -> None:
    table = engine.catalog.sql_name("silver.fruits")
    engine.sql(f"CREATE NAMESPACE {engine.catalog.sql_name('silver')}")
    engine.sql(f"CREATE TABLE {table} (id BIGINT, fruit STRING) USING iceberg PARTITIONED BY (bucket(4, id))")
    engine.sql(f"ALTER TABLE {table} CREATE BRANCH audit_1")
    engine.sql(f"INSERT INTO {engine.catalog.sql_name('silver.fruits', branch='audit_1')} VALUES (1, 'Fig')")
    engine.sql(f"CALL {engine.catalog.name}.system.fast_forward('silver.fruits', 'main', 'audit_1')")
    engine.sql(f"ALTER TABLE {table} DROP BRANCH audit_1")
    engine.sql(
        f"MERGE INTO {table} t USING (SELECT 1L AS id, 'Quince' AS fruit) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )

    assert engine.sql(f"SELECT id, fruit FROM {table}").collect() == [(1, "Quince")]
    loaded = engine.catalog.load("silver.fruits")
    assert loaded.scan().to_arrow().to_pylist() == [{"id": 1, "fruit": "Quince"}]
    assert list(loaded.metadata.refs) == ["main"]
    assert engine.catalog.tables() == ["silver.fruits"]
