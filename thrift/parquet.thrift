/*
 * The metadata of a Parquet file, as a tool for Bloom filters needs to know it.
 *
 * Names, field ids, types and what is required or optional are facts of the Apache Parquet format: parquet-format
 * 2.13.0 (June 2026) and what its main branch had added by August 2026 (ALP, INT96_TIMESTAMP_ORDER).
 * The comments are ours, and so is the order of the definitions. They say what the structure means to someone who
 * reads, checks, adds or removes a Bloom filter; for everything else, read the specification.
 *
 * On the wire everything here is in Thrift's compact protocol. What the Python code made from it does not do:
 *   - keep what it does not know. Unknown fields are dropped, and a string that is not UTF-8 comes out altered, so a
 *     footer that is decoded and encoded again need not be the same footer;
 *   - name enum values. They arrive as plain integers; one that is not listed here is simply newer than this file;
 *   - check "required" when it reads. A missing field is None;
 *   - complain of a field with another type than it has here. Such a field is skipped, and None.
 *
 * The file also knows what the first drafts of the Bloom filter specification (2018-10 to 2019-07, in no release)
 * put on the wire. Those definitions are marked "draft". Nothing of them collides with ids in use today.
 */

namespace py sbbf_tool.parquet.idl


// ---------------------------------------------------------------------------------------------------------------
// The schema
// ---------------------------------------------------------------------------------------------------------------

/** How a value is stored. This alone decides which bytes go into a Bloom filter's hash; see BloomFilterHash. */
enum Type {
  BOOLEAN = 0;               // two possible values: a filter tells next to nothing
  INT32 = 1;
  INT64 = 2;
  INT96 = 3;                 // 12 bytes, the timestamps of old Impala, Hive and Spark; deprecated
  FLOAT = 4;                 // hashed by its bits: 0.0 and -0.0 differ, and so do the many NaNs
  DOUBLE = 5;                // likewise
  BYTE_ARRAY = 6;
  FIXED_LEN_BYTE_ARRAY = 7;  // SchemaElement.type_length bytes each
}

/** What the bytes mean, in the old way: a mere name. LogicalType came after it, and writers often set both. */
enum ConvertedType {
  UTF8 = 0;
  MAP = 1;
  MAP_KEY_VALUE = 2;         // written by mistake where MAP belongs, by some old writers
  LIST = 3;
  ENUM = 4;
  DECIMAL = 5;               // scale and precision are in the SchemaElement
  DATE = 6;
  TIME_MILLIS = 7;
  TIME_MICROS = 8;
  TIMESTAMP_MILLIS = 9;
  TIMESTAMP_MICROS = 10;
  UINT_8 = 11;               // up to 32 bits stored, and so hashed, as the four bytes of an INT32
  UINT_16 = 12;
  UINT_32 = 13;
  UINT_64 = 14;
  INT_8 = 15;
  INT_16 = 16;
  INT_32 = 17;
  INT_64 = 18;
  JSON = 19;
  BSON = 20;
  INTERVAL = 21;             // FIXED_LEN_BYTE_ARRAY(12): months, days, milliseconds
}

enum FieldRepetitionType {
  REQUIRED = 0;
  OPTIONAL = 1;              // a null never enters a filter
  REPEATED = 2;              // every element enters it, so a filter may hold more values than the row group has rows
}

// Logical types without parameters are empty structs: only which one is set counts.

struct StringType {}         // BYTE_ARRAY
struct UUIDType {}           // FIXED_LEN_BYTE_ARRAY(16), big endian as it is read aloud
struct MapType {}            // a group
struct ListType {}           // a group
struct EnumType {}           // BYTE_ARRAY
struct DateType {}           // INT32, days since 1970-01-01
struct Float16Type {}        // FIXED_LEN_BYTE_ARRAY(2)
struct NullType {}           // every value is null: nothing to put into a filter
struct JsonType {}           // BYTE_ARRAY
struct BsonType {}           // BYTE_ARRAY

/**
 * One number has several forms: the physical type, and in a BYTE_ARRAY also leading sign bytes, change the bytes and
 * with them the hash. Look up a decimal in the form that the writer stored.
 */
struct DecimalType {
  1: required i32 scale
  2: required i32 precision
}

struct MilliSeconds {}
struct MicroSeconds {}
struct NanoSeconds {}

/** The same instant in another unit is another integer: a value looked up must be in the column's own unit. */
union TimeUnit {
  1: MilliSeconds MILLIS
  2: MicroSeconds MICROS
  3: NanoSeconds NANOS
}

/** INT64 since 1970-01-01 00:00, of UTC if so marked, else of no particular time zone. */
struct TimestampType {
  1: required bool isAdjustedToUTC
  2: required TimeUnit unit
}

/** INT32 for milliseconds, INT64 for the finer units, since midnight. */
struct TimeType {
  1: required bool isAdjustedToUTC
  2: required TimeUnit unit
}

/** INT32, and INT64 for 64 bits. An unsigned value is hashed as the signed one with the same bits. */
struct IntType {
  1: required i8 bitWidth
  2: required bool isSigned
}

/** A group of two binary leaves, metadata and value, and of typed leaves if shredded. Only those merit a filter. */
struct VariantType {
  1: optional i8 specification_version
}

/** BYTE_ARRAY of well-known binary (WKB). The same shape has many encodings, and so many hashes. */
struct GeometryType {}

/** As GeometryType, with edges that follow the curved surface of the earth. */
struct GeographyType {}

/** What the bytes mean. Id 9 is kept free for INTERVAL, which so far exists only as a ConvertedType. */
union LogicalType {
  1:  StringType STRING
  2:  MapType MAP
  3:  ListType LIST
  4:  EnumType ENUM
  5:  DecimalType DECIMAL
  6:  DateType DATE
  7:  TimeType TIME
  8:  TimestampType TIMESTAMP
  10: IntType INTEGER
  11: NullType UNKNOWN
  12: JsonType JSON
  13: BsonType BSON
  14: UUIDType UUID
  15: Float16Type FLOAT16
  16: VariantType VARIANT
  17: GeometryType GEOMETRY
  18: GeographyType GEOGRAPHY
}

/**
 * A node of the schema tree. FileMetaData.schema lists the nodes depth first, root at the front; its leaves, in that
 * order, are the columns of every row group, and their number in that order is the column ordinal.
 */
struct SchemaElement {
  1: optional Type type                            // set on a leaf, and only there
  2: optional i32 type_length                      // bytes per value of a FIXED_LEN_BYTE_ARRAY
  3: optional FieldRepetitionType repetition_type  // not on the root
  4: required string name                          // may contain dots: compare paths as lists, never joined
  5: optional i32 num_children                     // set on a group, and only there
  6: optional ConvertedType converted_type
  7: optional i32 scale                            // of a ConvertedType DECIMAL
  8: optional i32 precision
  9: optional i32 field_id                         // a table format's own id for the column (Iceberg, for one)
  10: optional LogicalType logicalType
}


// ---------------------------------------------------------------------------------------------------------------
// Statistics: all optional, none proven. Useful to size a filter, or to see that none is needed
// ---------------------------------------------------------------------------------------------------------------

/** Bounds and counts of a column chunk. Bounds are values in PLAIN form, BYTE_ARRAY without its length. */
struct Statistics {
  1: optional binary max             // the old pair, in signed order whatever the type: do not rely on it
  2: optional binary min
  3: optional i64 null_count         // absent is unknown, not zero
  5: optional binary max_value       // in the order given by FileMetaData.column_orders
  6: optional binary min_value       // either may be cut short, and is then no value of the column
}

struct TypeDefinedOrder {}
struct IEEE754TotalOrder {}
struct Int96TimestampOrder {}

/** How min_value and max_value of a column compare. No member that we know: the bounds mean nothing to us. */
union ColumnOrder {
  1: TypeDefinedOrder TYPE_ORDER
  2: IEEE754TotalOrder IEEE_754_TOTAL_ORDER
  3: Int96TimestampOrder INT96_TIMESTAMP_ORDER
}


// ---------------------------------------------------------------------------------------------------------------
// The Bloom filter
// ---------------------------------------------------------------------------------------------------------------

/** Blocks of 256 bits, eight words of 32; a value sets one bit in each word of one block. */
struct SplitBlockAlgorithm {}

union BloomFilterAlgorithm {
  1: SplitBlockAlgorithm BLOCK
}

/** XXH64 with seed 0. */
struct XxHash {}

/**
 * What is hashed: the value's PLAIN bytes for its physical type, a BYTE_ARRAY without the length before it.
 *
 * Field 1 has had two meanings. In the drafts of 2018-10 to 2019-07 it was MURMUR3; since 2019-07 it is XXHASH. Both
 * are empty structs under one id, and names do not travel, so the bytes of the two are the same: this union cannot
 * say which hash a draft's filter was filled with. The column's own values can.
 */
union BloomFilterHash {
  1: XxHash XXHASH
}

struct Uncompressed {}

union BloomFilterCompression {
  1: Uncompressed UNCOMPRESSED
}

/**
 * Stands at ColumnMetaData.bloom_filter_offset, bare, with numBytes of bitset right behind it. No PageHeader is around
 * it, and no checksum anywhere: a filter can only be verified against the values of its column.
 *
 * 15 bytes for a bitset of 32, up to 19 for one of 128 MiB:
 *     15 <zigzag varint of numBytes>  1c 1c 00 00  1c 1c 00 00  1c 1c 00 00  00
 */
struct BloomFilterHeader {
  1: required i32 numBytes                        // of the bitset. A multiple of 32, though 1000 has been seen
  2: required BloomFilterAlgorithm algorithm      // all three unions have one member each. None that we know set:
  3: required BloomFilterHash hash                // the filter is newer than we are, and must not be used to
  4: required BloomFilterCompression compression  // rule anything out
}

/**
 * Draft. What BloomFilterHeader was called when filters were to be pages, with the same layout on the wire. The field
 * compression came four weeks after the name had gone. A header without it, under either name, is therefore a draft's:
 * its filter was filled with Murmur3 or XXH64, and its blocks may be chosen in another way than today.
 */
struct BloomFilterPageHeader {
  1: required i32 numBytes
  2: required BloomFilterAlgorithm algorithm
  3: required BloomFilterHash hash
  4: optional BloomFilterCompression compression
}


// ---------------------------------------------------------------------------------------------------------------
// Pages: what must be read to learn the values of a column chunk
// ---------------------------------------------------------------------------------------------------------------

enum Encoding {
  PLAIN = 0;
  // 1 was GROUP_VAR_INT, which nobody wrote
  PLAIN_DICTIONARY = 2;      // the old name: of a dictionary page it means PLAIN, of a data page RLE_DICTIONARY
  RLE = 3;
  BIT_PACKED = 4;            // levels of very old files
  DELTA_BINARY_PACKED = 5;
  DELTA_LENGTH_BYTE_ARRAY = 6;
  DELTA_BYTE_ARRAY = 7;
  RLE_DICTIONARY = 8;
  BYTE_STREAM_SPLIT = 9;
  ALP = 10;                  // preview
}

enum CompressionCodec {
  UNCOMPRESSED = 0;
  SNAPPY = 1;
  GZIP = 2;
  LZO = 3;
  BROTLI = 4;
  LZ4 = 5;                   // in Hadoop's framing, which some writers left out; LZ4_RAW ended the confusion
  ZSTD = 6;
  LZ4_RAW = 7;
}

enum PageType {
  DATA_PAGE = 0;
  INDEX_PAGE = 1;            // reserved; no writer is known
  DICTIONARY_PAGE = 2;
  DATA_PAGE_V2 = 3;
  BLOOM_FILTER_PAGE = 4;     // draft; free in the format of today
}

struct DataPageHeader {
  1: required i32 num_values                    // nulls included
  2: required Encoding encoding
  3: required Encoding definition_level_encoding
  4: required Encoding repetition_level_encoding
}

/** One per column chunk at most, before its data pages. If those all use it, the chunk has no value but these. */
struct DictionaryPageHeader {
  1: required i32 num_values
  2: required Encoding encoding
}

/** Levels stand uncompressed before the values. */
struct DataPageHeaderV2 {
  1: required i32 num_values
  2: required i32 num_nulls
  3: required i32 num_rows
  4: required Encoding encoding
  5: required i32 definition_levels_byte_length
  6: required i32 repetition_levels_byte_length
  7: optional bool is_compressed = true         // the values; the levels never are
}

struct PageHeader {
  1: required PageType type                     // which of the headers below is set
  2: required i32 uncompressed_page_size        // this header not counted, here and below
  3: required i32 compressed_page_size
  4: optional i32 crc                           // CRC-32 of the page as it is stored
  5: optional DataPageHeader data_page_header
  7: optional DictionaryPageHeader dictionary_page_header
  8: optional DataPageHeaderV2 data_page_header_v2
  9: optional BloomFilterPageHeader bloom_filter_page_header  // draft; no writer is known to have used it
}


// ---------------------------------------------------------------------------------------------------------------
// Column chunks and row groups
// ---------------------------------------------------------------------------------------------------------------

struct KeyValue {
  1: required string key
  2: optional string value
}

/** How many pages of a kind have which encoding: shows whether a chunk is dictionary-encoded throughout. */
struct PageEncodingStats {
  1: required PageType page_type
  2: required Encoding encoding
  3: required i32 count
}

/** All offsets count from the start of the file. Adding a filter changes fields 14 and 15, and nothing else here. */
struct ColumnMetaData {
  1: required Type type
  2: required list<Encoding> encodings
  3: required list<string> path_in_schema       // names from below the root down to the leaf
  4: required CompressionCodec codec
  5: required i64 num_values                    // nulls included
  6: required i64 total_uncompressed_size       // both sizes are of the pages; a filter is not part of them
  7: required i64 total_compressed_size
  8: optional list<KeyValue> key_value_metadata
  9: required i64 data_page_offset
  10: optional i64 index_page_offset
  11: optional i64 dictionary_page_offset
  12: optional Statistics statistics
  13: optional list<PageEncodingStats> encoding_stats
  14: optional i64 bloom_filter_offset          // absent: no filter. Anywhere in the file
  15: optional i32 bloom_filter_length          // header and bitset (if encrypted: both modules). New in 2.10
}

struct EncryptionWithFooterKey {}

struct EncryptionWithColumnKey {
  1: required list<string> path_in_schema
  2: optional binary key_metadata               // tells a key service which key it is; ours to pass on, not to read
}

union ColumnCryptoMetaData {
  1: EncryptionWithFooterKey ENCRYPTION_WITH_FOOTER_KEY
  2: EncryptionWithColumnKey ENCRYPTION_WITH_COLUMN_KEY
}

struct ColumnChunk {
  1: optional string file_path                  // set in summary files (_metadata): offsets are then of that other file
  2: required i64 file_offset = 0               // deprecated and often wrong: no use to anyone
  3: optional ColumnMetaData meta_data          // absent if the column has its own key and the footer is encrypted
  4: optional i64 offset_index_offset
  5: optional i32 offset_index_length
  6: optional i64 column_index_offset
  7: optional i32 column_index_length
  8: optional ColumnCryptoMetaData crypto_metadata  // set: the column is encrypted, and so must its filter be
  9: optional binary encrypted_column_metadata  // the full ColumnMetaData, fields 14 and 15 with it, under the key
}

struct RowGroup {
  1: required list<ColumnChunk> columns         // one per leaf of the schema, in its order
  2: required i64 total_byte_size
  3: required i64 num_rows
  5: optional i64 file_offset
  6: optional i64 total_compressed_size
  7: optional i16 ordinal                       // goes into the AAD of encrypted modules; if absent, the position does
}


// ---------------------------------------------------------------------------------------------------------------
// Encryption. A filter is two modules: the header (module type 8), then the bitset (module type 9), always AES-GCM
// ---------------------------------------------------------------------------------------------------------------

/** A module's AAD: prefix, aad_file_unique, module type; then, but for the footer, ordinals of row group and column. */
struct AesGcmV1 {
  1: optional binary aad_prefix
  2: optional binary aad_file_unique
  3: optional bool supply_aad_prefix            // true: the prefix is not in the file, the reader must bring it
}

/** Pages in AES-CTR, which notices no tampering; all other modules, Bloom filters among them, in AES-GCM. */
struct AesGcmCtrV1 {
  1: optional binary aad_prefix
  2: optional binary aad_file_unique
  3: optional bool supply_aad_prefix
}

union EncryptionAlgorithm {
  1: AesGcmV1 AES_GCM_V1
  2: AesGcmCtrV1 AES_GCM_CTR_V1
}


// ---------------------------------------------------------------------------------------------------------------
// The file
// ---------------------------------------------------------------------------------------------------------------

/** The footer: between the last data and the four bytes of its length and the closing magic, PAR1. */
struct FileMetaData {
  1: required i32 version                       // 1 or 2, and no reader should care which
  2: required list<SchemaElement> schema
  3: required i64 num_rows
  4: required list<RowGroup> row_groups
  5: optional list<KeyValue> key_value_metadata  // can speak of filters: DuckDB's duckdb.interval_bloom_filter says how
                                                 // INTERVAL values were hashed; false once such a filter is replaced
  6: optional string created_by                 // tells the writer, and with it the writer's known faults
  7: optional list<ColumnOrder> column_orders   // one per leaf
  8: optional EncryptionAlgorithm encryption_algorithm  // set: this footer is in clear but signed. 28 bytes, nonce and
                                                        // tag, follow it, and every change to it needs the footer key
  9: optional binary footer_signing_key_metadata
}

/** Opens the footer of a file whose magic is PARE, in clear; FileMetaData follows as one encrypted module. */
struct FileCryptoMetaData {
  1: required EncryptionAlgorithm encryption_algorithm
  2: optional binary key_metadata
}
