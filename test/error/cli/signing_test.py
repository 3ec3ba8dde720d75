"""Signed engines through the command line (spec 11): keygen, --sign, --public-key, --paranoid. In: one engine of bert-tiny, signed and unsigned. Holds: what is not
signed, signed by another, or changed after signing is refused before it runs (exit 4; 3 where a hash already tells), by run, verify and tare-run alike.
"""
import ctypes
import hashlib
import json
import os
import pathlib
import shutil
import stat
import struct
import subprocess
import tempfile
import unittest

from harness import Case, DATA, tare
from npz import int64, write_npz

MODEL = DATA / "bert-tiny"
COMPILE = ["compile", MODEL, "--target", "cpu:x86-64-v3", "--quiet", "-o"]
CONFIGURATION, WEIGHTS, SIGNATURE = 6, 2, 9


def sections(data):
    """{kind: (place of the table entry, offset, bytes)} of an engine's bytes."""
    count = struct.unpack_from("<I", data, 20)[0]
    entries = [(64 + 64 * i, *struct.unpack_from("<IIQQ", data, 64 + 64 * i)) for i in range(count)]
    return {kind: (place, offset, size) for place, kind, _, offset, size in entries}


def rehash(data, kind):
    """Makes the hashes of a section, of the table and of the header right again, as a forger would."""
    place, offset, size = sections(data)[kind]
    data[place + 32:place + 64] = hashlib.sha256(data[offset:offset + size]).digest()
    count = struct.unpack_from("<I", data, 20)[0]
    data[32:64] = hashlib.sha256(data[:32] + data[64:64 + 64 * count]).digest()


class Signing(Case):
    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="tare-cli-signing-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared, True)
        cls.key, cls.public, cls.other = cls.shared / "key.pem", cls.shared / "pub.pem", cls.shared / "other.pem"
        cls.signed, cls.plain = cls.shared / "signed.tare", cls.shared / "plain.tare"
        for arguments in (["keygen", cls.key, cls.public], ["keygen", cls.shared / "other-key.pem", cls.other], [*COMPILE, cls.signed, "--sign", cls.key], [*COMPILE, cls.plain]):
            done = tare(*arguments)
            assert done.returncode == 0, done.stderr
        cls.inputs = write_npz(cls.shared / "in.npz", {"input_ids": int64([1, 3], [1, 2, 3])})

    def everywhere(self, code, said, engine, key):
        """run, the three forms of verify, and tare-run refuse alike."""
        self.refused(code, said, "run", engine, "--inputs", self.inputs, "--outputs", self.folder / "out.npz", "--public-key", key)
        self.refused(code, said, "verify", engine, "--public-key", key)
        self.refused(code, said, "verify", "--certificate", engine, MODEL, "--public-key", key)
        self.refused(code, said, "verify", MODEL, engine, "--public-key", key)
        out = subprocess.run([os.environ["TARE_RUN"], engine, "--inputs", self.inputs, "--public-key", key], capture_output=True, text=True)
        self.assertEqual(out.returncode, code, out.stderr)
        self.assertIn(said, out.stderr)

    def test_a_signed_engine_runs(self):
        for arguments in (["run", self.signed, "--inputs", self.inputs, "--public-key", self.public], ["run", self.signed, "--inputs", self.inputs, "--paranoid"],
                          ["run", self.signed, "--inputs", self.inputs], ["verify", self.signed, "--public-key", self.public, "--paranoid"],
                          ["verify", "--certificate", self.signed, MODEL, "--public-key", self.public]):
            done = tare(*arguments)
            self.assertEqual(done.returncode, 0, done.stderr)
        out = subprocess.run([os.environ["TARE_RUN"], self.signed, "--inputs", self.inputs, "--require-signature", self.public], capture_output=True, text=True)
        self.assertEqual(out.returncode, 0, out.stderr)
        signed, plain = self.signed.read_bytes(), self.plain.read_bytes()
        weights = sections(plain)[WEIGHTS]
        self.assertEqual(sections(signed)[WEIGHTS], weights)  # the signature is one section at the end, nothing else
        self.assertEqual(signed[4096:weights[1] + weights[2]], plain[4096:weights[1] + weights[2]])
        self.assertIn(SIGNATURE, sections(signed))
        self.assertNotIn(SIGNATURE, sections(plain))

    def test_not_signed_or_by_another(self):
        self.everywhere(4, "engine is not signed, but a signature is required", self.plain, self.public)
        self.everywhere(4, "signature does not fit the engine or the key", self.signed, self.other)

    def test_changed_after_signing(self):
        data = bytearray(self.signed.read_bytes())
        data[sections(data)[CONFIGURATION][1]] ^= 1
        changed = self.shared / "changed.tare"
        changed.write_bytes(data)
        self.everywhere(3, "hash mismatch", changed, self.public)
        rehash(data, CONFIGURATION)
        changed.write_bytes(data)
        self.assertEqual(tare("verify", changed).returncode, 0)  # all hashes are right again
        self.everywhere(4, "signature does not fit the engine or the key", changed, self.public)

    def test_paranoid_sees_weights_behind_right_checksums(self):
        # The fast checksums and their hash are made right for the changed weights, their SHA-256 is not: only --paranoid and verify look at it.
        xxhash = ctypes.CDLL("libxxhash.so.0")  # its development package is one that the build needs
        xxhash.XXH3_64bits.restype, xxhash.XXH3_64bits.argtypes = ctypes.c_uint64, [ctypes.c_char_p, ctypes.c_size_t]
        data = bytearray(self.plain.read_bytes())
        _, offset, _ = sections(data)[WEIGHTS]
        data[offset] ^= 1
        _, sums, _ = sections(data)[WEIGHTS + 1]
        struct.pack_into("<Q", data, sums, xxhash.XXH3_64bits(bytes(data[offset:offset + (1 << 20)]), 1 << 20))
        rehash(data, WEIGHTS + 1)
        changed = self.shared / "weights.tare"
        changed.write_bytes(data)
        run = ["run", changed, "--inputs", self.inputs]
        self.assertEqual(tare(*run).returncode, 0)
        self.refused(3, "section weights was changed (SHA-256)", *run, "--paranoid")
        self.refused(3, "section weights was changed (SHA-256)", "verify", changed)

    def test_key_files(self):
        self.assertEqual(stat.S_IMODE(self.key.stat().st_mode), 0o600)
        self.refused(2, "a key is never overwritten", "keygen", self.key, self.folder / "p.pem")
        self.refused(2, "a key is never overwritten", "keygen", self.folder / "k.pem", self.public)  # and no half pair is left
        self.refused(6, "cannot create the key file", "keygen", self.folder / "none" / "k.pem", self.folder / "p.pem")
        self.refused(6, "cannot read the key", *COMPILE, self.output, "--sign", self.shared / "none.pem")
        self.refused(2, "not an Ed25519 private key", *COMPILE, self.output, "--sign", self.public)
        self.refused(2, "not an Ed25519 public key", "verify", self.signed, "--public-key", self.key)
        self.refused(2, "would overwrite the input", *COMPILE, self.key, "--sign", self.key)

    def test_openssl_agrees(self):
        openssl = shutil.which("openssl")
        if not openssl:
            self.skipTest("openssl is not installed")
        derived = subprocess.run([openssl, "pkey", "-in", self.key, "-pubout"], capture_output=True, text=True)
        self.assertEqual((derived.returncode, derived.stdout), (0, self.public.read_text()), derived.stderr)
        made = self.folder / "openssl.pem"
        self.assertEqual(subprocess.run([openssl, "genpkey", "-algorithm", "ed25519", "-out", made], capture_output=True).returncode, 0)
        self.assertEqual(tare("compile", MODEL, "--print-cache-key", "--sign", made).returncode, 0)
        described = json.loads(tare("keygen", self.folder / "a", self.folder / "b", "--json").stdout)
        self.assertRegex(described["public_key_hex"], "^[0-9a-f]{64}$")


if __name__ == "__main__":
    unittest.main()
