"""The pinned jars; setup and `doctor` check their hashes."""

from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path

from lakehouse.errors import SetupError
from lakehouse.iceberg.catalog.iceberg_release import spark_line
from lakehouse.settings import Settings

NEXT_STEP = "Run `lakehouse setup`, which fetches it."


@dataclass(frozen=True)
class Jar:
    """One jar, pinned to what is in it."""

    coordinate: str
    """As Maven writes it: `group:artifact:version`."""
    sha256: str

    @property
    def file_name(self) -> str:
        """Name of the file, as Spark's resolver gives it."""
        group, artifact, version = self.coordinate.split(":")
        return f"{group}_{artifact}-{version}.jar"


_SQLITE = Jar(
    "org.xerial:sqlite-jdbc:3.54.1.0",
    "f8dce420a6016278497f4f0560f65602b9db858de141b541cf91a4644ebe4639",
)
_AWS = {
    "1.12.0": Jar(
        "org.apache.iceberg:iceberg-aws-bundle:1.12.0",
        "dd7e49ffa4ac9b215bed846581991259e3aec9bb2fa08d6cec029c46cd66d957",
    ),
    "1.7.1": Jar(
        "org.apache.iceberg:iceberg-aws-bundle:1.7.1",
        "5d7c0baf877ee4296c4f98425165484404af4227fb487f1847a3cb1a577dfc3b",
    ),
}
_RUNTIMES = {
    ("4.1", "1.12.0"): Jar(
        "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
        "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82",
    ),
    ("3.5", "1.12.0"): Jar(
        "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.12.0",
        "8dd8c90e54ed1a20f2461309d047a255ee56382eb7c0a46162b27a4936fd86dc",
    ),
    ("3.5", "1.7.1"): Jar(
        "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.7.1",
        "cdf7357865d8d91764e0f147a2d76bc3e1e2b8792ddc0d3be329b3d34aaf218c",
    ),
}
"""By the line of Spark and the version of Iceberg: 3.5 with 1.7.1 is what AWS Glue 5.0 runs."""
_S3A = {
    "4.1": (
        Jar(
            "org.apache.hadoop:hadoop-aws:3.4.2",
            "d2d24e6b715b5656b9d238bf13b6682a07e2004dd36aad74a73aeb854319f4d9",
        ),
        Jar(
            "software.amazon.awssdk:s3-transfer-manager:2.54.17",
            "7bef0ea4efd5e0860bab63e08317040951edb51b72a5be734284c28b8324ab87",
        ),
        Jar(
            "software.amazon.awssdk:apache-client:2.54.17",
            "0b00ae3d55c3d1213ca47b5651dc4c2a0080fc9b6192dde3d53c3da6c1811bcb",
        ),
    ),
    "3.5": (
        Jar(
            "org.apache.hadoop:hadoop-aws:3.3.4",
            "53f9ae03c681a30a50aa17524bd9790ab596b28481858e54efd989a826ed3a4a",
        ),
        Jar(
            "com.amazonaws:aws-java-sdk-core:1.12.262",
            "06fed99f929c389e168278c1b111aaf1afb270d07202fbbce92e73d1e4279678",
        ),
        Jar(
            "com.amazonaws:aws-java-sdk-s3:1.12.262",
            "a0cb7580178bc0d4d3558295a5bb890008478da8a6b3241989c71238b0ed3be5",
        ),
        Jar(
            "com.amazonaws:aws-java-sdk-kms:1.12.262",
            "c00f5ae7b334255f661d85512e7203af9523a04fb65d0c431c2eea2003ed8ae2",
        ),
        Jar(
            "com.amazonaws:aws-java-sdk-sts:1.12.262",
            "659f48d8ebc02025c5042cc4b925f62610e81f334498f1b9e7a271ce20ecbcae",
        ),
        Jar(
            "com.amazonaws:aws-java-sdk-dynamodb:1.12.262",
            "7af4ba06d0d9b3c2ab435089caecd0567810d203aa285f7aa72861f1964d442e",
        ),
        Jar(
            "com.amazonaws:jmespath-java:1.12.262",
            "9001ea993a45d82a2d3086edcbda8a40b4e012d049a70fbf071fd329c0fbd777",
        ),
    ),
}
"""S3 file systems by Spark version, with what the AWS bundle of Iceberg does not contain."""
_BLIND_TO_THE_CATALOG_FILE = ("1.7.1",)


def pinned(settings: Settings) -> tuple[Jar, ...]:
    """Return the jars for the installed Spark and the configured Iceberg; raises SetupError."""
    line, iceberg = spark_line(), settings.iceberg
    runtime = _RUNTIMES.get((line, iceberg))
    if runtime is None:
        pairs = ", ".join(f"{known} with {release}" for known, release in _RUNTIMES)
        raise SetupError(
            f"PySpark {line or '(none)'} is installed, and LAKEHOUSE_ICEBERG is {iceberg};"
            f" expected one of {pairs}.",
            next_step="Correct LAKEHOUSE_ICEBERG, or install another PySpark.",
        )
    if settings.deployment == "local" and not reads_catalog_file(iceberg):
        raise SetupError(
            f"LAKEHOUSE_ICEBERG is {iceberg}, and the catalog is the embedded one, of which that"
            " version finds no table that was created after Spark first read it; expected 1.12.0"
            " there.",
            next_step="Unset LAKEHOUSE_ICEBERG, or set LAKEHOUSE_DEPLOYMENT to aws.",
        )
    return runtime, _AWS[iceberg], _SQLITE, *(s3a() if settings.deployment == "aws" else ())


def s3a() -> tuple[Jar, ...]:
    """Return the jars by which the Spark that is installed reads files of a bucket."""
    return _S3A.get(spark_line() or "", ())


def reads_catalog_file(iceberg: str) -> bool:
    """Whether a version of Iceberg goes with the embedded catalog."""
    return iceberg not in _BLIND_TO_THE_CATALOG_FILE


def jar_dir(settings: Settings) -> Path:
    """Folder of the jars."""
    return settings.cache_dir / "jars"


def path(settings: Settings, jar: Jar) -> Path:
    """Where a jar is, whether it is there or not."""
    return jar_dir(settings) / jar.file_name


def require(settings: Settings, jars: tuple[Jar, ...] | None = None) -> None:
    """Raise SetupError for a missing jar."""
    for jar in pinned(settings) if jars is None else jars:
        if not path(settings, jar).is_file():
            raise SetupError(_missing(path(settings, jar)), next_step=NEXT_STEP)


def problem(jar: Jar, file: Path) -> str:
    """Return what is wrong with a jar; reads all of it."""
    if not file.is_file():
        return _missing(file)
    with file.open("rb") as content:
        digest = file_digest(content, "sha256").hexdigest()
    if digest == jar.sha256:
        return ""
    return f"The jar {file} has SHA-256 {digest}; expected {jar.sha256}."


def _missing(file: Path) -> str:
    return f"The jar {file} is missing."
