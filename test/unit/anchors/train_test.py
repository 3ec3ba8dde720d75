"""A reduced training of the scanner's network learns and repeats; the shipped weights are of the scripts in the tree. In: nothing. Out: unittest. Needs NumPy (ctest
skips this test, and says so, where it cannot be had).
"""
import pathlib
import struct
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools" / "python"))
import train_anchors  # noqa: E402


class Training(unittest.TestCase):
    def test_a_reduced_run_learns(self):
        integers, before, after = train_anchors.train(3, 900, 5, say=lambda line: None)
        x, y = train_anchors.samples(77, 120, False)
        decoys_refused = float((integers.logits(x)[y < 0.5] <= 0).mean())
        true_proposed = float((integers.logits(x)[y > 0.5] > 0).mean())
        self.assertGreater(decoys_refused, 0.8)
        self.assertGreater(true_proposed, 0.97)
        # Untrained weights say one thing about all sites.
        self.assertGreater(after, before + 0.05)

    def test_a_seed_gives_the_same_weights(self):
        files = []
        with tempfile.TemporaryDirectory() as folder:
            for k in range(2):
                integers, _, _ = train_anchors.train(5, 60, 1, say=lambda line: None)
                integers.write(pathlib.Path(folder) / str(k), 5)
                files.append((pathlib.Path(folder) / str(k)).read_bytes())
        self.assertEqual(files[0], files[1])

    def test_shipped_weights_are_of_these_scripts(self):
        data = (ROOT / "runtime" / "anchors" / "network.bin").read_bytes()
        self.assertEqual(struct.unpack("<8sIIIII", data[:28])[0:6], (b"TAREANC1", train_anchors.LEFT, train_anchors.RIGHT, train_anchors.CLASSES, train_anchors.WIDTH, train_anchors.Integers.SHIFT))
        self.assertEqual(data[40:72], train_anchors.script_hash(), "train again: tools/python/train_anchors.py")
        self.assertLess(len(data), 100_000)


if __name__ == "__main__":
    unittest.main()
