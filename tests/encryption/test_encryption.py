"""Modules, their AADs, keys and key material: case tables used in both directions, and every bit
flipped."""

from __future__ import annotations

import json
import os
from base64 import b64encode

import pytest

from sbbf_tool.encryption import modules
from sbbf_tool.encryption.file_cipher import algorithm_of
from sbbf_tool.encryption.keys import Keys, describe_key, parse_material, parse_material_file
from sbbf_tool.encryption.modules import FileAad, Key, Module
from sbbf_tool.errors import AuthenticationError, RefusedError, UnreadableError, UsageError
from sbbf_tool.file.key_ring import _material_beside
from sbbf_tool.parquet.idl.ttypes import AesGcmCtrV1, AesGcmV1, EncryptionAlgorithm
from support.tables import each

SECRETS = [bytes(range(16)), bytes(range(24)), bytes(range(32))]
AAD = FileAad(b"prefix", b"unique!!")

# Worked out by hand from Encryption.md, 4.4.
AADS = [
    ((Module.FOOTER,), b"prefixunique!!\0"),
    ((Module.COLUMN_METADATA, 0, 0), b"prefixunique!!\1\0\0\0\0"),
    ((Module.DATA_PAGE, 1, 2, 3), b"prefixunique!!\2\1\0\2\0\3\0"),
    ((Module.DICTIONARY_PAGE, 1, 2), b"prefixunique!!\3\1\0\2\0"),
    ((Module.DATA_PAGE_HEADER, 258, 2, 32767), b"prefixunique!!\4\2\1\2\0\xff\x7f"),
    ((Module.DICTIONARY_PAGE_HEADER, 1, 2), b"prefixunique!!\5\1\0\2\0"),
    ((Module.BLOOM_FILTER_HEADER, 32767, 1), b"prefixunique!!\x08\xff\x7f\1\0"),
    ((Module.BLOOM_FILTER_BITSET, 0, 256), b"prefixunique!!\x09\0\0\0\1"),
]


@each("place, expected", AADS)
def test_aad(place, expected):
    assert (AAD.of_footer() if place == (Module.FOOTER,) else AAD.of(*place)) == expected


@each("place", [(32768, 0), (0, 32768), (0, 0, 32768), (-1, 0)])
def test_there_are_no_ordinals_past_16_bits(place):
    with pytest.raises(UnreadableError, match="are numbered from 0 to 32,767"):
        AAD.of(Module.DATA_PAGE, *place)


# Test case 4 of "The Galois/Counter Mode of Operation" (McGrew, Viega), with length word and nonce
# as a module has them.
GCM_KEY = bytes.fromhex("feffe9928665731c6d6a8f9467308308")
GCM_PLAIN = bytes.fromhex(
    "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"
)
GCM_AAD = bytes.fromhex("feedfacedeadbeeffeedfacedeadbeefabaddad2")
GCM_MODULE = bytes.fromhex(
    "58000000cafebabefacedbaddecaf888"
    "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091"
    "5bc94fbc3221a5db94fae95ae7121a47"
)


def test_a_module_of_which_the_bytes_are_published():
    assert modules.parse_gcm(Key(GCM_KEY), GCM_MODULE, GCM_AAD) == GCM_PLAIN


def test_a_ctr_module_of_which_the_bytes_are_published():
    """GCM's ciphertext is CTR's with a counter that begins at 2; so a block of zeros in front shows
    the counter of CTR modules, 1."""
    plain = modules.parse_ctr(
        Key(GCM_KEY),
        (12 + 16 + 60).to_bytes(4, "little") + GCM_MODULE[4:16] + bytes(16) + GCM_MODULE[16:-16],
    )
    assert plain[16:] == GCM_PLAIN


@each("secret", SECRETS)
@each("plain", [b"", b"x", bytes(1000)])
def test_what_was_built_is_parsed(secret, plain):
    key = Key(secret)
    module = modules.build_gcm(key, plain, b"aad")
    assert len(module) == len(plain) + modules.GCM_OVERHEAD
    assert modules.parse_gcm(key, module, b"aad") == plain
    assert modules.build_gcm(key, plain, b"aad") != module, "no nonce twice"
    nonce = os.urandom(modules.NONCE_BYTES)
    ctr_module = (
        (modules.NONCE_BYTES + len(plain)).to_bytes(4, "little") + nonce + key.ctr(nonce, plain)
    )
    assert len(ctr_module) == len(plain) + modules.CTR_OVERHEAD
    assert modules.parse_ctr(key, ctr_module) == plain
    modules.ensure_signed(key, plain, modules.sign(key, plain, b"aad"), b"aad")


def flipped(data: bytes):
    for bit in range(len(data) * 8):
        yield data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :]


def test_a_flipped_bit_anywhere_in_a_module():
    key = Key(SECRETS[0])
    for mutant in flipped(modules.build_gcm(key, b"a plaintext", b"aad")):
        with pytest.raises(AuthenticationError):
            modules.parse_gcm(key, mutant, b"aad")


class TestAlgorithm:
    def of(self, form, prefix=None):
        name = "AES_GCM_CTR_V1" if isinstance(form, AesGcmCtrV1) else "AES_GCM_V1"
        return algorithm_of(EncryptionAlgorithm(**{name: form}), prefix)

    def test_forms(self):
        assert self.of(AesGcmV1(aad_file_unique=b"u")) == (FileAad(b"", b"u"), False)
        assert self.of(AesGcmCtrV1(aad_prefix=b"p", aad_file_unique=b"u")) == (
            FileAad(b"p", b"u"),
            True,
        )
        assert self.of(AesGcmV1(aad_prefix=b"p", aad_file_unique=b"u"), b"p") == (
            FileAad(b"p", b"u"),
            False,
        )
        assert self.of(AesGcmV1(aad_file_unique=b"u", supply_aad_prefix=True), b"p") == (
            FileAad(b"p", b"u"),
            False,
        )

    @pytest.mark.parametrize(
        ("form", "prefix", "message"),
        [
            (
                AesGcmV1(aad_file_unique=b"u", supply_aad_prefix=True),
                None,
                "an AAD prefix that it does not store",
            ),
            (AesGcmV1(aad_prefix=b"p", aad_file_unique=b"u"), b"q", "differs from the given one"),
            (AesGcmV1(aad_file_unique=b"u"), b"q", "without an AAD prefix, but one was given"),
            (AesGcmV1(), None, "no aad_file_unique"),
        ],
    )
    def test_refused_requests(self, form, prefix, message):
        with pytest.raises((RefusedError, UnreadableError), match=message):
            self.of(form, prefix)


HEX, BASE64 = SECRETS[0].hex(), b64encode(SECRETS[2]).decode()
NOTHING = lambda reference: None  # noqa: E731


class TestKeys:
    @each(
        "form",
        [
            HEX,
            HEX.upper(),
            b64encode(SECRETS[0]).decode(),
            {"hex": HEX},
            {"base64": b64encode(SECRETS[0]).decode()},
            SECRETS[0],
        ],
    )
    def test_forms_of_a_key(self, form):
        assert Keys.of({"footer_key": form}).footer == Key(SECRETS[0])

    @each(
        "wrong",
        [
            '{"footer_key": "KEY00"}',
            '{"columns": {"a": "not a key"}}',
            '{"keys": {"a": {"hex": "KEYf"}}}',
            '{"keys": {"a": {"octal": "KEY"}}}',
            '{"keys": {"a": 1234567890123456}}',
            '{"keys": ["KEY"]}',
            '{"footerkey": "KEY"}',
            '["KEY"]',
            '{"footer_key": "KEY"',
            '{"aad_prefix": 5}',
            "\xff",
            "[" * 100_000,
        ],
    )
    def test_an_invalid_key_is_reported_without_being_shown(self, wrong):
        with pytest.raises(UsageError) as caught:
            Keys.from_json(wrong.replace("KEY", HEX))
        assert HEX not in str(caught.value)
        assert "123456789" not in str(caught.value)

    def test_nothing_shows_a_key(self):
        keys = Keys.of({"footer_key": HEX, "columns": {"a": BASE64}, "keys": {"k": HEX}})
        for text in (repr(keys), str(keys), f"{keys.footer!r} {keys.columns}", repr(vars(keys))):
            assert not any(secret.hex() in text or repr(secret)[2:-1] in text for secret in SECRETS)
        assert "the footer's" in repr(keys)

    def test_ids_that_are_no_text(self):
        keys = Keys.of({"keys": {"0x000000ff": HEX}})
        assert keys.find(b"\0\0\0\xff", NOTHING) == Key(SECRETS[0])
        assert describe_key(b"\0\0\0\xff") == " (key id '0x000000ff')"
        assert describe_key(b"kf") == " (key id 'kf')"
        assert describe_key(bytes(100)) == ""
        assert describe_key(None) == ""

    @each("key", [bytes(5), "text", 7])
    def test_an_invalid_size(self, key):
        with pytest.raises(UsageError, match="not a key"):
            Keys.of({"footer_key": key})
        with pytest.raises(UnreadableError, match=r"not 5$"):
            Key(bytes(5))


class TestService:
    def test_a_function(self):
        calls = []

        def service(metadata: bytes) -> bytes:
            calls.append(metadata)
            return SECRETS[0]

        assert Keys.of(service).find(b"request", NOTHING) == Key(SECRETS[0])
        assert calls == [b"request"]

    @each("error", [KeyError("k"), PermissionError("no")])
    def test_a_key_service_without_that_key(self, error):
        def service(metadata: bytes) -> bytes:
            raise error

        assert Keys.of(service).find(b"k", NOTHING) is None
        assert Keys.of(lambda metadata: None).find(b"k", NOTHING) is None

    def test_a_failing_request(self):
        def service(metadata: bytes) -> bytes:
            raise ConnectionError(f"with {HEX} to example.org")

        with pytest.raises(
            RefusedError, match=r"the key service failed \(ConnectionError\)"
        ) as caught:
            Keys.of(service).find(b"k", NOTHING)
        assert HEX not in str(caught.value)
        with pytest.raises(RefusedError, match="16, 24 or 32"):
            Keys.of(lambda metadata: b"short").find(b"k", NOTHING)


def wrapped(key: bytes, by: bytes, aad: bytes) -> str:
    """As parquet-java's KeyToolkit wraps it."""
    return b64encode(modules.build_gcm(Key(by), key, aad)[4:]).decode()


def material(**fields) -> bytes:
    key_material = {
        "keyMaterialType": "PKMT1",
        "internalStorage": True,
        "masterKeyID": "m",
        "doubleWrapping": False,
    }
    return json.dumps({**key_material, **fields}).encode()


class TestKeyMaterial:
    DEK, KEK, MASTER = SECRETS
    KEYS = Keys.of({"keys": {"m": MASTER}})

    def materials(self):
        yield material(wrappedDEK=wrapped(self.DEK, self.MASTER, b"m"))
        yield material(
            doubleWrapping=True,
            wrappedDEK=wrapped(self.DEK, self.KEK, b"kek id"),
            keyEncryptionKeyID=b64encode(b"kek id").decode(),
            wrappedKEK=wrapped(self.KEK, self.MASTER, b"m"),
        )
        local = json.dumps(
            {"masterKeyVersion": "NO_VERSION", "encryptedKey": wrapped(self.DEK, self.MASTER, b"m")}
        )
        yield material(wrappedDEK=local)

    def test_unwrapped_locally(self):
        for metadata in self.materials():
            assert self.KEYS.find(metadata, NOTHING) == Key(self.DEK)
            assert describe_key(metadata) == " (key id 'm')"

    def test_by_a_client_of_a_key_service(self):
        class Client:
            def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
                assert master_key_identifier == "m"
                return bytes.fromhex(wrapped_key)

        double = {
            "doubleWrapping": True,
            "keyEncryptionKeyID": b64encode(b"i").decode(),
            "wrappedKEK": self.KEK.hex(),
        }
        assert Keys.of(Client()).find(material(wrappedDEK=self.DEK.hex()), NOTHING) == Key(self.DEK)
        assert Keys.of(Client()).find(
            material(wrappedDEK=wrapped(self.DEK, self.KEK, b"i"), **double), NOTHING
        ) == Key(self.DEK)
        assert Keys.of(Client()).find(b"no material", NOTHING) is None

    def test_beside_the_file(self):
        stored = parse_material_file(
            json.dumps({"columnKey0": next(self.materials()).decode()}).encode()
        )
        metadata = (
            b'{"keyMaterialType":"PKMT1","internalStorage":false,"keyReference":"columnKey0"}'
        )
        assert self.KEYS.find(metadata, stored.get) == Key(self.DEK)
        with pytest.raises(UnreadableError, match="key material of the file is missing"):
            self.KEYS.find(metadata, NOTHING)

    def test_another_master_key(self):
        for metadata in self.materials():
            with pytest.raises(
                AuthenticationError, match="cannot be unwrapped with master key 'm'"
            ):
                Keys.of({"keys": {"m": bytes(16)}}).find(metadata, NOTHING)
            assert Keys.of({"keys": {"another": self.MASTER}}).find(metadata, NOTHING) is None

    @each(
        "metadata",
        [
            material(),
            material(wrappedDEK=5),
            material(wrappedDEK="*"),
            material(wrappedDEK="", masterKeyID=None),
            material(doubleWrapping=True, wrappedDEK=""),
            material(internalStorage=False),
            material(wrappedDEK=wrapped(b"short", MASTER, b"m")),
        ],
    )
    def test_invalid_names(self, metadata):
        with pytest.raises(UnreadableError):
            self.KEYS.find(metadata, NOTHING)

    @each(
        "metadata",
        [
            b"",
            b"id",
            b"{",
            b"[]",
            b'{"keyMaterialType": "other"}',
            b"{\xff}",
            b"[" * 9999,
            b'{"a":' * 9999,
        ],
    )
    def test_values_with_another_meaning(self, metadata):
        assert parse_material(metadata, NOTHING) is None

    @each("content", [b"", b"[]", b'{"a": 1}', b"{"])
    def test_a_path_that_is_no_file(self, content):
        with pytest.raises(UnreadableError, match="not a file of key material"):
            parse_material_file(content)

    def test_a_planted_file_of_any_size(self, tmp_path):
        planted = tmp_path / "_KEY_MATERIAL_FOR_x.parquet.json"
        planted.touch()
        os.truncate(planted, 1 << 40)
        with pytest.raises(UnreadableError, match="not a file of key material"):
            _material_beside(str(tmp_path / "x.parquet"))("reference")
