"""Local files whose permissions the JVM sets by itself, for the session of the tests.

Hadoop without its native library starts `chmod` for each file and folder that it makes: a fifth
of the processor's time of a test that writes a few rows.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CLASS = "lakehouse.testing.LocalFiles"
_SOURCE = """
package lakehouse.testing;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

public class LocalFiles extends LocalFileSystem {
    public LocalFiles() {
        super(new RawFiles());
    }

    public static class RawFiles extends RawLocalFileSystem {
        public void setPermission(Path path, FsPermission permission) throws IOException {
            if (permission.getStickyBit()) {
                super.setPermission(path, permission);
                return;
            }
            String symbols = permission.getUserAction().SYMBOL
                + permission.getGroupAction().SYMBOL
                + permission.getOtherAction().SYMBOL;
            Files.setPosixFilePermissions(
                pathToFile(path).toPath(), PosixFilePermissions.fromString(symbols)
            );
        }
    }
}
"""


def set_permissions_without_processes(spark: "SparkSession") -> None:
    """Let Hadoop in this session's JVM set the same permissions without a process for each."""
    jvm = spark.sparkContext._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(_SOURCE)
    local_files = compiler.getClassLoader().loadClass(_CLASS).newInstance()
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    root = jvm.java.net.URI("file:///")
    local_files.initialize(root, configuration)
    # As FileSystem.get finds what was opened before; a class loader of Spark's would not know it.
    file_system = jvm.java.lang.Class.forName("org.apache.hadoop.fs.FileSystem")
    for method in file_system.getDeclaredMethods():
        if method.getName() == "addFileSystemForTesting":
            method.setAccessible(True)
            arguments = spark.sparkContext._gateway.new_array(jvm.java.lang.Object, 3)
            arguments[0], arguments[1], arguments[2] = root, configuration, local_files
            method.invoke(None, arguments)
