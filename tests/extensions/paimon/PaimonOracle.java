import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.Decimal;
import org.apache.paimon.data.GenericMap;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.fileindex.FileIndexPredicate;
import org.apache.paimon.fs.Path;
import org.apache.paimon.fs.local.LocalFileIO;
import org.apache.paimon.io.DataFileMeta;
import org.apache.paimon.predicate.Predicate;
import org.apache.paimon.predicate.PredicateBuilder;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.schema.Schema;
import org.apache.paimon.schema.SchemaChange;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.FileStoreTableFactory;
import org.apache.paimon.table.Table;
import org.apache.paimon.table.sink.BatchTableCommit;
import org.apache.paimon.table.sink.BatchTableWrite;
import org.apache.paimon.table.sink.BatchWriteBuilder;
import org.apache.paimon.table.source.DataSplit;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.table.source.Split;
import org.apache.paimon.types.DataField;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DataTypes;
import org.apache.paimon.types.MapType;
import org.apache.paimon.types.RowType;

/**
 * Apache Paimon's Java library, asked from the outside. Reads commands from standard input, one a line, fields separated by tabs, and
 * answers each with one line: {@code ok}, a tab and the answer, or {@code error}, a tab and what was thrown.
 *
 * <pre>
 * make WAREHOUSE                             tables of many shapes; the answer is how many
 * orders WAREHOUSE                           the table of the repository's fixtures; the answer is its folder
 * container FILE COLUMN TYPE LITERAL...      1 for remain, 0 for skip, for each literal
 * query TABLE COLUMN LITERAL                 planned data files; ids of the rows that reach the reader; ids that pass the filter
 * commit TABLE FIRST COUNT STEP              write COUNT rows, ids from FIRST on in steps, into a table of (id BIGINT, s STRING)
 * </pre>
 *
 * A literal is written as Java's own types print it; a timestamp is {@code millis:nanos}, binary is hexadecimal, floats are their bits in
 * hexadecimal.
 */
public class PaimonOracle {

    public static void main(String[] args) throws Exception {
        java.io.BufferedReader in = new java.io.BufferedReader(new java.io.InputStreamReader(System.in, StandardCharsets.UTF_8));
        java.io.PrintStream out = new java.io.PrintStream(System.out, true, "UTF-8");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] f = line.split("\t", -1);
            try {
                out.println("ok\t" + answer(f));
            } catch (Throwable e) {
                out.println("error\t" + String.valueOf(e).replace('\n', ' ').replace('\t', ' '));
            }
        }
    }

    static String answer(String[] f) throws Exception {
        switch (f[0]) {
            case "make":
                return String.valueOf(make(f[1]));
            case "orders":
                return String.valueOf(orders(f[1]));
            case "container":
                return container(f);
            case "query":
                return query(f[1], f[2], f[3]);
            case "commit":
                return commit(f[1], Long.parseLong(f[2]), Integer.parseInt(f[3]), Integer.parseInt(f[4]));
            default:
                throw new IllegalArgumentException(f[0]);
        }
    }

    // ---------------------------------------------------------------- asking

    static String container(String[] f) throws Exception {
        DataType type = type(f[3]);
        String top = f[2].endsWith("]") ? f[2].substring(0, f[2].indexOf('[')) : f[2];
        RowType fileType =
                new RowType(
                        List.of(new DataField(0, top, top.equals(f[2]) ? type : new MapType(DataTypes.STRING(), type))));
        RowType asked = new RowType(List.of(new DataField(0, f[2], type)));
        byte[] bytes = Files.readAllBytes(Paths.get(f[1]));
        StringBuilder answer = new StringBuilder();
        for (int i = 4; i < f.length; i++) {
            Predicate predicate = new PredicateBuilder(asked).equal(0, literal(f[i], type));
            try (FileIndexPredicate index = new FileIndexPredicate(bytes, fileType)) {
                answer.append(index.testPredicate(predicate) ? '1' : '0');
            }
        }
        return answer.toString();
    }

    static String query(String path, String column, String text) throws Exception {
        FileStoreTable table = FileStoreTableFactory.create(LocalFileIO.create(), new Path(path));
        int at = table.rowType().getFieldIndex(column);
        int id = table.rowType().getFieldIndex("id");
        Predicate predicate = new PredicateBuilder(table.rowType()).equal(at, literal(text, table.rowType().getTypeAt(at)));
        ReadBuilder builder = table.newReadBuilder().withFilter(predicate);
        List<Split> splits = builder.newScan().plan().splits();
        TreeSet<String> planned = new TreeSet<>();
        for (Split split : splits) {
            for (DataFileMeta file : ((DataSplit) split).dataFiles()) {
                planned.add(file.fileName());
            }
        }
        TreeSet<Long> reached = new TreeSet<>();
        TreeSet<Long> passed = new TreeSet<>();
        try (RecordReader<InternalRow> reader = builder.newRead().createReader(splits)) {
            reader.forEachRemaining(
                    row -> {
                        reached.add(row.getLong(id));
                        if (predicate.test(row)) {
                            passed.add(row.getLong(id));
                        }
                    });
        }
        return planned + "\t" + reached + "\t" + passed;
    }

    static String commit(String path, long first, int count, int step) throws Exception {
        FileStoreTable table = FileStoreTableFactory.create(LocalFileIO.create(), new Path(path));
        List<GenericRow> rows = new ArrayList<>();
        for (long id = first; id < first + (long) count * step; id += step) {
            rows.add(GenericRow.of(id, BinaryString.fromString("value " + id)));
        }
        write(table, rows);
        return String.valueOf(table.snapshotManager().latestSnapshotId());
    }

    static DataType type(String text) {
        return org.apache.paimon.types.DataTypeJsonParser.parseAtomicTypeSQLString(text);
    }

    static Object literal(String text, DataType type) {
        switch (type.getTypeRoot()) {
            case CHAR:
            case VARCHAR:
                return BinaryString.fromString(text);
            case BINARY:
            case VARBINARY:
                byte[] bytes = new byte[text.length() / 2];
                for (int i = 0; i < bytes.length; i++) {
                    bytes[i] = (byte) Integer.parseInt(text.substring(2 * i, 2 * i + 2), 16);
                }
                return bytes;
            case TINYINT:
                return Byte.parseByte(text);
            case SMALLINT:
                return Short.parseShort(text);
            case INTEGER:
            case DATE:
            case TIME_WITHOUT_TIME_ZONE:
                return Integer.parseInt(text);
            case BIGINT:
                return Long.parseLong(text);
            case FLOAT:
                return Float.intBitsToFloat(Integer.parseUnsignedInt(text, 16));
            case DOUBLE:
                return Double.longBitsToDouble(Long.parseUnsignedLong(text, 16));
            case TIMESTAMP_WITHOUT_TIME_ZONE:
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                String[] parts = text.split(":");
                return Timestamp.fromEpochMillis(Long.parseLong(parts[0]), Integer.parseInt(parts[1]));
            default:
                throw new IllegalArgumentException(type.toString());
        }
    }

    // ---------------------------------------------------------------- making tables

    static Catalog catalog;
    static boolean near;

    static int make(String warehouse) throws Exception {
        catalog = CatalogFactory.createCatalog(CatalogContext.create(new Path(warehouse)));
        catalog.createDatabase("fx", true);
        int made = 0;
        for (String format : new String[] {"parquet", "orc", "avro"}) {
            made += types(format, "1 b") + types(format, "10 mb") + plain(format, "1 b") + plain(format, "10 mb");
        }
        for (String manifests : new String[] {"orc", "parquet", "avro"}) {
            try {
                made += manifestFormat(manifests);
            } catch (Exception e) {
                System.err.println("manifest.format " + manifests + ": " + e);
            }
        }
        near = false;
        return made + partitions() + evolved() + compacted();
    }

    static FileStoreTable create(String name, Map<String, DataType> columns, List<String> partitions, String... options) throws Exception {
        Schema.Builder schema = Schema.newBuilder().column("id", DataTypes.BIGINT().notNull());
        columns.forEach(schema::column);
        schema.partitionKeys(partitions);
        Map<String, String> all = new HashMap<>();
        all.put("bucket", "-1");
        all.put("write-only", "true");
        for (int i = 0; i < options.length; i += 2) {
            all.put(options[i], options[i + 1]);
        }
        schema.options(all);
        catalog.createTable(Identifier.create("fx", name), schema.build(), true);
        return (FileStoreTable) catalog.getTable(Identifier.create("fx", name));
    }

    static void write(Table table, List<GenericRow> rows) throws Exception {
        BatchWriteBuilder builder = table.newBatchWriteBuilder();
        try (BatchTableWrite write = builder.newWrite();
                BatchTableCommit commit = builder.newCommit()) {
            for (GenericRow row : rows) {
                write.write(row);
            }
            commit.commit(write.prepareCommit());
        }
    }

    /** Every type with a hash that the format takes; the values are the seed's, with nulls, repeats and corners. */
    static int types(String format, String threshold) throws Exception {
        near = format.equals("orc");
        Map<String, DataType> columns = new LinkedHashMap<>();
        columns.put("c_char", DataTypes.CHAR(7));
        columns.put("c_varchar", DataTypes.VARCHAR(90));
        columns.put("c_string", DataTypes.STRING());
        columns.put("c_bytes", DataTypes.BYTES());
        if (!format.equals("orc")) {
            columns.put("c_binary", DataTypes.BINARY(5));
        }
        columns.put("c_tinyint", DataTypes.TINYINT());
        columns.put("c_smallint", DataTypes.SMALLINT());
        columns.put("c_int", DataTypes.INT());
        columns.put("c_bigint", DataTypes.BIGINT());
        columns.put("c_float", DataTypes.FLOAT());
        columns.put("c_double", DataTypes.DOUBLE());
        columns.put("c_date", DataTypes.DATE());
        columns.put("c_time", DataTypes.TIME(3));
        for (int precision = 0; precision <= (format.equals("avro") ? 6 : 9); precision++) {
            columns.put("c_ts" + precision, DataTypes.TIMESTAMP(precision));
        }
        columns.put("c_ltz1", DataTypes.TIMESTAMP_WITH_LOCAL_TIME_ZONE(1));
        columns.put("c_ltz5", DataTypes.TIMESTAMP_WITH_LOCAL_TIME_ZONE(5));
        columns.put("m_int", DataTypes.MAP(DataTypes.STRING(), DataTypes.INT()));
        columns.put("m_date", DataTypes.MAP(DataTypes.VARCHAR(9), DataTypes.DATE()));
        columns.put("m_double", DataTypes.MAP(DataTypes.STRING(), DataTypes.DOUBLE()));
        columns.put("m_ts", DataTypes.MAP(DataTypes.STRING(), DataTypes.TIMESTAMP(6)));
        StringBuilder names = new StringBuilder("id");
        List<String> options = new ArrayList<>(List.of("file.format", format, "file-index.in-manifest-threshold", threshold));
        for (String name : columns.keySet()) {
            for (String indexed : name.startsWith("m_") ? new String[] {name + "[a]", name + "[key]"} : new String[] {name}) {
                names.append(',').append(indexed);
                options.addAll(List.of("file-index.bloom-filter." + indexed + ".items", String.valueOf(20 + indexed.hashCode() % 17)));
                options.addAll(List.of("file-index.bloom-filter." + indexed + ".fpp", name.length() % 2 == 0 ? "0.03" : "0.2"));
            }
        }
        options.addAll(List.of("file-index.bloom-filter.columns", names.toString()));
        String name = "types_" + format + (threshold.equals("1 b") ? "_file" : "_embedded");
        FileStoreTable table = create(name, columns, List.of(), options.toArray(new String[0]));
        for (int commit = 0; commit < 2; commit++) {
            List<GenericRow> rows = new ArrayList<>();
            for (int i = 0; i < 37; i++) {
                Object[] values = new Object[columns.size() + 1];
                values[0] = 1000L * commit + i;
                int at = 1;
                for (DataType type : columns.values()) {
                    values[at++] = (i + at) % 7 == 0 ? null : value(type, commit * 40 + i);
                }
                rows.add(GenericRow.of(values));
            }
            write(table, rows);
        }
        return 1;
    }

    static Object value(DataType type, int seed) {
        long mixed = (seed + 1) * 0x9E3779B97F4A7C15L;
        boolean corner = seed % 11 == 3;
        switch (type.getTypeRoot()) {
            case CHAR:
                return BinaryString.fromString("c" + seed % 20);
            case VARCHAR:
                return BinaryString.fromString(corner ? "" : "välue \uD83D\uDE00 " + Long.toHexString(mixed).substring(seed % 8));
            case BINARY:
                return new byte[] {(byte) mixed, (byte) (mixed >> 8), 0, (byte) seed, 1};
            case VARBINARY:
                return corner ? new byte[0] : Long.toHexString(mixed).getBytes(StandardCharsets.UTF_8);
            case TINYINT:
                return (byte) mixed;
            case SMALLINT:
                return (short) (mixed >> 9);
            case INTEGER:
                return corner ? Integer.MIN_VALUE : (int) (mixed >> 17);
            case BIGINT:
                return corner ? Long.MAX_VALUE : mixed;
            case FLOAT:
                return corner ? Float.NaN : seed % 5 == 1 ? -0.0f : Float.intBitsToFloat((int) (mixed >> 20));
            case DOUBLE:
                return corner ? Double.NaN : seed % 5 == 1 ? -0.0 : Double.longBitsToDouble(mixed);
            case DATE:
                return corner ? -719162 : (int) (mixed >> 45);
            case TIME_WITHOUT_TIME_ZONE:
                return (int) Math.floorMod(mixed, 86_400_000L);
            case TIMESTAMP_WITHOUT_TIME_ZONE:
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                // the corners are the years 1 and 9999, nearer ones where the format's other readers count in nanoseconds
                long first = near ? -8_000_000_000_000L : -62_135_596_800_000L;
                long last = near ? 8_000_000_000_000L : 253_402_300_799_000L;
                long millis = corner ? first + seed : seed % 11 == 5 ? last - seed : mixed >> 23;
                int precision = org.apache.paimon.types.DataTypeChecks.getPrecision(type);
                long step = (long) Math.pow(10, 9 - precision);
                long nanos = Math.floorMod(mixed >> 5, 1_000_000_000L) / step * step;
                return Timestamp.fromEpochMillis(
                        Math.floorDiv(millis, 1000L) * 1000 + nanos / 1_000_000, (int) (nanos % 1_000_000));
            case MAP:
                Map<Object, Object> entries = new HashMap<>();
                DataType valueType = ((MapType) type).getValueType();
                if (seed % 3 != 0) {
                    entries.put(BinaryString.fromString("a"), seed % 4 == 0 ? null : value(valueType, seed));
                }
                if (seed % 2 == 0) {
                    entries.put(BinaryString.fromString("key"), value(valueType, seed + 5));
                }
                return new GenericMap(entries);
            case DECIMAL:
                int scale = org.apache.paimon.types.DataTypeChecks.getScale(type);
                return Decimal.fromBigDecimal(
                        BigDecimal.valueOf(mixed % 100_000, scale), org.apache.paimon.types.DataTypeChecks.getPrecision(type), scale);
            case BOOLEAN:
                return seed % 2 == 0;
            default:
                throw new IllegalArgumentException(type.toString());
        }
    }

    /** No index at all: what an index is added to. */
    static int plain(String format, String threshold) throws Exception {
        Map<String, DataType> columns = new LinkedHashMap<>();
        columns.put("s", DataTypes.STRING());
        String name = "plain_" + format + (threshold.equals("1 b") ? "_file" : "_embedded");
        FileStoreTable table =
                create(name, columns, List.of(), "file.format", format, "file-index.in-manifest-threshold", threshold);
        String path = table.location().toString();
        commit(path, 0, 500, 3);
        commit(path, 1, 500, 3);
        commit(path, 2, 500, 3);
        return 1;
    }

    /** Four commits whose ids and days lie between one another: two without index, one with it in the manifest, one in a file. */
    static String orders(String warehouse) throws Exception {
        catalog = CatalogFactory.createCatalog(CatalogContext.create(new Path(warehouse)));
        catalog.createDatabase("fx", true);
        Map<String, DataType> columns = new LinkedHashMap<>();
        columns.put("customer", DataTypes.STRING());
        columns.put("day", DataTypes.DATE());
        Table table = create("orders", columns, List.of());
        Identifier name = Identifier.create("fx", "orders");
        String option = "file-index.bloom-filter.customer.items";
        for (int commit = 0; commit < 4; commit++) {
            if (commit == 2) {
                SchemaChange index = SchemaChange.setOption("file-index.bloom-filter.columns", "customer");
                catalog.alterTable(name, List.of(index, SchemaChange.setOption(option, "250")), false);
            } else if (commit == 3) {
                catalog.alterTable(name, SchemaChange.setOption(option, "1000"), false);
            }
            List<GenericRow> rows = new ArrayList<>();
            for (int i = 0; i < 250; i++) {
                long id = 4L * i + commit;
                String customer = String.format("%08x", (int) ((id + 1) * 0x9E3779B9L));
                rows.add(GenericRow.of(id, BinaryString.fromString(customer), 19_782 + (int) (id % 60)));
            }
            write(catalog.getTable(name), rows);
        }
        return table.name();
    }

    static int manifestFormat(String format) throws Exception {
        Map<String, DataType> columns = new LinkedHashMap<>();
        columns.put("s", DataTypes.STRING());
        FileStoreTable table =
                create("manifests_" + format, columns, List.of(), "manifest.format", format, "file-index.bloom-filter.columns", "s",
                        "file-index.bloom-filter.s.items", "60");
        commit(table.location().toString(), 0, 50, 1);
        commit(table.location().toString(), 100, 50, 1);
        return 1;
    }

    static int partitions() throws Exception {
        DataType[] types = {
            DataTypes.STRING(), DataTypes.INT(), DataTypes.BIGINT(), DataTypes.SMALLINT(), DataTypes.DATE(), DataTypes.BOOLEAN(),
            DataTypes.DECIMAL(9, 2), DataTypes.DECIMAL(30, 3), DataTypes.DOUBLE(), DataTypes.FLOAT(), DataTypes.TIMESTAMP(3),
            DataTypes.TIMESTAMP(6), DataTypes.CHAR(3), DataTypes.VARCHAR(60)
        };
        int made = 0;
        for (int t = 0; t < types.length; t++) {
            Map<String, DataType> columns = new LinkedHashMap<>();
            columns.put("pt", types[t]);
            columns.put("p=2", DataTypes.STRING());
            columns.put("s", DataTypes.STRING());
            FileStoreTable table = create("partitions_" + t, columns, List.of("pt", "p=2"));
            List<GenericRow> rows = new ArrayList<>();
            for (int i = 0; i < 12; i++) {
                Object partition = i == 11 ? null : value(types[t], i % 4);
                rows.add(
                        GenericRow.of(
                                (long) i, partition, BinaryString.fromString(i % 3 == 0 ? " " : "a/b:" + i % 3),
                                BinaryString.fromString("value " + i)));
            }
            try {
                write(table, rows);
                made++;
            } catch (Exception e) {
                System.err.println("partitioned by " + types[t] + ": " + e);
                catalog.dropTable(Identifier.create("fx", "partitions_" + t), true);
            }
        }
        return made;
    }

    /** Columns renamed, retyped and added between commits. */
    static int evolved() throws Exception {
        Map<String, DataType> columns = new LinkedHashMap<>();
        columns.put("s", DataTypes.STRING());
        columns.put("n", DataTypes.INT());
        columns.put("v", DataTypes.VARCHAR(5));
        FileStoreTable table =
                create("evolved", columns, List.of(), "file-index.bloom-filter.columns", "s,n,v", "file-index.bloom-filter.s.items", "50",
                        "file-index.bloom-filter.n.items", "50", "file-index.bloom-filter.v.items", "50");
        List<GenericRow> rows = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            rows.add(GenericRow.of((long) i, BinaryString.fromString("value " + i), 7 * i, BinaryString.fromString("v" + i)));
        }
        write(table, rows);
        catalog.alterTable(
                Identifier.create("fx", "evolved"),
                List.of(
                        SchemaChange.setOption("file-index.bloom-filter.columns", "renamed,n,v,extra"),
                        SchemaChange.setOption("file-index.bloom-filter.renamed.items", "50"),
                        SchemaChange.setOption("file-index.bloom-filter.extra.items", "50"),
                        SchemaChange.removeOption("file-index.bloom-filter.s.items"),
                        SchemaChange.renameColumn("s", "renamed"),
                        SchemaChange.updateColumnType("n", DataTypes.BIGINT()),
                        SchemaChange.updateColumnType("v", DataTypes.STRING()),
                        SchemaChange.addColumn("extra", DataTypes.STRING())),
                false);
        Table today = catalog.getTable(Identifier.create("fx", "evolved"));
        rows.clear();
        for (int i = 20; i < 40; i++) {
            rows.add(
                    GenericRow.of(
                            (long) i, BinaryString.fromString("value " + i), 7L * i, BinaryString.fromString("v" + i),
                            BinaryString.fromString("x" + i)));
        }
        write(today, rows);
        return 1;
    }

    /** Many commits, so that manifests were merged and files compacted away. */
    static int compacted() throws Exception {
        Map<String, DataType> columns = new LinkedHashMap<>();
        columns.put("s", DataTypes.STRING());
        FileStoreTable table =
                create("compacted", columns, List.of(), "manifest.merge-min-count", "2", "compaction.min.file-num", "3",
                        "compaction.max.file-num", "4", "write-only", "false", "bucket", "1", "bucket-key", "id",
                        "file-index.bloom-filter.columns", "s", "file-index.bloom-filter.s.items", "50");
        for (int i = 0; i < 12; i++) {
            commit(table.location().toString(), 10 * i, 10, 1);
        }
        return 1;
    }
}
