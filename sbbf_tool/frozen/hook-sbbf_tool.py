"""Hook for PyInstaller: modules that are imported by name, tables that are read as files, and the versions that `--version` shows."""

from PyInstaller.utils.hooks import collect_data_files, collect_submodules, copy_metadata

hiddenimports = [*collect_submodules("sbbf_tool"), "thrift.Thrift", "thrift.TRecursive"]
for package in ("thrift.protocol", "thrift.transport"):
    hiddenimports += collect_submodules(package)
datas = collect_data_files("sbbf_tool") + copy_metadata("sbbf-tool", recursive=True)
