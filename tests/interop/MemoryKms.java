import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.crypto.keytools.KeyToolkit;
import org.apache.parquet.crypto.keytools.KmsClient;

/** A key service as parquet-java's own tests have one: master keys from the configuration, keys wrapped by them as KeyToolkit does it. */
public class MemoryKms implements KmsClient {
  private Configuration configuration;

  public void initialize(Configuration configuration, String instance, String url, String token) {
    this.configuration = configuration;
  }

  public String wrapKey(byte[] key, String master) {
    return KeyToolkit.encryptKeyLocally(key, masterKey(master), master.getBytes(StandardCharsets.UTF_8));
  }

  public byte[] unwrapKey(String wrapped, String master) {
    return KeyToolkit.decryptKeyLocally(wrapped, masterKey(master), master.getBytes(StandardCharsets.UTF_8));
  }

  private byte[] masterKey(String id) {
    return Base64.getDecoder().decode(configuration.get("sbbf.test.master.key." + id));
  }
}
