import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.Map;
import org.apache.parquet.HadoopReadOptions;
import org.apache.parquet.column.values.bloomfilter.BloomFilter;
import org.apache.parquet.crypto.ColumnDecryptionProperties;
import org.apache.parquet.crypto.FileDecryptionProperties;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.parquet.hadoop.metadata.ColumnPath;
import org.apache.parquet.io.LocalInputFile;
import org.apache.parquet.io.api.Binary;

/** A reader for `sbbf conformance run`: the filters of parquet-java, queried for plain bytes. Argument: the file of questions. */
public class ConformanceReader {
  public static void main(String[] arguments) throws Exception {
    ObjectMapper mapper = new ObjectMapper();
    for (String line : Files.readAllLines(Path.of(arguments[0]))) {
      JsonNode question = mapper.readTree(line);
      String answer;
      try {
        answer = answer(question, question.get("file").asText().contains("/encrypted/"));
      } catch (Exception | OutOfMemoryError error) {
        System.err.println(question.get("file").asText() + ": " + error);
        answer = "cannot say";
      }
      System.out.println(answer);
    }
  }

  static String answer(JsonNode question, boolean encrypted) throws Exception {
    String[] path = new String[question.get("path").size()];
    for (int at = 0; at < path.length; at++) path[at] = question.get("path").get(at).asText();
    ColumnPath column = ColumnPath.get(path);
    HadoopReadOptions.Builder options = HadoopReadOptions.builder(new org.apache.hadoop.conf.Configuration());
    if (encrypted) {
      ColumnPath encryptedColumn = ColumnPath.get("v");
      ColumnDecryptionProperties key =
          ColumnDecryptionProperties.builder(encryptedColumn).withKey("1234567890123450".getBytes()).build();
      options.withDecryption(FileDecryptionProperties.builder()
          .withFooterKey("0123456789012345".getBytes())
          .withColumnKeys(Map.of(encryptedColumn, key))
          .build());
    }
    Binary plain = Binary.fromConstantByteArray(HexFormat.of().parseHex(question.get("plain").asText()));
    boolean hasFilters = true;
    try (ParquetFileReader reader = ParquetFileReader.open(new LocalInputFile(Path.of(question.get("file").asText())), options.build())) {
      for (BlockMetaData block : reader.getRowGroups()) {
        for (ColumnChunkMetaData chunk : block.getColumns()) {
          if (!chunk.getPath().equals(column)) continue;
          BloomFilter filter = reader.getBloomFilterDataReader(block).readBloomFilter(chunk);
          if (filter == null) hasFilters = false;
          else if (filter.findHash(filter.hash(plain))) return "maybe";
        }
      }
    }
    return hasFilters ? "absent" : "maybe";
  }
}
