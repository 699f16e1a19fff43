package io.belfry.flink;

import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/** Makes the tables of a file, then prints the rows of each query, in a cluster inside this process. */
public final class Check {
    private Check() {}

    public static void main(String[] files) throws Exception {
        TableEnvironment flink = TableEnvironment.create(EnvironmentSettings.inStreamingMode());
        flink.getConfig().set("parallelism.default", "1");
        flink.getConfig().set("table.local-time-zone", "UTC");
        for (String statement : statements(files[0])) {
            flink.executeSql(statement);
        }
        for (String query : statements(files[1])) {
            try (CloseableIterator<Row> rows = flink.executeSql(query).collect()) {
                rows.forEachRemaining(row -> System.out.println("row " + row));
            }
        }
    }

    private static String[] statements(String file) throws Exception {
        return Files.readString(Path.of(file)).strip().split(";\\s*(\n|$)");
    }
}
