// `tsx test/package/write_bill.ts FILE`: writes the bill of materials of what is built in dist, and ends with status 1 where it is
// not complete. Nothing is asked of a registry.

import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { type Bill, billOf, bundledOf, type Lock, missingFrom } from "./bill.ts";

const [to] = process.argv.slice(2);
if (to === undefined) throw new Error("say where to write it");
const npm = ["sbom", "--sbom-format", "cyclonedx", "--package-lock-only"];
const all = JSON.parse(execFileSync("npm", npm, { encoding: "utf8", maxBuffer: 1e8 })) as Bill;
const lock = JSON.parse(readFileSync("package-lock.json", "utf8")) as Lock;
const { name } = JSON.parse(readFileSync("package.json", "utf8")) as { readonly name: string };
const licences = readFileSync("dist/THIRD_PARTY_LICENSES.txt", "utf8");

const bill = billOf(all, lock, licences, name);
const missing = missingFrom(bill, lock, licences);
if (missing.length > 0 || bundledOf(licences).size === 0) {
  process.stderr.write(
    `not in the bill of materials: ${missing.join(", ") || "anything bundled (npm run build)"}\n`,
  );
  process.exit(1);
}
writeFileSync(to, `${JSON.stringify(bill, null, 2)}\n`);
process.stdout.write(
  `${to}: ${bill.components.length} components, ${bundledOf(licences).size} of them bundled\n`,
);
