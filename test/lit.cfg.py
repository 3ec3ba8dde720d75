# lit settings shared by all folders. In: a .mlir or .test file with RUN lines. Out: pass or fail. `tare-opt`, `tare`, `tare-run`, FileCheck and `not`
# are found on PATH; %data is the unpacked test/data/models, %examples is examples, %t a scratch name. Tests run without network and without anything outside the clone.
import os
import lit.formats

config.name = "tare-" + config.tare_folder
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.test_source_root = os.path.join(config.tare_source, "test", config.tare_folder)
config.test_exec_root = os.path.join(config.tare_build, "test", "lit", config.tare_folder)
config.excludes = ["CMakeLists.txt", "README.md", "Inputs"]
config.environment["PATH"] = os.pathsep.join([os.path.join(config.tare_build, "bin"), config.llvm_tools, os.environ["PATH"]])
config.environment["LC_ALL"] = "C"
config.substitutions.append(("%data", os.path.join(config.tare_build, "data", "models")))
config.substitutions.append(("%examples", os.path.join(config.tare_source, "examples")))
