# SPDX-License-Identifier: BSD-2-Clause
"""Prints an SBOM of the provider and of tcam, with the crates that they use, in CycloneDX 1.5 JSON.

The wheel's own SBOM is that of the command. cargo-cyclonedx writes one file for each crate of the workspace.
"""

import json
import pathlib
import subprocess
import tomllib

ROOTS = "tcam-provider", "tcam-sites", "tcam-sites-large", "tcam-lab"


def output(*words):
    """Returns the output of a command."""
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


host = next(line.split()[1] for line in output("rustc", "-vV").splitlines() if line.startswith("host:"))
metadata = json.loads(
    output("cargo", "metadata", "--locked", "--offline", "--format-version", "1", "--filter-platform", host)
)
tree = output("cargo", "tree", "--locked", "--offline", "--target", host, "--edges", "normal", "--prefix", "none",
              "--format", "{p}", *(word for root in ROOTS for word in ("-p", root)))  # fmt: skip
# cargo metadata also has crates and features that only tests or build scripts use.
built = {tuple(line.split()[:2]) for line in tree.splitlines() if line}
packages = {each["id"]: each for each in metadata["packages"] if (each["name"], "v" + each["version"]) in built}
uses = {
    node["id"]: [other for other in node["dependencies"] if other in packages]
    for node in metadata["resolve"]["nodes"]
}
lock = tomllib.loads(pathlib.Path("Cargo.lock").read_text())
checksums = {(each["name"], each["version"]): each.get("checksum") for each in lock["package"]}


def reference(identity):
    """Returns the package URL of a crate."""
    return "pkg:cargo/{name}@{version}".format(**packages[identity])


def component(identity):
    """Returns the description of a crate."""
    package = packages[identity]
    about = {
        "type": "library",
        "bom-ref": reference(identity),
        "purl": reference(identity),
        "name": package["name"],
        "version": package["version"],
    }
    if package["license"]:
        # Older crates separate alternatives by a slash.
        about["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if checksum := checksums[package["name"], package["version"]]:
        about["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return about


roots = [identity for identity in packages if packages[identity]["name"] in ROOTS]
version = packages[roots[0]]["version"]
product = f"pkg:generic/tcam@{version}"
used = sorted(packages, key=reference)
bill = {
    "bomFormat": "CycloneDX",
    "specVersion": "1.5",
    "version": 1,
    "metadata": {
        "timestamp": output("git", "log", "-1", "--format=%cI").strip(),
        "component": {"type": "application", "bom-ref": product, "name": "tcam", "version": version},
    },
    "components": [component(identity) for identity in used],
    "dependencies": [{"ref": product, "dependsOn": sorted(map(reference, roots))}]
    + [{"ref": reference(of), "dependsOn": sorted(set(map(reference, uses[of])))} for of in used],
}
print(json.dumps(bill, indent=1))
